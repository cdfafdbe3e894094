//! What a turn cost, as the client is told.

use serde_json::json;

use super::rig::*;
use crate::acp::Profile;
use crate::record::{Head, Record};

fn usages(rig: &mut Rig) -> Vec<String> {
    rig.told().into_iter().filter(|line| line.starts_with("usage")).collect()
}

#[test]
fn sums_run_over_the_session_and_precede_the_answer() {
    let mut rig = Rig::new();
    rig.prompt("one");
    rig.answer(&costing(text("1"), 10, 5));
    assert_eq!(
        rig.told(),
        ["run run_1", "usage 10+5 total -", "message 1", "usage 10+5 total -", "stop end_turn"]
    );
    rig.prompt("two");
    rig.answer(&costing(text("2"), 20, 8));
    assert_eq!(
        rig.told(),
        ["run run_2", "usage 30+13 total -", "message 2", "usage 30+13 total -", "stop end_turn"]
    );
}

#[test]
fn without_a_report_nothing_is_told() {
    let mut rig = Rig::new();
    rig.prompt("one");
    rig.answer(&text("1"));
    assert!(usages(&mut rig).is_empty());
    rig.prompt("two");
    let mut total_only = text("2");
    total_only["usage"] = json!({"total_tokens": 10});
    rig.answer(&total_only);
    assert!(usages(&mut rig).is_empty());
    assert!(!rig.session.tally().is_reported());
}

#[test]
fn a_turn_without_a_report_does_not_repeat_the_last_ones() {
    let mut rig = Rig::new();
    rig.prompt("one");
    rig.answer(&costing(text("1"), 10, 5));
    rig.told();
    rig.prompt("two");
    rig.answer(&text("2"));
    assert!(usages(&mut rig).is_empty());
}

#[test]
fn each_round_that_reports_is_told_and_the_last_one_again_at_the_end() {
    let mut rig = Rig::new();
    rig.prompt("go");
    for (n, cost) in [(1, 10), (2, 20)] {
        rig.answer(&costing_total(say_call(&format!("c{n}")), cost, 1, cost + 1));
        rig.finish(0, text_result("ok"));
    }
    rig.answer(&text("no usage here"));
    assert_eq!(usages(&mut rig), ["usage 10+1 total 11", "usage 30+2 total 32", "usage 30+2 total 32"]);
}

#[test]
fn c28_one_missing_total_hides_the_total_for_good() {
    let mut rig = Rig::new();
    for (n, answer) in
        [costing_total(text("1"), 10, 5, 15), costing(text("2"), 15, 6), costing_total(text("3"), 20, 8, 28)]
            .iter()
            .enumerate()
    {
        rig.prompt(&n.to_string());
        rig.answer(answer);
    }
    let told = usages(&mut rig);
    assert_eq!(told[1], "usage 10+5 total 15");
    assert_eq!(told[3], "usage 25+11 total -");
    assert_eq!(told[5], "usage 45+19 total -");
    assert!(rig
        .lines
        .iter()
        .all(|l| l["params"]["update"].get("accumulatedTotalTokens") != Some(&json!(null))));
}

#[test]
fn a_failed_turn_tells_its_cost_before_the_error() {
    let mut rig = Rig::new();
    rig.prompt("go");
    rig.answer(&costing(say_call("a"), 10, 5));
    rig.finish(0, text_result("ok"));
    rig.told();
    rig.fail(status(400, "Bad Request"), "no");
    assert_eq!(rig.told(), ["usage 10+5 total -", "error -32000: llm: (m) 400 Bad Request: no"]);
}

#[test]
fn c23_c25_odd_usage_costs_no_turn() {
    for (usage, told) in [
        (
            json!({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12, "prompt_tokens_details": null}),
            vec!["usage 10+2 total 12"; 2],
        ),
        (
            json!({"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": null}}),
            vec!["usage 10+2 total -"; 2],
        ),
        (json!({"prompt_tokens": "12", "completion_tokens": 2}), vec!["usage 0+2 total -"; 2]),
        (json!({"prompt_tokens": 1.5, "completion_tokens": -1}), vec![]),
        (json!({"prompt_tokens": 1e30}), vec![]),
        (json!(null), vec![]),
        (json!([1]), vec![]),
        (json!("much"), vec![]),
    ] {
        let mut rig = Rig::new();
        rig.prompt("go");
        let mut answer = text("done");
        answer["usage"] = usage.clone();
        rig.answer(&answer);
        assert_eq!(usages(&mut rig), told, "{usage}");
        assert_eq!(rig.last_line()["result"]["stopReason"], "end_turn");
    }
}

