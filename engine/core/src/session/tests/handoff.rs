//! A full context: the gate, the summary, what replaces the history, and plain truncation.

use serde_json::{json, Value};

use super::rig::*;
use crate::handoff::SUMMARY_SYSTEM_PROMPT;
use crate::record::{Head, SessionOpened};
use crate::session::Effect;

fn summaries(rig: &Rig) -> usize {
    rig.count_records(|h| matches!(h, Head::SummaryAsked { .. }))
}

fn truncations(rig: &Rig) -> usize {
    rig.count_records(|h| matches!(h, Head::HistoryTruncated { .. }))
}

fn window(tokens: u64, output: u32) -> impl FnOnce(&mut SessionOpened) {
    move |o| {
        o.settings.max_context_tokens = tokens;
        o.settings.max_output_tokens = output;
        // A summary's prompt needs room of its own; these tests look at other things.
        o.catalogue = catalogue(&[("t", &["say"])]);
    }
}

#[test]
fn a_reported_input_over_the_threshold_costs_a_summary_before_the_next_request() {
    let mut rig = Rig::with(window(1000, 100));
    rig.prompt("first");
    rig.answer(&costing(text("ok"), 950, 10));
    rig.prompt("second");
    assert_eq!(rig.asks.len(), 2);
    let ask = rig.last_ask().clone();
    let keys: Vec<&String> = ask.body.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["max_completion_tokens", "messages", "model", "stream"]);
    assert_eq!(ask.body["max_completion_tokens"], 8192);
    assert_eq!(ask.body["messages"][0], json!({"content": SUMMARY_SYSTEM_PROMPT, "role": "system"}));
    assert_eq!((ask.first, ask.keepalive), (true, false));
    rig.told();
    rig.answer(&text("what happened\n"));
    assert!(rig.told().is_empty(), "a handoff says nothing to the client");
    assert_eq!(rig.asks.len(), 3);
    assert_eq!(rig.history(), ["user [Context Handoff]\nwhat happened\n", "user second"]);
    assert_eq!((rig.session.handoffs(), rig.session.last_usage()), (1, None));
    let logged = rig.count_effects(
        |e| matches!(e, Effect::Inform(text) if text.starts_with("handoff #1 (history 3 -> 2 items; ")),
    );
    assert_eq!(logged, 1);
    rig.answer(&text("done"));
    assert_eq!(rig.told(), ["message done", "stop end_turn"]);
}

#[test]
fn a_large_result_leads_to_a_handoff_inside_the_turn() {
    let mut rig = Rig::with(window(10_000, 100));
    rig.prompt("go");
    rig.answer(&costing(say_call("a"), 8500, 10));
    rig.finish(0, text_result(&"r".repeat(6000)));
    assert_eq!(summaries(&rig), 1);
    rig.answer(&text("summary"));
    assert_eq!(rig.asks.len(), 3);
    assert_eq!(rig.history(), ["user [Context Handoff]\nsummary", "user go"]);
    assert!(rig.messages().iter().all(|m| m["role"] == "user"));
    rig.answer(&text("done"));
}

#[test]
fn reported_tokens_trigger_from_the_threshold_on_and_bytes_only_above_it() {
    // Window 1000, output 100: the threshold is 900.
    for (input, handed) in [(899, 0), (900, 1)] {
        let mut rig = Rig::with(window(1000, 100));
        rig.prompt("");
        rig.answer(&costing(text(""), input, 1));
        rig.prompt("");
        assert_eq!(summaries(&rig), handed, "{input}");
        rig.cancel();
    }
    for (bytes, handed) in [(900, 0), (901, 1)] {
        let mut rig = Rig::with(window(1000, 100));
        rig.prompt(&"x".repeat(bytes));
        assert_eq!(summaries(&rig), handed, "{bytes}");
        rig.cancel();
    }
}

#[test]
fn what_came_after_the_report_is_counted_a_token_a_byte() {
    for (bytes, handed) in [(99, 0), (100, 1)] {
        let mut rig = Rig::with(window(1000, 100));
        rig.prompt("");
        rig.answer(&costing(text(""), 800, 1));
        rig.prompt(&"x".repeat(bytes));
        assert_eq!(summaries(&rig), handed, "{bytes}");
        rig.cancel();
    }
}

#[test]
fn without_a_report_a_small_history_budget_triggers_too() {
    for (bytes, handed) in [(7371, 0), (7372, 1)] {
        let mut rig = Rig::with(|o| o.settings.max_history_bytes = 8192);
        rig.prompt(&"x".repeat(bytes));
        assert_eq!(summaries(&rig), handed, "{bytes}");
        rig.cancel();
    }
}

