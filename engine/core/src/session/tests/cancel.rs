//! The client takes a turn back, at each point where it can be.

use serde_json::json;

use super::rig::*;
use crate::record::{CallOutcome, Head};
use crate::session::{Effect, Input, REFLECTION};

fn stops_asking(e: &Effect) -> bool {
    matches!(e, Effect::StopAsking)
}

fn stops_calls(e: &Effect) -> bool {
    matches!(e, Effect::StopCalls { .. })
}

#[test]
fn a_cancel_while_the_model_is_asked_ends_the_turn_and_the_next_prompt_runs() {
    let mut rig = Rig::new();
    rig.prompt("go");
    assert!(rig.cancel());
    assert_eq!(rig.told(), ["run run_1", "stop cancelled"]);
    assert_eq!(rig.count_effects(stops_asking), 1);
    assert_eq!(rig.history(), ["user go"]);
    assert!(!rig.answer_to(1, &costing(text("late"), 10, 5)), "a late answer means nothing");
    assert!(!rig.session.tally().is_reported());
    rig.prompt("again");
    rig.answer(&text("done"));
    assert_eq!(rig.told(), ["run run_3", "message done", "stop end_turn"]);
}

#[test]
fn a_cancel_between_attempts_ends_the_turn() {
    let mut rig = Rig::new();
    rig.prompt("go");
    rig.fail(status(500, "R"), "");
    assert_eq!(rig.asks.len(), 2);
    rig.cancel();
    assert_eq!(rig.told(), ["run run_1", "stop cancelled"]);
    assert!(!rig.fail(status(500, "R"), ""));
}

#[test]
fn a_cancel_that_asks_for_an_answer_gets_null_first() {
    let mut rig = Rig::new();
    rig.prompt("go");
    rig.told();
    rig.request("session/cancel", json!({"sessionId": "ses_1"}));
    assert_eq!(rig.told(), ["result null", "stop cancelled"]);
    assert_eq!(rig.lines[rig.lines.len() - 2], json!({"id": 2, "jsonrpc": "2.0", "result": null}));
}

#[test]
fn a_cancel_of_an_idle_session_does_not_poison_the_next_prompt() {
    let mut rig = Rig::new();
    rig.cancel();
    assert!(rig.told().is_empty());
    rig.prompt("go");
    rig.answer(&text("done"));
    assert_eq!(rig.told(), ["run run_2", "message done", "stop end_turn"]);
}

#[test]
fn a_cancel_during_tools_gives_every_call_a_result() {
    let mut rig = Rig::calling(4, |o| o.settings.max_parallel_tools = 2);
    rig.finish(1, text_result("b is done"));
    rig.told();
    rig.cancel();
    assert_eq!(rig.told(), ["failed d: cancelled"], "what never started ends at once");
    assert_eq!(rig.count_effects(stops_calls), 1);
    assert!(rig.session.is_busy());
    rig.finish_as(0, CallOutcome::Cancelled, b"");
    rig.finish(2, text_result("c came in time"));
    assert_eq!(rig.told(), ["failed a: cancelled", "completed c", "stop cancelled"]);
    let reflected = |id: &str| format!("error {id} cancelled\n{REFLECTION}");
    assert_eq!(
        rig.history()[2..],
        [reflected("a"), "result b b is done".into(), "result c c came in time".into(), reflected("d")]
    );
    assert_eq!(rig.asks.len(), 1);
    rig.prompt("next");
    assert_eq!(rig.messages().len(), 7);
    rig.answer(&text("ok"));
}

#[test]
fn a_call_that_ignores_the_cancel_is_given_up_when_the_drain_expires() {
    let mut rig = Rig::calling(2, |_| {});
    assert!(!rig.drain(), "nothing drains yet");
    rig.cancel();
    rig.finish(0, text_result("a came in time"));
    rig.told();
    assert!(rig.drain());
    assert_eq!(rig.told(), ["failed b: cancelled", "stop cancelled"]);
    assert_eq!(rig.count_effects(|e| matches!(e, Effect::AbortCalls)), 1);
    assert!(!rig.finish(1, text_result("too late")));
    assert!(!rig.drain());
}

#[test]
fn a_cancel_after_all_calls_are_done_meets_the_next_request() {
    let mut rig = Rig::calling(1, |_| {});
    rig.finish(0, text_result("ok"));
    rig.cancel();
    assert_eq!(rig.told(), ["completed a", "stop cancelled"]);
    assert_eq!(rig.history()[2..], ["result a ok"]);
}

