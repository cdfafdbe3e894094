//! What may hold the end of a turn open: servers' hooks and the reply guard.

use serde_json::{json, Value};

use super::rig::*;
use crate::guard::REMINDER;
use crate::mcp::ServerEvent;
use crate::record::{Head, SessionOpened};
use crate::session::Effect;

fn one_hook(o: &mut SessionOpened) {
    o.catalogue = catalogue(&[("t", &["say", "shell", "_Stop"])]);
    o.hook_servers = vec![0];
}

fn guarded(o: &mut SessionOpened) {
    o.settings.require_reply = true;
}

fn rejections(rig: &Rig) -> usize {
    rig.count_records(end_rejected())
}

/// How many messages of the last request are objections of `server`.
fn objections(rig: &Rig, server: &str) -> usize {
    let says = |m: &&Value| {
        let words: Option<Value> = m["content"].as_str().and_then(|text| serde_json::from_str(text).ok());
        m["role"] == "tool" && words.is_some_and(|words| words["server"] == server)
    };
    rig.messages().iter().filter(says).count()
}

#[test]
fn an_objection_stands_as_the_result_of_a_call_that_nobody_made() {
    let mut rig = Rig::with(one_hook);
    rig.prompt("go");
    rig.answer(&text("done"));
    assert_eq!(rig.told(), ["run run_1", "message done"]);
    rig.hooks(vec![says("2 items \"open\"")]);
    assert!(rig.told().is_empty());
    assert_eq!(
        rig.messages()[1..],
        [
            json!({"content": "done", "role": "assistant"}),
            json!({"content": "", "role": "assistant", "tool_calls": [
                {"function": {"arguments": "{}", "name": "t___Stop"}, "id": "buzz_hook__Stop_t_0", "type": "function"}]}),
            json!({"content": r#"{"hook":"_Stop","server":"t","text":"2 items \"open\""}"#, "role": "tool",
                "tool_call_id": "buzz_hook__Stop_t_0"}),
        ]
    );
    rig.answer(&text("done again"));
    rig.hooks(vec![says("")]);
    assert_eq!(rig.told(), ["message done again", "stop end_turn"]);
}

#[test]
fn objections_are_numbered_through_the_session_and_ordered_by_server() {
    let mut rig = Rig::with(|o| {
        o.catalogue = catalogue(&[("t", &["_Stop"]), ("u", &["say"]), ("v", &["_Stop"])]);
        o.hook_servers = vec![0, 1, 2];
    });
    rig.prompt("go");
    rig.answer(&text("done"));
    assert_eq!(rig.asked_hooks().1, [0, 2], "only those that have it");
    rig.hooks(vec![says("one"), says("two")]);
    rig.answer(&text("done"));
    rig.hooks(vec![says(""), says("three")]);
    let ids: Vec<Value> = rig.messages().iter().filter_map(|m| m.get("tool_call_id").cloned()).collect();
    assert_eq!(ids, ["buzz_hook__Stop_t_0", "buzz_hook__Stop_v_1", "buzz_hook__Stop_v_2"]);
    rig.cancel();
}

#[test]
fn a_budget_of_one_takes_one_objection_and_does_not_ask_again() {
    let mut rig = Rig::with(|o| {
        one_hook(o);
        o.settings.stop_max_rejections = 1;
    });
    rig.prompt("go");
    rig.answer(&text("done"));
    rig.hooks(vec![says("not yet")]);
    rig.answer(&say_call("a"));
    rig.finish(0, text_result("ok"));
    rig.answer(&text("done"));
    assert_eq!(rig.asks.len(), 3);
    assert_eq!(rig.count_records(|h| matches!(h, Head::HooksAsked { .. })), 1);
    assert_eq!(rig.told().last().map(String::as_str), Some("stop end_turn"));
}

#[test]
fn a_budget_of_two_ends_at_the_third_answer() {
    let mut rig = Rig::with(|o| {
        one_hook(o);
        o.settings.stop_max_rejections = 2;
    });
    rig.prompt("go");
    for _ in 0..2 {
        rig.answer(&text("done"));
        rig.hooks(vec![says("not yet")]);
    }
    rig.answer(&text("done"));
    assert_eq!((rig.asks.len(), rejections(&rig)), (3, 2));
    assert_eq!(rig.told().last().map(String::as_str), Some("stop end_turn"));
}

#[test]
fn a_budget_of_zero_asks_nobody() {
    let mut rig = Rig::with(|o| {
        one_hook(o);
        guarded(o);
        o.settings.stop_max_rejections = 0;
    });
    rig.prompt("go");
    rig.answer(&text("done"));
    assert_eq!(rig.told(), ["run run_1", "message done", "stop end_turn"]);
    assert_eq!(rig.count_records(|h| matches!(h, Head::HooksAsked { .. })), 0);
}