#[test]
fn a_failing_or_blank_summary_only_truncates_and_is_tried_again_next_round() {
    for failing in [false, true] {
        let mut rig = Rig::with(|o| {
            window(2000, 100)(o);
            o.settings.max_history_bytes = 2100;
        });
        rig.prompt("old");
        rig.answer(&costing(text("ok"), 1900, 10));
        rig.prompt(&"x".repeat(2100));
        if failing {
            rig.fail(status(400, "Bad Request"), "no");
        } else {
            rig.answer(&text(" \n"));
        }
        assert_eq!((rig.session.handoffs(), truncations(&rig)), (0, 1));
        assert!(rig.session.last_usage().is_some());
        assert_eq!(rig.history(), [format!("user {}", "x".repeat(2100))]);
        assert_eq!(rig.asks.len(), 3);
        rig.answer(&say_call("a"));
        rig.finish(0, text_result("ok"));
        assert_eq!(summaries(&rig), 2);
        assert_eq!(rig.count_effects(|e| matches!(e, Effect::Warn(_))), 1);
        rig.cancel();
    }
}

#[test]
fn a_refused_credential_fails_a_summary_and_not_the_turn() {
    let mut rig = Rig::with(|o| {
        window(2000, 100)(o);
        anthropic(o);
    });
    rig.prompt(&"x".repeat(3000));
    rig.fail(status(401, "Unauthorized"), "no");
    assert_eq!(rig.asks.len(), 2);
    assert_eq!(rig.last_ask().body["max_tokens"], 100);
    rig.cancel();
}

#[test]
fn zero_handoffs_never_summarise_and_after_the_cap_there_is_only_truncation() {
    let mut rig = Rig::with(|o| {
        window(1000, 100)(o);
        o.settings.max_handoffs = 0;
    });
    rig.prompt(&"x".repeat(5000));
    assert_eq!((rig.asks.len(), summaries(&rig)), (1, 0));
    rig.cancel();
    let mut rig = Rig::with(|o| {
        window(1000, 100)(o);
        o.settings.max_handoffs = 1;
        o.settings.max_history_bytes = 3000;
    });
    rig.prompt(&"x".repeat(2000));
    rig.answer(&text("summary"));
    rig.answer(&text("done"));
    assert_eq!(rig.session.handoffs(), 1);
    rig.prompt(&"y".repeat(2000));
    assert_eq!((summaries(&rig), truncations(&rig)), (1, 1));
    assert_eq!(rig.history(), [format!("user {}", "y".repeat(2000))]);
    rig.cancel();
}

#[test]
fn nothing_is_truncated_in_the_round_of_a_handoff() {
    let mut rig = Rig::with(|o| {
        window(1000, 100)(o);
        o.settings.max_history_bytes = 1500;
    });
    rig.prompt(&"x".repeat(1490));
    rig.answer(&text(&"s".repeat(100)));
    assert_eq!(truncations(&rig), 0);
    assert_eq!(rig.session.history().items().len(), 2);
    assert!(rig.session.history().wire_bytes() > 1500);
    rig.cancel();
}

#[test]
fn after_a_steer_the_second_item_is_the_steer() {
    let mut rig = Rig::with(window(10_000, 100));
    rig.prompt("go");
    rig.answer(&costing(say_call("a"), 8999, 10));
    rig.steer("run_1", "the steer");
    rig.finish(0, text_result("ok"));
    assert_eq!(summaries(&rig), 1);
    assert!(rig.messages()[0]["content"].as_str().expect("text").contains("[user] the steer\n"));
    rig.answer(&text("summary"));
    assert_eq!(rig.history(), ["user [Context Handoff]\nsummary", "user the steer"]);
    assert_eq!(rig.session.original_task(), Some("go"));
    rig.cancel();
}

#[test]
fn the_summary_is_asked_of_the_turns_model_on_every_wire() {
    let mut rig = Rig::with(|o| {
        window(2000, 100)(o);
        anthropic(o);
    });
    rig.set_model("claude-x");
    rig.prompt(&"x".repeat(3000));
    let prompt = rig.last_ask().body["messages"][0]["content"][0]["text"].clone();
    assert_eq!(
        rig.last_ask().body,
        json!({"max_tokens": 8192, "messages": [{"content": [{"text": prompt, "type": "text"}], "role": "user"}],
            "model": "claude-x", "system": SUMMARY_SYSTEM_PROMPT})
    );
    rig.cancel();
}