#[test]
fn a_second_cancel_of_draining_calls_changes_nothing() {
    let mut rig = Rig::calling(1, |_| {});
    rig.cancel();
    rig.cancel();
    assert!(rig.told().is_empty());
    rig.drain();
    assert_eq!(rig.told(), ["failed a: cancelled", "stop cancelled"]);
}

#[test]
fn results_of_a_cancelled_round_are_kept_even_if_all_succeeded() {
    let mut rig = Rig::calling(2, |_| {});
    rig.cancel();
    rig.finish(1, text_result("b"));
    rig.finish(0, text_result("a"));
    assert_eq!(rig.told(), ["completed b", "completed a", "stop cancelled"]);
    assert_eq!(rig.history()[2..], ["result a a", "result b b"]);
    assert_eq!(rig.asks.len(), 1);
}

#[test]
fn a_cancel_during_the_summary_leaves_the_history_alone() {
    let mut rig = Rig::with(|o| {
        o.settings.max_context_tokens = 2000;
        o.settings.max_output_tokens = 100;
    });
    rig.prompt(&"x".repeat(3000));
    assert_eq!(rig.count_records(|h| matches!(h, Head::SummaryAsked { .. })), 1);
    assert!(!rig.last_ask().keepalive);
    rig.told();
    rig.cancel();
    assert_eq!(rig.told(), ["stop cancelled"]);
    assert_eq!(rig.session.history().items().len(), 1);
    assert_eq!(rig.session.handoffs(), 0);
}

#[test]
fn a_cancel_during_stop_hooks_counts_at_the_next_boundary() {
    let with_hook = || {
        let mut rig = Rig::with(|o| {
            o.catalogue = catalogue(&[("t", &["_Stop"])]);
            o.hook_servers = vec![0];
        });
        rig.prompt("go");
        rig.answer(&text("done"));
        rig.told();
        rig.cancel();
        assert!(rig.told().is_empty());
        rig
    };
    let mut quiet = with_hook();
    quiet.hooks(vec![says("")]);
    assert_eq!(quiet.told(), ["stop end_turn"]);
    let mut objecting = with_hook();
    objecting.hooks(vec![says("not yet")]);
    assert_eq!(objecting.told(), ["stop cancelled"]);
    assert_eq!(objecting.asks.len(), 1);
    assert_eq!(objecting.session.history().unpaired_call(), None);
}

#[test]
fn a_cancel_during_post_compact_hooks_lets_the_handoff_finish() {
    let mut rig = Rig::with(|o| {
        o.settings.max_context_tokens = 2000;
        o.settings.max_output_tokens = 100;
        o.catalogue = catalogue(&[("t", &["_PostCompact"])]);
        o.hook_servers = vec![0];
    });
    rig.prompt(&"x".repeat(3000));
    rig.answer(&text("the summary"));
    rig.cancel();
    rig.hooks(vec![says("todo")]);
    assert_eq!(rig.told().last().map(String::as_str), Some("stop cancelled"));
    assert_eq!(rig.session.handoffs(), 1);
    assert_eq!(rig.asks.len(), 1);
}

#[test]
fn c22_a_cancelled_turn_reports_what_its_finished_rounds_cost() {
    let mut rig = Rig::new();
    rig.prompt("go");
    rig.answer(&costing(say_call("a"), 10, 5));
    rig.told();
    rig.cancel();
    rig.drain();
    assert_eq!(rig.told(), ["failed a: cancelled", "usage 10+5 total -", "stop cancelled"]);
}

#[test]
fn late_and_repeated_inputs_are_refused() {
    let mut rig = Rig::calling(2, |_| {});
    assert!(!rig.answer(&text("twice")));
    assert!(!rig.fail(status(500, "R"), ""));
    assert!(rig.finish(0, text_result("ok")));
    assert!(!rig.finish(0, text_result("again")));
    assert!(!rig.finish(7, text_result("no such call")));
    let of_another_round = Input::CallFinished {
        asked: 9,
        index: 1,
        outcome: CallOutcome::Returned,
        line: vec![],
        elapsed_ms: 0,
    };
    assert!(!rig.input(of_another_round));
    rig.finish(1, text_result("ok"));
    rig.answer(&text("done"));
    assert!(!rig.answer(&text("after the end")));
}
