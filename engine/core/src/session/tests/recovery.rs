//! Kills: what the log says afterwards, and how the session goes on.

use serde_json::json;

use super::rig::*;
use crate::record::{CallOutcome, Head, Record};
use crate::session::{Effect, INTERRUPTED_TEXT, REFLECTION};

/// The records up to and with the first one that `is`.
fn cut_at(log: &[Record], is: impl Fn(&Head) -> bool) -> Vec<Record> {
    let at = log.iter().position(|record| is(&record.head)).expect("such a record");
    log[..=at].to_vec()
}

fn is_started(head: &Head) -> bool {
    matches!(head, Head::CallsStarted { .. })
}

fn killed_while_calling() -> Rig {
    let mut rig = Rig::with(|o| o.settings.max_parallel_tools = 2);
    rig.prompt("go");
    let calls = ["a", "b", "c"].map(|id| (id, "t__say", json!("{}")));
    rig.answer(&costing(calls_of(&calls), 10, 5));
    rig.finish(1, text_result("b is done"));
    Rig::resume(&rig.log)
}

#[test]
fn c63_calls_without_a_result_get_one_that_says_so_as_records() {
    let mut rig = killed_while_calling();
    let before = rig.log.len();
    rig.recover();
    let outcomes: Vec<&Head> = rig.log[before..].iter().map(|r| &r.head).collect();
    let interrupted =
        |index| Head::CallFinished { asked: 1, index, outcome: CallOutcome::Interrupted, elapsed_ms: 0 };
    assert_eq!(outcomes[..2], [&interrupted(0), &interrupted(2)]);
    assert!(matches!(outcomes[2..], [Head::TurnInterrupted { .. }]));
    let told = |id: &str| format!("error {id} {INTERRUPTED_TEXT}\n{REFLECTION}");
    assert_eq!(rig.history()[2..], [told("a"), "result b b is done".into(), told("c")]);
    assert!(!rig.session.is_busy());
    assert!(rig.told().is_empty(), "who waited for it is gone");
    rig.prompt("go on");
    assert_eq!(unanswered(&rig.last_ask().body), None);
    assert_eq!(rig.messages().len(), 6);
    rig.answer(&text("done"));
    assert_eq!(rig.told().last().map(String::as_str), Some("stop end_turn"));
}

#[test]
fn c63_a_log_that_ends_at_the_start_of_a_call() {
    let mut rig = Rig::with(anthropic);
    rig.prompt("go");
    let call = json!({"type": "tool_use", "id": "a", "name": "t__say", "input": {}});
    rig.answer(&json!({"stop_reason": "tool_use", "content": [call]}));
    let mut resumed = Rig::resume(&cut_at(&rig.log, is_started));
    rig.cancel();
    rig.drain();
    resumed.recover();
    resumed.prompt("more");
    let message = &resumed.messages()[2];
    assert_eq!(message["content"][0]["tool_use_id"], "a");
    assert_eq!(message["content"][0]["is_error"], true);
    assert_eq!(unanswered(&resumed.last_ask().body), None);
    resumed.cancel();
}

#[test]
fn c64_a_second_resume_adds_nothing() {
    let mut rig = killed_while_calling();
    rig.recover();
    let after = state(&rig.session);
    assert!(rig.session.recovery().is_empty());
    let recovery: Vec<Record> = rig.log[rig.log.len() - 3..].to_vec();
    recovery.iter().for_each(|record| rig.session.fold(record));
    assert!(state(&rig.session) == after);
    let mut again = Rig::resume(&rig.log);
    assert!(again.session.recovery().is_empty());
    assert!(state(&again.session) == after);
    again.prompt("go on");
    again.cancel();
}

#[test]
fn c53_nothing_is_run_again_by_itself() {
    let mut rig = killed_while_calling();
    let (calls, asks) = (rig.calls.len(), rig.asks.len());
    rig.recover();
    assert_eq!((rig.calls.len(), rig.asks.len()), (calls, asks));
    let acts = |e: &Effect| {
        matches!(e, Effect::RunHooks { .. } | Effect::StopCalls { .. } | Effect::KillServer { .. })
    };
    assert_eq!(rig.count_effects(acts), 0);
}

#[test]
fn c21_a_killed_turn_keeps_what_its_rounds_cost() {
    let mut rig = Rig::new();
    rig.prompt("go");
    for cost in [10, 20, 30] {
        rig.answer(&costing(say_call("a"), cost, 1));
        rig.finish(0, text_result("ok"));
    }
    let mut resumed = Rig::resume(&rig.log);
    resumed.recover();
    assert_eq!((resumed.session.tally().input, resumed.session.tally().output), (Some(60), Some(3)));
    assert!(matches!(resumed.log.last().expect("one").head, Head::TurnInterrupted { .. }));
    let verdict = replayed(&resumed.log).turns()[0].clone();
    assert!(verdict.ended);
    rig.cancel();
}

#[test]
fn a_kill_during_a_request_keeps_the_prompt() {
    let mut rig = Rig::new();
    rig.prompt("go");
    let mut resumed = Rig::resume(&rig.log);
    resumed.recover();
    assert!(!resumed.answer_to(1, &text("late")));
    resumed.prompt("again");
    assert_eq!(resumed.history(), ["user go", "user again"]);
    resumed.cancel();
    rig.cancel();
}