#[test]
fn the_prompt_names_task_tools_and_history() {
    let mut rig = Rig::with(|o| {
        window(20_000, 100)(o);
        o.catalogue = catalogue(&[("t", &["say", "_Stop"]), ("u", &["do"])]);
    });
    rig.prompt("the task");
    rig.answer(&costing(
        calls_of(&[("a", "t__say", json!("{\"secret\":1}")), ("b", "t__nope", json!("{}"))]),
        19_000,
        10,
    ));
    rig.finish(0, text_result("fine"));
    let prompt = rig.messages()[0]["content"].as_str().expect("text").to_owned();
    let start = "[Internal handoff #1 \u{2014} context reset]\n\n# Original Task\nthe task\n\n# Available Tools\n\
                 t__say, u__do\n\n# Session History (oldest first)\n[user] the task\n[assistant]  tool:t__say \
                 tool:t__nope\n[tool] fine\n[tool_err] unknown tool: t__nope\n\n\n[Reflect] Before retrying, identify \
                 the cause and change your approach.\n\n# Instructions\n";
    assert!(prompt.starts_with(start), "{prompt}");
    rig.cancel();
}

#[test]
fn post_compact_words_stand_in_a_user_message_under_their_own_header() {
    let mut rig = Rig::with(|o| {
        window(10_000, 100)(o);
        o.catalogue =
            catalogue(&[("t", &["say", "_PostCompact"]), ("u", &["_PostCompact"]), ("v", &["_PostCompact"])]);
        o.hook_servers = vec![0, 1, 2];
    });
    rig.prompt("go");
    rig.answer(&costing(say_call("a"), 9000, 10));
    rig.finish(0, text_result("ok"));
    rig.answer(&text("summary"));
    assert_eq!(rig.asks.len(), 2, "the hooks come first");
    assert_eq!(rig.asked_hooks().1, [0, 1, 2]);
    assert_eq!(rig.history().len(), 3, "the history is still whole");
    rig.hooks(vec![says("todo 1"), says(" "), says(" todo 2 ")]);
    assert_eq!(
        rig.messages(),
        [
            json!({"content": "[Context Handoff]\nsummary\n\n[Post-compact hook output \u{2014} untrusted]\n[t]\ntodo 1\n\n[v]\n todo 2 ", "role": "user"}),
            json!({"content": "go", "role": "user"}),
        ]
    );
    rig.cancel();
}

#[test]
fn silent_post_compact_hooks_add_no_header() {
    let mut rig = Rig::with(|o| {
        window(2000, 100)(o);
        o.catalogue = catalogue(&[("t", &["_PostCompact"])]);
        o.hook_servers = vec![0];
    });
    rig.prompt(&"x".repeat(3000));
    rig.answer(&text("summary"));
    rig.hooks(vec![Heard::TimedOut]);
    assert_eq!(rig.history()[0], "user [Context Handoff]\nsummary");
    assert_eq!(rig.session.servers()[0].hook_timeouts, 1);
    rig.cancel();
}

#[test]
fn c40_an_image_is_no_reason_for_a_handoff_but_counts_in_full_on_the_wire() {
    let mut rig = Rig::calling(1, |o| o.settings.max_context_tokens = 200_000);
    rig.finish(
        0,
        json!({"content": [{"type": "image", "data": "d".repeat(3_100_000), "mimeType": "image/png"}]}),
    );
    assert_eq!(summaries(&rig), 0);
    assert_eq!(rig.asks.len(), 2);
    assert!(rig.session.history().wire_bytes() > 3_100_000);
    assert!(rig.session.history().pressure_bytes() < 17_000);
    rig.cancel();
}

#[test]
fn c41_many_images_are_truncated_by_their_real_size() {
    let mut rig = Rig::with(|o| {
        o.settings.max_history_bytes = 5_000_000;
        o.settings.max_context_tokens = 50_000_000;
    });
    for n in 0..4 {
        rig.prompt(&format!("image {n}"));
        rig.answer(&say_call("a"));
        rig.finish(
            0,
            json!({"content": [{"type": "image", "data": "d".repeat(2_000_000), "mimeType": "image/png"}]}),
        );
        rig.answer(&text("seen"));
        assert!(rig.last_ask().bytes.len() < 5_100_000, "{n}");
    }
    assert!(truncations(&rig) > 0);
}

#[test]
fn a_long_session_without_handoffs_keeps_its_requests_bounded() {
    const BUDGET: u64 = 1_048_576;
    let mut rig = Rig::with(|o| {
        o.settings.max_history_bytes = BUDGET;
        o.settings.max_handoffs = 0;
    });
    for n in 0..12 {
        let prompt = format!("prompt {n} {}", "p".repeat(200_000));
        rig.prompt(&prompt);
        assert!(rig.last_ask().bytes.len() as u64 <= BUDGET + 2000);
        assert_eq!(rig.messages().last().expect("one")["content"], json!(prompt));
        rig.answer(&text("ok"));
    }
    assert!(truncations(&rig) > 0);
}

