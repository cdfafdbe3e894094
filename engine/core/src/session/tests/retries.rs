//! Attempts at one request: the waits, the end of patience and errors in the clothes of answers.

use serde_json::json;

use super::rig::*;
use crate::acp::code;
use crate::provider::ApiMode;
use crate::record::Failure;
use crate::session::Effect;

#[test]
fn passing_failures_are_tried_again_with_the_same_bytes_after_a_growing_wait() {
    for (jitter, first, second) in [(0, 250, 500), (500, 375, 750), (999, 499, 999)] {
        let mut rig = Rig::new();
        rig.prompt("go");
        rig.fail_drawing(status(529, "R"), "busy", jitter);
        rig.fail_drawing(Failure::Transport { text: "reset".into() }, "", jitter);
        let attempts: Vec<_> = rig.asks.iter().map(|a| (a.asked, a.first, a.after_ms)).collect();
        assert_eq!(attempts, [(1, true, 0), (1, false, first), (1, false, second)]);
        assert!(rig.asks.iter().all(|a| a.bytes == rig.asks[0].bytes));
        rig.answer(&text("at last"));
        assert_eq!(rig.told(), ["run run_1", "message at last", "stop end_turn"]);
    }
}

#[test]
fn c34_patience_ends_after_three_attempts_with_a_clear_error() {
    let mut rig = Rig::new();
    rig.prompt("go");
    for _ in 0..3 {
        rig.fail(status(499, "R"), "why");
    }
    assert_eq!(rig.asks.len(), 3);
    assert_eq!(
        rig.told(),
        ["run run_1", "error -32000: llm: (m) exhausted retries: 499 R: why (cumulative 2s, 3 attempts)"]
    );
    let mut rig = Rig::new();
    rig.prompt("go");
    for _ in 0..3 {
        rig.fail(Failure::Transport { text: "reset".into() }, "");
    }
    assert_eq!(rig.told()[1], "error -32000: llm: (m) transport: reset (cumulative 2s, 3 attempts)");
}

#[test]
fn each_round_has_its_own_attempts() {
    let mut rig = Rig::new();
    rig.prompt("go");
    rig.fail(status(500, "R"), "");
    rig.fail(status(500, "R"), "");
    rig.answer(&say_call("a"));
    rig.finish(0, text_result("ok"));
    rig.fail(status(500, "R"), "");
    rig.fail(status(500, "R"), "");
    assert_eq!(rig.asks.len(), 6);
    rig.answer(&text("done"));
}

#[test]
fn refused_credentials_are_tried_once_more_on_openai_and_not_on_anthropic() {
    let mut rig = Rig::new();
    rig.prompt("go");
    rig.fail(status(401, "Unauthorized"), "bad key");
    assert_eq!((rig.asks.len(), rig.last_ask().after_ms), (2, 0));
    rig.fail(status(401, "Unauthorized"), "bad key");
    assert_eq!(rig.told()[1], "error -32001: llm auth: bad key");
    let mut rig = Rig::with(anthropic);
    rig.prompt("go");
    rig.fail(status(401, "Unauthorized"), "bad key");
    assert_eq!(rig.asks.len(), 1);
    assert_eq!(rig.told()[1], "error -32001: llm auth: bad key");
}

#[test]
fn the_second_series_has_a_fresh_budget() {
    let mut rig = Rig::new();
    rig.prompt("go");
    rig.fail(status(500, "R"), "");
    rig.fail(status(500, "R"), "");
    rig.fail(status(403, "Forbidden"), "no");
    for _ in 0..3 {
        rig.fail(status(500, "R"), "why");
    }
    assert_eq!(rig.asks.len(), 6);
    assert!(rig.told()[1].starts_with("error -32000: llm: (m) exhausted retries"));
}

#[test]
fn what_cannot_pass_is_not_tried_again() {
    for (failure, message) in [
        (status(400, "Bad Request"), "llm: (m) 400 Bad Request: b"),
        (status(408, "Request Timeout"), "llm: (m) 408 Request Timeout: b"),
        (Failure::BodyRead { text: "cut".into() }, "llm: (m) body read: cut (cumulative 2s, 1 attempt)"),
        (
            Failure::TooLarge { text: "response too large: 9 > 8".into() },
            "llm: (m) response too large: 9 > 8",
        ),
        (Failure::Unsendable { text: "bad URL".into() }, "llm: (m) bad URL"),
    ] {
        let mut rig = Rig::new();
        rig.prompt("go");
        rig.fail(failure, "b");
        assert_eq!(rig.asks.len(), 1);
        assert_eq!(rig.told()[1], format!("error -32000: {message}"));
    }
}

#[test]
fn c03_an_error_with_a_good_status_goes_by_its_inner_code() {
    let mut rig = Rig::new();
    rig.prompt("go");
    let slow = json!({"error": {"code": 429, "message": "slow down"}});
    rig.answer(&slow);
    assert_eq!(rig.last_ask().after_ms, 375);
    rig.answer(&slow);
    rig.answer(&slow);
    assert_eq!(rig.asks.len(), 3);
    assert_eq!(
        rig.told()[1],
        "error -32000: llm: (m) provider error (429): slow down (cumulative 2s, 3 attempts)"
    );
    let mut rig = Rig::new();
    rig.prompt("go");
    rig.answer(&json!({"error": {"code": 400, "message": "never"}}));
    assert_eq!(rig.told()[1], "error -32000: llm: (m) provider error (400): never");
}