#[test]
fn steers_that_were_accepted_before_a_kill_are_not_lost() {
    let mut rig = Rig::calling(1, |_| {});
    rig.steer("run_1", "wait");
    let mut resumed = Rig::resume(&rig.log);
    resumed.recover();
    resumed.prompt("again");
    assert_eq!(resumed.history()[3..], ["user wait", "user again"]);
    resumed.cancel();
    rig.cancel();
    rig.drain();
}

#[test]
fn a_cancel_takes_steers_back_even_if_a_kill_follows() {
    let mut rig = Rig::calling(1, |_| {});
    rig.steer("run_1", "wait");
    rig.cancel();
    let mut resumed = Rig::resume(&rig.log);
    resumed.recover();
    assert_eq!(resumed.history().len(), 3);
    rig.drain();
    assert_eq!(rig.history().len(), 3);
}

#[test]
fn a_kill_between_hooks_and_their_outcome_leaves_a_session_that_goes_on() {
    let mut rig = Rig::with(|o| {
        o.catalogue = catalogue(&[("t", &["_Stop"])]);
        o.hook_servers = vec![0];
    });
    rig.prompt("go");
    rig.answer(&text("done"));
    let mut resumed = Rig::resume(&rig.log);
    resumed.recover();
    assert!(!resumed.hooks(vec![says("late")]));
    resumed.prompt("again");
    assert_eq!(resumed.history(), ["user go", "assistant done", "user again"]);
    resumed.cancel();
    rig.hooks(vec![says("")]);
}

#[test]
fn a_kill_between_summary_and_replacement_keeps_the_history_whole() {
    let mut rig = Rig::with(|o| {
        o.settings.max_context_tokens = 2000;
        o.settings.max_output_tokens = 100;
    });
    let long = "x".repeat(3000);
    rig.prompt(&long);
    rig.answer(&text("summary"));
    let mut resumed = Rig::resume(&cut_at(&rig.log, |h| matches!(h, Head::RoundAnswered { .. })));
    resumed.recover();
    assert_eq!(resumed.history(), [format!("user {long}")]);
    assert_eq!(resumed.session.handoffs(), 0);
    rig.cancel();
}

#[test]
fn c71_a_log_cut_anywhere_replays_up_to_the_cut_and_reports_an_open_turn() {
    let mut rig = Rig::calling(2, |_| {});
    rig.steer("run_1", "more");
    rig.finish(1, text_result("b"));
    rig.finish(0, text_result("a"));
    rig.fail(status(500, "R"), "");
    rig.tick();
    rig.answer(&costing(text("done"), 10, 5));
    for cut in 1..=rig.log.len() {
        let replay = replayed(&rig.log[..cut]);
        let ended: Vec<bool> = replay.turns().iter().map(|turn| turn.ended).collect();
        let open = cut > 1;
        assert_eq!(ended, if open { vec![cut == rig.log.len()] } else { vec![] }, "cut at {cut}");
    }
}

#[test]
fn an_idle_session_has_nothing_to_recover() {
    let mut rig = Rig::new();
    assert!(rig.session.recovery().is_empty());
    rig.prompt("go");
    rig.answer(&text("done"));
    assert!(rig.session.recovery().is_empty());
    let resumed = Rig::resume(&rig.log);
    assert!(state(&resumed.session) == state(&rig.session));
}

#[test]
fn what_a_round_adds_to_the_log_does_not_grow_with_the_turn() {
    for in_anthropic in [false, true] {
        let mut rig = Rig::with(|o| {
            if in_anthropic {
                anthropic(o)
            }
        });
        rig.prompt(&"p".repeat(5000));
        let block = json!({"type": "tool_use", "id": "a", "name": "t__say", "input": {}});
        let call =
            if in_anthropic { json!({"stop_reason": "tool_use", "content": [block]}) } else { say_call("a") };
        for _ in 0..40 {
            rig.answer(&call);
            rig.finish(0, text_result(&"r".repeat(500)));
        }
        let raw = rig.log.iter().filter(|r| matches!(r.head, Head::RoundAsked { .. })).map(|r| r.raw.len());
        let raw: Vec<usize> = raw.collect();
        assert!(raw[0] > 5000 && raw[1..].iter().all(|bytes| *bytes < 900), "{raw:?}");
        assert!(rig.last_ask().bytes.len() > 30_000);
        let heads = rig
            .log
            .iter()
            .filter(|r| matches!(r.head, Head::RoundAsked { .. }))
            .map(|r| r.encode_head().1.len());
        assert!(heads.clone().all(|bytes| bytes < 700), "{:?}", heads.collect::<Vec<_>>());
        rig.cancel();
    }
}

#[test]
fn a_session_that_was_resumed_sends_the_same_next_request() {
    for model in [|_: &mut crate::record::SessionOpened| {}, anthropic] {
        let mut rig = Rig::with(model);
        rig.prompt("one");
        rig.cancel();
        rig.prompt("two");
        rig.cancel();
        let mut resumed = Rig::resume(&rig.log);
        rig.prompt("three");
        let promised = resumed.session.next_request("three").to_vec();
        resumed.prompt("three");
        assert_eq!(resumed.last_ask().bytes, rig.last_ask().bytes);
        assert_eq!(promised, rig.last_ask().bytes);
        rig.cancel();
        resumed.cancel();
    }
}
