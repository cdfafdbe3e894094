//! The question whether a call may run, and what becomes of its answers.

use serde_json::{json, Value};

use super::rig::*;
use crate::record::{Head, PermissionAnswer};
use crate::session::{Effect, Input, REFLECTION};

/// A session that asks, whose model wants `t__say` twice and then `t__shell`.
fn asking() -> Rig {
    let mut rig = Rig::with(|o| o.settings.ask_permission = true);
    rig.prompt("go");
    rig.told();
    rig.answer(&calls_of(&[
        ("a", "t__say", json!("{\"x\":1}")),
        ("b", "t__say", json!("{}")),
        ("c", "t__shell", json!("{}")),
    ]));
    rig
}

/// The questions so far.
fn questions(rig: &Rig) -> Vec<&Value> {
    rig.lines.iter().filter(|line| line["method"] == "session/request_permission").collect()
}

fn asked_about(rig: &Rig) -> Vec<&str> {
    questions(rig).iter().filter_map(|q| q["params"]["toolCall"]["toolCallId"].as_str()).collect()
}

fn respond(rig: &mut Rig, rest: &Value) -> bool {
    let id = questions(rig).last().expect("a question")["id"].clone();
    let mut line = json!({"jsonrpc": "2.0", "id": id});
    line.as_object_mut().expect("an object").extend(rest.as_object().expect("an object").clone());
    rig.send_line(line.to_string().as_bytes())
}

fn choose(rig: &mut Rig, option: &str) -> bool {
    respond(rig, &json!({"result": {"outcome": {"outcome": "selected", "optionId": option}}}))
}

fn finish_all(rig: &mut Rig) {
    for index in 0..3 {
        rig.finish(index, text_result("ok"));
    }
    rig.answer(&text("done"));
    assert_eq!(rig.last_line()["result"]["stopReason"], "end_turn");
}

fn result_of(rig: &Rig, call: &str) -> String {
    let messages = rig.messages();
    let result = messages.iter().find(|m| m["tool_call_id"] == call).expect("a result");
    result["content"].as_str().expect("text").to_owned()
}

#[test]
fn nobody_is_asked_unless_it_is_wanted() {
    let mut rig = Rig::calling(2, |_| {});
    assert!(questions(&rig).is_empty());
    assert_eq!(rig.calls.len(), 2);
    rig.cancel();
    rig.drain();
}

#[test]
fn the_client_is_asked_call_by_call_and_none_starts_before_the_last_answer() {
    let mut rig = asking();
    let question = questions(&rig)[0].clone();
    assert_eq!(question["params"]["sessionId"], "ses_1");
    assert_eq!(
        question["params"]["toolCall"],
        json!({"toolCallId": "a", "title": "t__say", "kind": "other", "status": "pending", "rawInput": {"x": 1}})
    );
    let kinds: Vec<&Value> =
        question["params"]["options"].as_array().expect("options").iter().map(|o| &o["kind"]).collect();
    assert_eq!(kinds, ["allow_once", "allow_always", "reject_once", "reject_always"]);
    for calls in [["a"].as_slice(), &["a", "b"], &["a", "b", "c"]] {
        assert_eq!(asked_about(&rig), calls);
        assert!(rig.calls.is_empty(), "a call started before every question was answered");
        assert!(choose(&mut rig, "allow_once"));
    }
    assert_eq!(rig.calls.len(), 3);
    finish_all(&mut rig);
}

#[test]
fn a_refused_call_becomes_a_result_that_says_so_and_the_others_run() {
    let mut rig = asking();
    choose(&mut rig, "reject_once");
    assert_eq!(rig.told().last().map(String::as_str), Some("result null"), "the next question");
    choose(&mut rig, "allow_once");
    choose(&mut rig, "allow_once");
    assert_eq!(rig.calls.iter().map(|call| call.index).collect::<Vec<_>>(), [1, 2]);
    rig.finish(1, text_result("ok"));
    rig.finish(2, text_result("ok"));
    assert_eq!(result_of(&rig, "a"), format!("not run: the user refused this call\n{REFLECTION}"));
    rig.answer(&text("done"));
}

#[test]
fn when_all_calls_are_refused_the_model_is_asked_again() {
    let mut rig = asking();
    for _ in 0..3 {
        choose(&mut rig, "reject_once");
    }
    assert!(rig.calls.is_empty());
    assert_eq!(rig.asks.len(), 2);
    rig.answer(&text("done"));
    assert_eq!(rig.last_line()["result"]["stopReason"], "end_turn");
}