#[test]
fn each_prompt_has_its_own_budget() {
    let mut rig = Rig::with(|o| {
        one_hook(o);
        o.settings.stop_max_rejections = 1;
    });
    for _ in 0..2 {
        rig.prompt("go");
        rig.answer(&text("done"));
        rig.hooks(vec![says("not yet")]);
        rig.answer(&text("done"));
        assert!(!rig.session.is_busy());
    }
    assert_eq!(rig.asks.len(), 4);
}

#[test]
fn a_slow_failed_blank_or_erroneous_hook_is_silence() {
    let error = json!({"jsonrpc": "2.0", "id": 1, "result": error_result("no")}).to_string().into_bytes();
    let rejected = br#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}"#.to_vec();
    for heard in [
        Heard::TimedOut,
        Heard::Failed,
        says(""),
        says(" \n"),
        Heard::Line(error),
        Heard::Line(rejected),
        Heard::Line(b"junk".to_vec()),
        Heard::Line(vec![]),
    ] {
        let mut rig = Rig::with(one_hook);
        rig.prompt("go");
        rig.answer(&text("done"));
        rig.hooks(vec![heard]);
        assert_eq!(rig.told(), ["run run_1", "message done", "stop end_turn"]);
        assert_eq!(rig.asks.len(), 1);
    }
}

#[test]
fn silence_of_one_does_not_shift_the_words_of_another() {
    let mut rig = Rig::with(|o| {
        o.catalogue = catalogue(&[("t", &["_Stop"]), ("u", &["_Stop"]), ("v", &["_Stop"])]);
        o.hook_servers = vec![0, 1, 2];
    });
    rig.prompt("go");
    rig.answer(&text("done"));
    rig.hooks(vec![says(" first "), Heard::TimedOut, says("third")]);
    let words: Vec<Value> =
        rig.messages().iter().filter(|m| m["role"] == "tool").map(|m| m["content"].clone()).collect();
    assert_eq!(
        words,
        [
            r#"{"hook":"_Stop","server":"t","text":" first "}"#,
            r#"{"hook":"_Stop","server":"v","text":"third"}"#
        ]
    );
    rig.cancel();
}

#[test]
fn a_hook_says_at_most_16_kib() {
    let mut rig = Rig::with(one_hook);
    rig.prompt("go");
    rig.answer(&text("done"));
    rig.hooks(vec![says(&"h".repeat(100_000))]);
    let words = rig.messages().last().expect("one")["content"].as_str().expect("text").to_owned();
    let words: Value = serde_json::from_str(&words).expect("JSON");
    assert!(words["text"].as_str().expect("text").len() <= 16_384);
    rig.cancel();
}