#[test]
fn c03_an_inner_code_counts_beside_an_error_type_too() {
    let mut rig = Rig::new();
    rig.prompt("go");
    rig.answer(&json!({"error": {"code": 429, "message": "slow", "metadata": {"error_type": "rate_limit_exceeded"}}}));
    assert_eq!(rig.asks.len(), 2, "{:?}", rig.told());
    rig.cancel();
}

#[test]
fn c03_c34_an_overload_in_a_good_status_is_passing_on_the_anthropic_wire_too() {
    for word in ["overloaded_error", "rate_limit_error", "api_error"] {
        let mut rig = Rig::with(anthropic);
        rig.prompt("go");
        rig.answer(&json!({"type": "error", "error": {"type": word, "message": "busy"}}));
        assert_eq!(rig.asks.len(), 2, "{word}: {:?}", rig.told());
        rig.cancel();
    }
    let mut rig = Rig::with(anthropic);
    rig.prompt("go");
    rig.answer(&json!({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}));
    assert_eq!(rig.told()[1], "error -32000: llm: (m) provider error (invalid_request_error): no");
}

#[test]
fn c04_an_error_inside_the_choice_is_a_provider_error_and_passing() {
    let mut rig = Rig::new();
    rig.prompt("go");
    let body = json!({"choices": [{"finish_reason": "error", "error": {"code": 502, "message": "up"}, "message": {"content": ""}}]});
    rig.answer(&body);
    assert_eq!(rig.asks.len(), 2);
    rig.answer(&body);
    rig.answer(&body);
    assert_eq!(rig.told()[1], "error -32000: llm: (m) provider error (502): up (cumulative 2s, 3 attempts)");
}

#[test]
fn c05_a_body_without_choices_ends_the_turn_and_names_what_is_missing() {
    for body in ["{\"id\":null,\"choices\":null}", "{}", "{\"choices\":[]}", "null", "[]", "7"] {
        let mut rig = Rig::new();
        rig.prompt("go");
        rig.answer_bytes(1, body.as_bytes().to_vec());
        let told = rig.told();
        assert!(told[1].starts_with("error -32000: llm: (m) response missing choices: "), "{told:?}");
        assert_eq!(rig.asks.len(), 1);
    }
    let mut rig = Rig::new();
    rig.prompt("go");
    rig.answer(&json!({"choices": [], "pad": "p".repeat(100_000)}));
    assert!(rig.told()[1].len() < 500, "the excerpt is bounded");
}

#[test]
fn a_body_that_is_no_json_ends_the_turn() {
    for body in [&b""[..], b"{", b"<html>", b"\xff\xfe"] {
        let mut rig = Rig::new();
        rig.prompt("go");
        rig.answer_bytes(1, body.to_vec());
        assert!(rig.told()[1].starts_with("error -32000: llm: (m) json: "), "{body:?}");
    }
}

#[test]
fn an_endpoint_that_wants_the_other_wire_gets_it_at_once_and_for_good() {
    let mut rig = Rig::with(|o| {
        o.settings.api = ApiMode::Auto;
        o.settings.max_rounds = 1;
    });
    rig.prompt("go");
    rig.fail(status(400, "Bad Request"), "use /v1/responses for this model");
    assert_eq!(rig.last_ask().path, "/responses");
    assert_eq!(rig.last_ask().body["instructions"], SYSTEM_PROMPT);
    assert_eq!(rig.count_effects(|e| matches!(e, Effect::Upgraded)), 1);
    rig.answer(&json!({"status": "completed", "output": [
        {"type": "message", "content": [{"type": "output_text", "text": "hi"}]},
    ]}));
    assert_eq!(rig.told(), ["run run_1", "message hi", "stop end_turn"]);
    rig.prompt("more");
    assert_eq!(rig.last_ask().path, "/responses");
    rig.cancel();
}

#[test]
fn a_summary_that_meets_the_other_wire_is_asked_there() {
    let mut rig = Rig::with(|o| {
        o.settings.api = ApiMode::Auto;
        o.settings.max_context_tokens = 2000;
        o.settings.max_output_tokens = 100;
    });
    rig.prompt(&"x".repeat(3000));
    rig.fail(status(400, "Bad Request"), "use the responses API");
    assert_eq!(rig.last_ask().path, "/responses");
    assert_eq!(rig.last_ask().body["max_output_tokens"], 8192);
    assert!(!rig.last_ask().keepalive);
    rig.cancel();
}

#[test]
fn a_chosen_wire_is_never_changed() {
    let mut rig = Rig::new();
    rig.prompt("go");
    rig.fail(status(400, "Bad Request"), "use /v1/responses");
    assert_eq!(rig.asks.len(), 1);
    assert_eq!(rig.last_line()["error"]["code"], code::FAILED);
}

#[test]
fn an_endpoint_that_asks_for_patience_is_given_it_where_its_provider_is_known_to_mean_it() {
    for (word, wait) in [("openrouter", 5000), ("openai", 375)] {
        let mut rig =
            Rig::with(|o| o.settings.provider = crate::provider::Provider::of_word(word).expect("known"));
        rig.prompt("go");
        rig.input(crate::session::Input::AttemptFailed {
            asked: 1,
            failure: status(429, "Too Many Requests"),
            headers: vec![("retry-after".into(), "5".into())],
            body: vec![],
            retry_after_ms: Some(5000),
            elapsed_ms: 10,
            jitter_permille: JITTER,
        });
        assert_eq!(rig.last_ask().after_ms, wait, "{word}");
        rig.cancel();
    }
}