#[test]
fn always_holds_for_the_tool_in_this_and_later_rounds_until_the_session_comes_back() {
    let mut rig = asking();
    choose(&mut rig, "allow_always");
    assert_eq!(asked_about(&rig), ["a", "c"]);
    choose(&mut rig, "reject_always");
    assert_eq!(rig.calls.len(), 2);
    rig.finish(0, text_result("ok"));
    rig.finish(1, text_result("ok"));
    rig.answer(&calls_of(&[("d", "t__say", json!("{}")), ("e", "t__shell", json!("{}"))]));
    assert_eq!(asked_about(&rig), ["a", "c"], "nothing is left to ask");
    assert_eq!(rig.calls.len(), 3);
    rig.finish(0, text_result("ok"));
    assert!(result_of(&rig, "e").starts_with("not run: the user refused"));
    rig.answer(&text("done"));

    let settings = crate::settings::Settings { ask_permission: true, ..settings() };
    let again = crate::record::SessionOpened { settings, ..opened() };
    let resumed = Head::SessionResumed { opened: Box::new(again), tells_history: false };
    rig.take(vec![crate::record::Record::bare(resumed)]);
    rig.prompt("again");
    rig.answer(&calls_of(&[("f", "t__say", json!("{}"))]));
    assert_eq!(asked_about(&rig), ["a", "c", "f"]);
    rig.cancel();
}

#[test]
fn a_cancel_ends_the_question_and_the_turn_and_the_late_answer_means_nothing() {
    let mut rig = asking();
    rig.told();
    rig.cancel();
    assert_eq!(
        rig.told(),
        ["failed a: cancelled", "failed b: cancelled", "failed c: cancelled", "stop cancelled"]
    );
    assert!(!respond(&mut rig, &json!({"result": {"outcome": {"outcome": "cancelled"}}})));
    assert!(!choose(&mut rig, "allow_once"));
    rig.prompt("again");
    rig.answer(&text("done"));
}

#[test]
fn the_answer_that_the_turn_was_cancelled_cancels_it() {
    let mut rig = asking();
    assert!(respond(&mut rig, &json!({"result": {"outcome": {"outcome": "cancelled"}}})));
    assert_eq!(rig.last_line()["result"]["stopReason"], "cancelled");
    assert!(rig.calls.is_empty());
}

#[test]
fn an_error_or_an_odd_answer_is_no_permission_and_the_operator_is_told() {
    for odd in [
        json!({"error": {"code": -32601, "message": "method not found"}}),
        json!({"result": {"outcome": {"outcome": "selected", "optionId": "yes"}}}),
        json!({"result": null}),
    ] {
        let mut rig = asking();
        assert!(respond(&mut rig, &odd));
        let warned = |e: &Effect| matches!(e, Effect::Warn(text) if text.contains("WAXLOG_ASK_PERMISSION"));
        assert_eq!(rig.count_effects(warned), 1, "{odd}");
        assert_eq!(asked_about(&rig), ["a", "b"]);
        assert!(rig.calls.is_empty());
        rig.cancel();
    }
}

#[test]
fn a_question_that_nobody_answers_in_time_is_taken_back_and_the_call_is_not_run() {
    let mut rig = asking();
    assert!(rig.count_effects(|e| matches!(e, Effect::AwaitPermission { asked: 1, index: 0 })) == 1);
    let id = questions(&rig)[0]["id"].clone();
    assert!(rig.input(Input::PermissionExpired { asked: 1, index: 0, after_secs: 600 }));
    let back = rig.lines.iter().find(|line| line["method"] == "$/cancel_request").expect("taken back");
    assert_eq!(back["params"]["requestId"], id);
    assert!(!rig.input(Input::PermissionExpired { asked: 1, index: 0, after_secs: 600 }), "once only");
    choose(&mut rig, "allow_once");
    choose(&mut rig, "allow_once");
    rig.finish(1, text_result("ok"));
    rig.finish(2, text_result("ok"));
    assert!(result_of(&rig, "a").starts_with("not run: nobody said within 600 s"));
    rig.answer(&text("done"));
}

#[test]
fn an_answer_counts_once_and_only_for_the_open_question() {
    let mut rig = asking();
    let first = questions(&rig)[0]["id"].clone();
    choose(&mut rig, "allow_once");
    let answers = |id: &Value| json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": {"outcome": "selected", "optionId": "reject_once"}}});
    assert!(!rig.send_line(answers(&first).to_string().as_bytes()));
    for other in [json!(1), json!("permission/ses_2/1/1"), json!("permission/ses_1/9/1"), json!(null)] {
        assert!(!rig.send_line(answers(&other).to_string().as_bytes()), "{other}");
    }
    choose(&mut rig, "allow_once");
    choose(&mut rig, "allow_once");
    finish_all(&mut rig);
}

#[test]
fn the_question_and_the_answer_are_records() {
    let mut rig = asking();
    choose(&mut rig, "reject_always");
    choose(&mut rig, "allow_once");
    assert_eq!(rig.count_records(|h| matches!(h, Head::PermissionAsked { .. })), 2);
    let rejected = |h: &Head| {
        matches!(h, Head::PermissionAnswered { answer: PermissionAnswer::RejectAlways, index: 0, .. })
    };
    assert_eq!(rig.count_records(rejected), 1);
    rig.finish(2, text_result("ok"));
    rig.answer(&text("done"));
}

#[test]
fn a_kill_during_a_question_leaves_calls_that_were_interrupted() {
    let rig = asking();
    let mut after = Rig::resume(&rig.log);
    after.recover();
    assert!(!after.session.is_busy());
    let interrupted = after.history().iter().filter(|item| item.contains("effects unknown")).count();
    assert_eq!(interrupted, 3);
}