#[test]
fn the_second_timeout_in_a_row_kills_the_server_across_turns_and_hooks() {
    let kills = |rig: &Rig| rig.count_effects(|e| matches!(e, Effect::KillServer { server: 0, .. }));
    let mut rig = Rig::with(one_hook);
    for (heard, killed, count) in [
        (Heard::TimedOut, 0, 1),
        (Heard::Failed, 0, 1),
        (Heard::TimedOut, 1, 0),
        (Heard::TimedOut, 1, 1),
        (says(""), 1, 0),
        (Heard::TimedOut, 1, 1),
        (Heard::Line(br#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}"#.to_vec()), 1, 0),
        (Heard::TimedOut, 1, 1),
        (Heard::TimedOut, 2, 0),
    ] {
        rig.prompt("go");
        rig.answer(&text("done"));
        rig.hooks(vec![heard]);
        assert_eq!((kills(&rig), rig.session.servers()[0].hook_timeouts), (killed, count));
    }
    rig.server(0, ServerEvent::Died { reason: "killed".into(), attempt: 1, retry_in_ms: 500 });
    assert_eq!(rig.session.servers()[0].attempts, 1);
}

#[test]
fn a_server_that_is_given_up_or_not_allowed_is_not_asked() {
    let mut rig = Rig::with(one_hook);
    rig.prompt("go");
    rig.server(0, ServerEvent::Exhausted);
    rig.answer(&text("done"));
    assert_eq!(rig.told(), ["run run_1", "message done", "stop end_turn"]);
    let mut rig = Rig::with(|o| {
        one_hook(o);
        o.hook_servers = vec![];
    });
    rig.prompt("go");
    rig.answer(&text("done"));
    assert_eq!(rig.told(), ["run run_1", "message done", "stop end_turn"]);
}

#[test]
fn late_and_repeated_hook_outcomes_are_refused() {
    let mut rig = Rig::with(one_hook);
    rig.prompt("go");
    rig.answer(&text("done"));
    assert!(rig.hooks(vec![says("not yet")]));
    assert!(!rig.hooks(vec![says("again")]));
    rig.answer(&text("done"));
    rig.hooks(vec![says("")]);
    assert!(!rig.hooks(vec![says("")]));
}

#[test]
fn a_silent_turn_is_reminded_twice() {
    let mut rig = Rig::with(guarded);
    rig.prompt("go");
    for reminders in 0..3 {
        assert_eq!(objections(&rig, "buzz-agent"), reminders);
        rig.answer(&text("done"));
    }
    assert_eq!(rig.asks.len(), 3);
    assert!(!rig.session.is_busy());
    let reminder = json!({"hook": "_Stop", "server": "buzz-agent", "text": REMINDER}).to_string();
    let [.., call, words] = &rig.messages()[..] else { panic!("a pair") };
    assert_eq!(call["tool_calls"][0]["function"]["name"], "buzz-agent___Stop");
    assert_eq!(
        words,
        &json!({"content": reminder, "role": "tool", "tool_call_id": "buzz_hook__Stop_buzz-agent_1"})
    );
    assert!(REMINDER.contains("buzz messages send") && REMINDER.contains("silence is genuinely correct"));
}

#[test]
fn the_guard_shares_the_budget_and_starts_anew_with_each_prompt() {
    for (budget, requests) in [(0, 1), (1, 2), (2, 3), (10, 3)] {
        let mut rig = Rig::with(|o| {
            guarded(o);
            o.settings.stop_max_rejections = budget;
        });
        for turn in 1..=2 {
            rig.prompt("go");
            while rig.session.is_busy() {
                rig.answer(&text("done"));
            }
            assert_eq!(rig.asks.len(), requests * turn, "budget {budget}");
        }
    }
}

#[test]
fn a_reply_through_a_registered_shell_counts_even_if_it_fails() {
    let mut rig = Rig::with(guarded);
    rig.prompt("go");
    rig.answer(&calls_of(&[("a", "t__shell", json!({"command": "buzz messages send hi"}))]));
    rig.finish(0, error_result("offline"));
    rig.answer(&text("done"));
    assert_eq!(rejections(&rig), 0);
    assert!(!rig.session.is_busy());
    rig.prompt("more");
    rig.answer(&text("done"));
    assert_eq!(rejections(&rig), 1, "it is per turn");
    rig.cancel();
}

#[test]
fn what_is_no_reply_is_reminded() {
    for call in [
        ("a", "u__shell", json!({"command": "buzz messages send hi"})),
        ("a", "t__say", json!({"command": "buzz messages send hi"})),
        ("a", "t__shell", json!({"command": "cargo test"})),
        ("a", "t__shell", json!({"command": 3})),
        ("a", "t__shell", json!({"text": "buzz messages send hi"})),
        ("a", "t__shell", json!("\"buzz messages send hi\"")),
    ] {
        let mut rig = Rig::with(guarded);
        rig.prompt("go");
        rig.answer(&calls_of(std::slice::from_ref(&call)));
        if !rig.calls.is_empty() {
            rig.finish(0, text_result("ok"));
        }
        rig.answer(&text("done"));
        assert_eq!(rejections(&rig), 1, "{call:?}");
        rig.cancel();
    }
}

#[test]
fn a_reply_lost_to_the_cap_on_calls_is_no_reply() {
    let mut rig = Rig::with(guarded);
    rig.prompt("go");
    let ids: Vec<String> = (0..64).map(|n| format!("c{n}")).collect();
    let mut calls: Vec<_> = ids.iter().map(|id| (id.as_str(), "t__nope", json!("{}"))).collect();
    calls.push(("last", "t__shell", json!({"command": "buzz messages send hi"})));
    rig.answer(&calls_of(&calls));
    assert!(rig.calls.is_empty());
    rig.answer(&text("done"));
    assert_eq!(rejections(&rig), 1);
    rig.cancel();
}

#[test]
fn guard_and_hook_object_side_by_side_and_the_reminder_comes_last() {
    let mut rig = Rig::with(|o| {
        one_hook(o);
        guarded(o);
        o.settings.stop_max_rejections = 10;
    });
    rig.prompt("go");
    for _ in 0..3 {
        rig.answer(&text("done"));
        rig.hooks(vec![says("not yet")]);
    }
    let counts = |at: usize| {
        let text = String::from_utf8_lossy(&rig.asks[at].bytes).into_owned();
        (
            text.matches("\"buzz_hook__Stop_buzz-agent_").count() / 2,
            text.matches("\"buzz_hook__Stop_t_").count() / 2,
        )
    };
    assert_eq!((0..4).map(counts).collect::<Vec<_>>(), [(0, 0), (1, 1), (2, 2), (2, 3)]);
    let pairs = rig.asks[1].body["messages"].as_array().expect("messages").clone();
    assert_eq!(pairs.last().expect("one")["tool_call_id"], "buzz_hook__Stop_buzz-agent_1");
    rig.answer(&text("done"));
    rig.hooks(vec![says("")]);
    assert_eq!(rig.asks.len(), 4);
    assert!(!rig.session.is_busy());
}

#[test]
fn tools_between_two_ends_do_not_reset_the_reminders() {
    let mut rig = Rig::with(guarded);
    rig.prompt("go");
    for _ in 0..2 {
        rig.answer(&text("done"));
        rig.answer(&say_call("a"));
        rig.finish(0, text_result("ok"));
    }
    rig.answer(&text("done"));
    assert_eq!(rejections(&rig), 2);
    assert!(!rig.session.is_busy());
}