#[test]
fn a_block_over_the_budget_stays_whole_with_its_pairs() {
    let mut rig = Rig::calling(2, |o| {
        o.settings.max_history_bytes = 500;
        o.settings.max_handoffs = 0;
    });
    rig.finish(0, text_result(&"r".repeat(2000)));
    rig.finish(1, text_result("ok"));
    assert_eq!(truncations(&rig), 0);
    assert_eq!(rig.messages().len(), 4);
    rig.answer(&text("done"));
    rig.prompt("next");
    assert_eq!(rig.history(), ["user next"]);
    assert_eq!(rig.messages(), [json!({"content": "next", "role": "user"})]);
    rig.cancel();
}

#[test]
fn truncation_and_handoff_keep_the_anthropic_marks_on_the_last_two_messages() {
    let mut rig = Rig::with(|o| {
        anthropic(o);
        o.settings.max_history_bytes = 1000;
        o.settings.max_handoffs = 0;
    });
    let answer = json!({"stop_reason": "end_turn", "content": [{"type": "text", "text": "ok"}]});
    for n in 0..6 {
        rig.prompt(&format!("{n} {}", "x".repeat(300)));
        let marks: Vec<bool> =
            rig.messages().iter().map(|m| m["content"][0].get("cache_control").is_some()).collect();
        let plain = marks.len().saturating_sub(2);
        assert!(marks.iter().enumerate().all(|(at, marked)| *marked == (at >= plain)), "{marks:?}");
        rig.answer(&answer);
    }
    assert!(truncations(&rig) > 0);
    let roles: Vec<Value> = rig.messages().iter().map(|m| m["role"].clone()).collect();
    assert_eq!(roles[0], "user");
}

#[test]
fn c30_what_was_spent_never_falls_over_a_handoff() {
    let mut rig = Rig::with(window(1000, 100));
    rig.prompt("first");
    rig.answer(&costing(text("ok"), 950, 10));
    rig.prompt("second");
    rig.answer(&costing(text("summary"), 900, 50));
    rig.answer(&costing(text("done"), 20, 5));
    let used = rig.lines.iter().filter_map(|l| l["params"]["update"]["used"].as_u64());
    assert_eq!(used.collect::<Vec<_>>(), [960, 960, 1910, 1935, 1935]);
    let last = rig.session.last_usage().expect("reported");
    assert_eq!(last.input_tokens, 20, "a summary says nothing of the history's size");
}

#[test]
fn a_summary_is_tried_again_like_any_request_before_it_is_given_up() {
    let mut rig = Rig::with(window(2000, 100));
    rig.prompt(&"x".repeat(3000));
    rig.fail(status(500, "R"), "");
    assert_eq!(
        (rig.last_ask().after_ms, rig.last_ask().first, rig.last_ask().keepalive),
        (375, false, false)
    );
    rig.answer(&json!({"error": {"code": 429, "message": "slow"}}));
    assert_eq!(rig.last_ask().after_ms, 750);
    rig.fail(status(500, "R"), "");
    assert_eq!((rig.asks.len(), rig.session.handoffs()), (4, 0));
    assert!(rig.last_ask().body.get("tools").is_some(), "the round itself");
    rig.cancel();
}

#[test]
fn a_summary_that_is_no_answer_or_holds_only_calls_is_blank() {
    for body in [say_call("a"), json!({}), json!({"choices": [{"message": {"content": null}}]})] {
        let mut rig = Rig::with(window(2000, 100));
        rig.prompt(&"x".repeat(3000));
        rig.told();
        rig.answer(&body);
        assert_eq!((rig.asks.len(), rig.session.handoffs()), (2, 0));
        assert!(rig.calls.is_empty() && rig.told().is_empty());
        rig.cancel();
    }
}

#[test]
fn reasoning_details_come_back_before_the_results_and_count_in_both_sizes() {
    let mut rig =
        Rig::with(|o| o.settings.provider = crate::provider::Provider::of_word("openrouter").expect("known"));
    rig.prompt("go");
    let details = json!([{"type": "reasoning.text", "text": "hm"}]);
    let mut answer = say_call("a");
    answer["choices"][0]["message"]["reasoning_details"] = details.clone();
    let history = rig.session.history().clone();
    rig.answer(&answer);
    let size = ("a".len() + "t__say".len() + 2 * "{}".len() + details.to_string().len()) as u64;
    assert_eq!(rig.session.history().wire_bytes() - history.wire_bytes(), size);
    assert_eq!(rig.session.history().pressure_bytes() - history.pressure_bytes(), size);
    rig.finish(0, text_result("ok"));
    assert_eq!(rig.messages()[1]["reasoning_details"], details);
    assert_eq!(rig.messages()[2]["role"], "tool");
    rig.cancel();
}
