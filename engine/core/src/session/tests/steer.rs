//! Words that the client adds while a turn runs.

use serde_json::json;

use super::rig::*;
use crate::session::Effect;

#[test]
fn a_steer_in_a_tool_round_reaches_the_next_request() {
    let mut rig = Rig::calling(1, |_| {});
    assert!(rig.steer("run_1", "also this"));
    let answer = json!({"id": 2, "jsonrpc": "2.0", "result": {"messageId": "steer_2", "runId": "run_1"}});
    let queued = json!({"sessionUpdate": "session_info_update",
        "_meta": {"goose": {"queuedSteer": {"messageId": "steer_2", "runId": "run_1"}}}});
    let [.., first, second] = rig.lines.as_slice() else { panic!("two lines") };
    assert_eq!(first, &answer);
    assert_eq!(second["params"]["update"], queued);
    rig.finish(0, text_result("ok"));
    assert_eq!(
        rig.messages()[2..],
        [
            json!({"content": "ok", "role": "tool", "tool_call_id": "a"}),
            json!({"content": "also this", "role": "user"}),
        ]
    );
    rig.answer(&text("done"));
    assert_eq!(rig.told().last().map(String::as_str), Some("stop end_turn"));
}

#[test]
fn steers_that_fit_no_turn_are_refused_and_change_nothing() {
    let mut rig = Rig::new();
    rig.steer("run_1", "x");
    assert_eq!(rig.told(), ["error -32602: steer: no active run to steer"]);
    rig.prompt("go");
    rig.told();
    rig.steer("run_9", "x");
    assert_eq!(rig.told(), ["error -32602: steer: expected active run id run_9 but found run_2"]);
    rig.steer_blocks("run_2", json!([]));
    rig.steer("", "x");
    rig.request("_goose/unstable/session/steer", json!({"sessionId": "ses_1", "expectedRunId": "run_2"}));
    rig.request(
        "_goose/unstable/session/steer",
        json!({"sessionId": "ses_1", "expectedRunId": 7, "prompt": []}),
    );
    rig.steer_blocks("run_2", json!([{"type": "text"}]));
    let told = rig.told();
    assert_eq!(told.len(), 5);
    assert!(told.iter().all(|line| line.starts_with("error -32602: ")), "{told:?}");
    rig.answer(&text("done"));
    assert_eq!(rig.told(), ["message done", "stop end_turn"]);
    assert_eq!(rig.history(), ["user go", "assistant done"]);
}

#[test]
fn two_steers_keep_their_order_and_each_is_a_message() {
    let mut rig = Rig::calling(1, |_| {});
    rig.steer("run_1", " one ");
    rig.steer_blocks(
        "run_1",
        json!([{"type": "text", "text": "two"}, {"type": "resource_link", "uri": "u"}]),
    );
    rig.finish(0, text_result("ok"));
    assert_eq!(rig.history()[3..], ["user  one ", "user two\n[resource: u]"]);
    rig.answer(&text("done"));
}

#[test]
fn blank_and_unsupported_steers_are_dropped_and_the_turn_goes_on() {
    let mut rig = Rig::calling(1, |_| {});
    rig.steer("run_1", " \n ");
    rig.steer_blocks("run_1", json!([{"type": "text", "text": "half"}, {"type": "image"}]));
    rig.steer("run_1", "kept");
    rig.finish(0, text_result("ok"));
    assert_eq!(rig.history()[3..], ["user kept"]);
    assert_eq!(rig.count_effects(|e| matches!(e, Effect::Warn(text) if text.contains("steer"))), 1);
    rig.answer(&text("done"));
    assert_eq!(rig.told().last().map(String::as_str), Some("stop end_turn"));
}

#[test]
fn a_steer_during_the_final_round_carries_the_turn_on() {
    let mut rig = Rig::new();
    rig.prompt("go");
    rig.steer("run_1", "wait");
    rig.told();
    rig.answer(&text("done"));
    assert_eq!(rig.told(), ["message done"]);
    assert_eq!(rig.asks.len(), 2);
    assert_eq!(rig.history(), ["user go", "assistant done", "user wait"]);
    rig.answer(&text("really done"));
    assert_eq!(rig.told(), ["message really done", "stop end_turn"]);
}

#[test]
fn a_steer_beside_an_output_limit_carries_the_turn_on_too() {
    let mut rig = Rig::new();
    rig.prompt("go");
    rig.steer("run_1", "shorter");
    rig.answer(&finish_with("cut", "length"));
    assert_eq!(rig.asks.len(), 2);
    rig.answer(&text("ok"));
}

#[test]
fn a_steer_is_not_lost_where_the_round_cap_ends_the_turn() {
    let mut rig = Rig::calling(1, |o| o.settings.max_rounds = 1);
    rig.steer("run_1", "wait");
    rig.finish(0, text_result("ok"));
    assert_eq!(rig.told().last().map(String::as_str), Some("stop max_turn_requests"));
    rig.prompt("next");
    assert_eq!(rig.history()[3..], ["user wait", "user next"]);
    rig.answer(&text("done"));
}

#[test]
fn a_steer_is_not_lost_where_the_turn_fails() {
    let mut rig = Rig::new();
    rig.prompt("go");
    rig.steer("run_1", "wait");
    rig.fail(status(400, "Bad Request"), "no");
    rig.prompt("next");
    assert_eq!(rig.history(), ["user go", "user wait", "user next"]);
    rig.cancel();
}

#[test]
fn a_cancel_takes_queued_steers_back() {
    let mut rig = Rig::new();
    rig.prompt("go");
    rig.steer("run_1", "wait");
    rig.cancel();
    assert_eq!(rig.history(), ["user go"]);
    rig.prompt("next");
    assert_eq!(rig.history(), ["user go", "user next"]);
    rig.cancel();
}

#[test]
fn a_steer_while_hooks_run_waits_for_them_and_then_carries_the_turn_on() {
    let mut rig = Rig::with(|o| {
        o.catalogue = catalogue(&[("t", &["_Stop"])]);
        o.hook_servers = vec![0];
    });
    rig.prompt("go");
    rig.answer(&text("done"));
    rig.steer("run_1", "wait");
    assert_eq!(rig.asks.len(), 1);
    rig.hooks(vec![says("")]);
    assert_eq!(rig.asks.len(), 2);
    assert_eq!(rig.history(), ["user go", "assistant done", "user wait"]);
    rig.answer(&text("ok"));
    rig.hooks(vec![says("")]);
    assert_eq!(rig.told().last().map(String::as_str), Some("stop end_turn"));
}

#[test]
fn a_steer_of_a_turn_that_is_over_is_refused() {
    let mut rig = Rig::new();
    rig.prompt("go");
    rig.answer(&text("done"));
    rig.told();
    rig.steer("run_1", "late");
    assert_eq!(rig.told(), ["error -32602: steer: no active run to steer"]);
}