#[test]
fn c27_cached_tokens_are_part_of_the_input_on_both_wires() {
    let mut chat = Rig::new();
    chat.prompt("go");
    let mut answer = text("done");
    answer["usage"] = json!({"prompt_tokens": 1000, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 500}});
    chat.answer(&answer);
    let mut claude = Rig::with(anthropic);
    claude.prompt("go");
    let usage = json!({"input_tokens": 500, "cache_read_input_tokens": 500, "output_tokens": 1});
    claude.answer(&json!({"stop_reason": "end_turn", "content": [], "usage": usage}));
    for rig in [&chat, &claude] {
        let tally = rig.session.tally();
        assert_eq!((tally.input, tally.cached, tally.output), (Some(1000), Some(500), Some(1)));
    }
}

#[test]
fn an_answer_that_is_of_no_use_was_billed_all_the_same() {
    let mut rig = Rig::new();
    rig.prompt("go");
    rig.told();
    let usage = json!({"prompt_tokens": 7, "completion_tokens": 1});
    rig.answer(&json!({"choices": [], "usage": usage}));
    assert_eq!(rig.told()[0], "usage 7+1 total -");
    assert_eq!(rig.session.tally().input, Some(7));
}

#[test]
fn the_last_report_is_kept_with_the_history_as_it_was_sent() {
    let mut rig = Rig::new();
    rig.prompt("12345");
    rig.answer(&costing(text("abc"), 10, 5));
    let last = rig.session.last_usage().expect("reported");
    assert_eq!((last.input_tokens, last.history_bytes), (10, 5));
    rig.prompt("67");
    rig.answer(&text("no usage"));
    assert_eq!(rig.session.last_usage(), Some(last), "an answer without usage leaves the pair alone");
    rig.prompt("8");
    let mut output_only = text("x");
    output_only["usage"] = json!({"completion_tokens": 3});
    rig.answer(&output_only);
    assert_eq!(rig.session.last_usage(), Some(last));
}

#[test]
fn c29_a_session_that_comes_back_goes_on_counting_where_it_was() {
    let mut rig = Rig::new();
    rig.prompt("before");
    rig.answer(&costing_total(text("1"), 900, 5, 905));
    let mut rig = Rig::resume(&rig.log);
    let again = Head::SessionResumed { opened: Box::new(opened()), tells_history: false };
    rig.take(vec![Record::bare(again)]);
    rig.told();
    rig.prompt("after");
    rig.answer(&costing_total(text("2"), 40, 1, 41));
    assert_eq!(usages(&mut rig), ["usage 940+6 total 946"; 2], "40 more than before, and never less");
}

#[test]
fn c31_a_figure_that_is_missing_or_odd_leaves_the_others_alone() {
    let mut rig = Rig::new();
    for (usage, sums) in [
        (
            json!({"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 8}}),
            (Some(10), Some(1), Some(8)),
        ),
        (
            json!({"prompt_tokens": 20, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": -3}}),
            (Some(30), Some(3), Some(8)),
        ),
        (json!({"completion_tokens": 4}), (Some(30), Some(7), Some(8))),
        (json!({"prompt_tokens": 5}), (Some(35), Some(7), Some(8))),
    ] {
        rig.prompt("go");
        let mut answer = text("done");
        answer["usage"] = usage.clone();
        rig.answer(&answer);
        let tally = rig.session.tally();
        assert_eq!((tally.input, tally.output, tally.cached), sums, "{usage}");
    }
}

#[test]
fn c32_the_answer_to_a_standard_client_holds_the_sums_of_the_notification() {
    let mut rig = Rig::with(|o| o.profile = Profile::Standard);
    for (cost, sums) in [((4, 9, 13), (4, 9, 13)), ((6, 1, 7), (10, 10, 20))] {
        rig.prompt("go");
        rig.answer(&costing_total(text("done"), cost.0, cost.1, cost.2));
        let usage = json!({"inputTokens": sums.0, "outputTokens": sums.1, "totalTokens": sums.2});
        assert_eq!(rig.last_line()["result"], json!({"stopReason": "end_turn", "usage": usage}));
        let told = usages(&mut rig);
        let wanted = format!("usage {}+{} total {}", sums.0, sums.1, sums.2);
        assert!(told.contains(&wanted), "{told:?}");
    }
    let mut harness = Rig::new();
    harness.prompt("go");
    harness.answer(&costing(text("done"), 4, 9));
    assert!(harness.last_line()["result"].get("usage").is_none(), "who reads the one is not told the other");
}
