//! What a prompt must be, how turns end, and which error goes with which failure.

use serde_json::{json, Value};

use super::rig::*;
use crate::acp::blocks::PROMPT_MAX_BYTES;
use crate::acp::Profile;
use crate::record::Head;

#[test]
fn a_text_only_answer_ends_the_turn_without_an_error() {
    let mut rig = Rig::new();
    assert!(rig.prompt("hi"));
    let body = json!({
        "max_completion_tokens": 1000,
        "messages": [{"content": SYSTEM_PROMPT, "role": "system"}, {"content": "hi", "role": "user"}],
        "model": "m",
        "stream": false,
        "tool_choice": "auto",
        "tools": [
            {"function": {"description": "does say", "name": "t__say", "parameters": {"type": "object"}}, "type": "function"},
            {"function": {"description": "does shell", "name": "t__shell", "parameters": {"type": "object"}}, "type": "function"},
        ],
    });
    assert_eq!(rig.last_ask().body, body);
    assert_eq!(rig.last_ask().path, "/chat/completions");
    assert_eq!((rig.last_ask().first, rig.last_ask().after_ms), (true, 0));
    assert!(rig.answer(&text("hello")));
    assert_eq!(rig.last_line(), &json!({"id": 1, "jsonrpc": "2.0", "result": {"stopReason": "end_turn"}}));
    assert_eq!(rig.told(), ["run run_1", "message hello", "stop end_turn"]);
    assert!(!rig.session.is_busy());
}

#[test]
fn a_session_without_tools_offers_none() {
    let mut rig = Rig::with(|o| o.catalogue = catalogue(&[]));
    rig.prompt("hi");
    let keys: Vec<&String> = rig.last_ask().body.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["max_completion_tokens", "messages", "model", "stream"]);
    rig.answer(&text("hello"));
}

#[test]
fn a_block_that_is_not_advertised_is_refused_after_the_run_is_told() {
    let mut rig = Rig::new();
    rig.prompt_blocks(json!([{"type": "image", "data": "AA==", "mimeType": "image/png"}]));
    assert_eq!(
        rig.told(),
        [
            "run run_1",
            "error -32602: invalid params: prompt: unsupported content block (only text and resource_link are advertised)",
        ]
    );
    assert!(rig.asks.is_empty());
    assert!(rig.history().is_empty());
    assert_eq!(rig.session.original_task(), None);
    assert!(!rig.session.is_busy());
}

#[test]
fn a_prompt_of_exactly_one_mebibyte_runs_and_one_byte_more_does_not() {
    let mut rig = Rig::with(|o| o.settings.max_context_tokens = 4_000_000);
    rig.prompt(&"x".repeat(PROMPT_MAX_BYTES + 1));
    assert_eq!(rig.told(), ["run run_1", "error -32602: invalid params: prompt: exceeds 1048576 bytes"]);
    assert!(rig.history().is_empty());
    assert_eq!(rig.session.original_task(), None);
    rig.prompt(&"x".repeat(PROMPT_MAX_BYTES));
    assert_eq!(rig.asks.len(), 1);
    rig.answer(&text("long"));
}

#[test]
fn a_rejected_prompt_leaves_the_history_and_the_task_as_they_were() {
    let mut rig = Rig::new();
    rig.prompt("first");
    rig.answer(&text("one"));
    rig.prompt_blocks(json!([{"type": "text", "text": "x"}, {"type": "audio"}]));
    assert_eq!(rig.history(), ["user first", "assistant one"]);
    assert_eq!(rig.session.original_task(), Some("first"));
}

#[test]
fn a_link_stands_on_a_line_of_its_own() {
    let mut rig = Rig::new();
    rig.prompt_blocks(json!([
        {"type": "text", "text": "see"}, {"type": "resource_link", "uri": "file:///x", "name": "x"},
        {"type": "text", "text": "and tell"},
    ]));
    assert_eq!(rig.messages(), [json!({"content": "see\n[resource: file:///x]\nand tell", "role": "user"})]);
    rig.answer(&text("ok"));
}

#[test]
fn an_empty_or_blank_prompt_runs_as_it_is() {
    for (blocks, sent) in [(json!([]), ""), (json!([{"type": "text", "text": " \n"}]), " \n")] {
        let mut rig = Rig::new();
        rig.prompt_blocks(blocks);
        assert_eq!(rig.messages(), [json!({"content": sent, "role": "user"})]);
        assert_eq!(rig.session.original_task(), Some(sent));
        rig.answer(&text("ok"));
    }
}

#[test]
fn parameters_that_cannot_be_read_are_refused_before_a_turn_begins() {
    for (params, lacks) in [
        (json!({"prompt": []}), "sessionId"),
        (json!({"sessionId": "ses_1"}), "prompt"),
        (json!({"sessionId": "ses_1", "prompt": [{}]}), "type"),
        (json!({"sessionId": "ses_1", "prompt": [{"type": "text"}]}), "text"),
        (json!({"sessionId": "ses_1", "prompt": [{"type": "resource_link"}]}), "uri"),
    ] {
        let mut rig = Rig::new();
        rig.request("session/prompt", params);
        let told = rig.told();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("error -32602: session/prompt: ") && told[0].contains(lacks), "{told:?}");
        assert!(!rig.session.is_busy());
    }
}

#[test]
fn a_second_prompt_is_refused_and_the_first_one_still_ends() {
    let mut rig = Rig::new();
    rig.prompt("one");
    rig.told();
    rig.prompt("two");
    assert_eq!(
        rig.last_line(),
        &json!({"error": {"code": -32602, "message": "session/prompt: prompt already in flight"}, "id": 2, "jsonrpc": "2.0"})
    );
    assert_eq!(rig.asks.len(), 1);
    rig.told();
    rig.answer(&text("1"));
    assert_eq!(rig.told(), ["message 1", "stop end_turn"]);
    assert_eq!(rig.last_line()["id"], 1);
    assert_eq!(rig.history(), ["user one", "assistant 1"]);
}

#[test]
fn the_next_prompt_carries_what_was_said_before() {
    let mut rig = Rig::new();
    rig.prompt("one");
    rig.answer(&text("first answer"));
    rig.prompt("two");
    assert_eq!(
        rig.messages(),
        [
            json!({"content": "one", "role": "user"}),
            json!({"content": "first answer", "role": "assistant"}),
            json!({"content": "two", "role": "user"}),
        ]
    );
    rig.answer(&text("2"));
    assert_eq!(rig.session.original_task(), Some("one"));
}

#[test]
fn an_empty_answer_is_replayed_as_an_empty_message() {
    let mut rig = Rig::new();
    rig.prompt("one");
    rig.answer(&json!({"choices": [{"finish_reason": "stop", "message": {"content": null}}]}));
    assert_eq!(rig.told(), ["run run_1", "stop end_turn"]);
    rig.prompt("two");
    assert_eq!(rig.messages()[1], json!({"content": "", "role": "assistant"}));
    rig.answer(&text("2"));
}

#[test]
fn an_empty_answer_is_no_message_at_all_on_the_anthropic_wire() {
    let mut rig = Rig::with(anthropic);
    rig.prompt("one");
    rig.answer(&json!({"stop_reason": "end_turn", "content": []}));
    rig.prompt("two");
    let roles: Vec<Value> = rig.messages().iter().map(|m| m["role"].clone()).collect();
    assert_eq!(roles, ["user", "user"]);
    rig.answer(&json!({"stop_reason": "end_turn", "content": []}));
}

#[test]
fn the_round_cap_ends_a_turn_after_its_last_tools_even_if_it_was_cancelled_as_well() {
    for cancelled in [false, true] {
        let mut rig = Rig::calling(1, |o| o.settings.max_rounds = 1);
        rig.finish(0, text_result("ok"));
        assert_eq!(rig.told(), ["in_progress a", "completed a", "stop max_turn_requests"][1..]);
        assert_eq!(rig.asks.len(), 1);
        if cancelled {
            // Cancelled at the gate: the boundary looks at the cap first.
            let mut rig = Rig::with(|o| {
                o.settings.max_rounds = 1;
                o.catalogue = catalogue(&[("t", &["_Stop"])]);
                o.hook_servers = vec![0];
            });
            rig.prompt("go");
            rig.answer(&text("done"));
            rig.cancel();
            rig.hooks(vec![says("not yet")]);
            assert_eq!(rig.told().last().map(String::as_str), Some("stop max_turn_requests"));
        }
    }
}

#[test]
fn c01_a_stop_for_tools_without_calls_fails_the_turn_and_its_usage_counts() {
    let mut rig = Rig::new();
    rig.prompt("go");
    rig.told();
    let body = json!({"choices": [{"finish_reason": "tool_calls", "message": {"content": "I will look.", "tool_calls": []}}]});
    rig.answer(&costing(body, 10, 5));
    assert_eq!(
        rig.told(),
        [
            "usage 10+5 total -",
            "message I will look.",
            "usage 10+5 total -",
            "error -32000: llm: provider: stop=tool_use but zero tool_calls",
        ]
    );
    assert_eq!(rig.history(), ["user go"]);
    assert_eq!(rig.asks.len(), 1);
}

#[test]
fn c01_the_same_on_the_anthropic_wire() {
    let mut rig = Rig::with(anthropic);
    rig.prompt("go");
    rig.answer(
        &json!({"stop_reason": "tool_use", "content": [], "usage": {"input_tokens": 3, "output_tokens": 1}}),
    );
    assert_eq!(
        rig.told(),
        [
            "run run_1",
            "usage 3+1 total -",
            "usage 3+1 total -",
            "error -32000: llm: provider: stop=tool_use but zero tool_calls",
        ]
    );
}

#[test]
fn c02_an_empty_list_of_calls_is_a_plain_end_and_is_not_sent_back() {
    let mut rig = Rig::new();
    rig.prompt("go");
    rig.answer(
        &json!({"choices": [{"finish_reason": "stop", "message": {"content": "done", "tool_calls": []}}]}),
    );
    assert_eq!(rig.told(), ["run run_1", "message done", "stop end_turn"]);
    rig.prompt("more");
    assert_eq!(rig.messages()[1], json!({"content": "done", "role": "assistant"}));
    rig.answer(&text("ok"));
}

#[test]
fn an_output_limit_and_a_refusal_end_the_turn_at_once() {
    for (reason, stop) in [
        ("length", "max_tokens"),
        ("max_tokens", "max_tokens"),
        ("content_filter", "refusal"),
        ("refusal", "refusal"),
    ] {
        let mut rig = Rig::with(|o| {
            o.catalogue = catalogue(&[("t", &["_Stop", "shell"])]);
            o.hook_servers = vec![0];
            o.settings.require_reply = true;
        });
        rig.prompt("go");
        rig.answer(&finish_with("cut", reason));
        assert_eq!(rig.told(), ["run run_1".to_owned(), "message cut".into(), format!("stop {stop}")]);
        assert_eq!(rig.count_records(|h| matches!(h, Head::HooksAsked { .. } | Head::EndObjected { .. })), 0);
        assert_eq!(rig.history(), ["user go", "assistant cut"]);
    }
}

#[test]
fn an_unknown_stop_goes_through_the_gate_to_the_end_of_the_turn() {
    for body in [finish_with("hm", "pause_turn"), json!({"choices": [{"message": {"content": "hm"}}]})] {
        let mut rig = Rig::with(|o| {
            o.catalogue = catalogue(&[("t", &["_Stop"])]);
            o.hook_servers = vec![0];
        });
        rig.prompt("go");
        rig.answer(&body);
        assert_eq!(rig.asked_hooks().1, [0]);
        rig.hooks(vec![says("")]);
        assert_eq!(rig.told(), ["run run_1", "message hm", "stop end_turn"]);
    }
}

#[test]
fn calls_are_run_whatever_the_stop_reason_says() {
    for reason in ["length", "content_filter", "stop", "odd"] {
        let mut rig = Rig::new();
        rig.prompt("go");
        let mut answer = say_call("a");
        answer["choices"][0]["finish_reason"] = json!(reason);
        rig.answer(&answer);
        assert_eq!(rig.calls.len(), 1, "{reason}");
        rig.finish(0, text_result("ok"));
        assert_eq!(rig.asks.len(), 2, "{reason}");
        rig.answer(&text("done"));
    }
}

#[test]
fn failures_have_their_codes_in_both_profiles_and_keep_the_prompt() {
    for (failure, code, message) in [
        (status(403, "Forbidden"), -32001, "llm auth: why"),
        (status(404, "Not Found"), -32002, "llm model not found: (m) 404 Not Found: why"),
        (status(400, "Bad Request"), -32000, "llm: (m) 400 Bad Request: why"),
    ] {
        for (profile, told) in [(Profile::Harness, code), (Profile::Standard, -32603)] {
            let mut rig = Rig::with(|o| {
                anthropic(o);
                o.profile = profile;
            });
            rig.prompt("keep me");
            rig.fail(failure.clone(), "why");
            let error = json!({"error": {"code": told, "message": message}, "id": 1, "jsonrpc": "2.0"});
            assert_eq!(rig.last_line(), &error);
            assert_eq!(rig.history(), ["user keep me"]);
            rig.prompt("again");
            assert_eq!(rig.messages().len(), 2);
            rig.cancel();
        }
    }
}

#[test]
fn invalid_parameters_have_one_code_in_both_profiles() {
    let mut rig = Rig::with(|o| o.profile = Profile::Standard);
    rig.prompt_blocks(json!([{"type": "image"}]));
    assert_eq!(rig.last_line()["error"]["code"], -32602);
}

#[test]
fn a_chosen_model_counts_from_the_next_prompt_on() {
    let mut rig = Rig::new();
    rig.prompt("one");
    rig.told();
    rig.set_model("other");
    assert_eq!(
        rig.last_line(),
        &json!({"id": 2, "jsonrpc": "2.0", "result": {"modelId": "other", "sessionId": "ses_1"}})
    );
    rig.answer(&costing(say_call("a"), 10, 1));
    rig.finish(0, text_result("ok"));
    assert_eq!(rig.last_ask().body["model"], "m");
    assert_eq!(rig.lines.iter().rev().find_map(|l| l["params"]["update"].get("model")), Some(&json!("m")));
    rig.answer(&text("done"));
    rig.prompt("two");
    assert_eq!(rig.last_ask().body["model"], "other");
    rig.answer(&costing(text("done"), 10, 1));
    assert_eq!(rig.lines[rig.lines.len() - 2]["params"]["update"]["model"], "other");
}

#[test]
fn a_model_without_a_name_is_refused() {
    let mut rig = Rig::new();
    for (params, needle) in [
        (json!({"sessionId": "ses_1", "modelId": "  "}), "modelId must not be empty"),
        (json!({"sessionId": "ses_1"}), "modelId"),
    ] {
        rig.request("session/set_model", params);
        let told = rig.told();
        assert!(
            told[0].starts_with("error -32602: session/set_model: ") && told[0].contains(needle),
            "{told:?}"
        );
    }
    rig.prompt("go");
    assert_eq!(rig.last_ask().body["model"], "m");
    rig.cancel();
}

#[test]
fn lines_that_mean_nothing_to_a_session_leave_no_record() {
    let mut rig = Rig::new();
    for line in [
        r#"{"jsonrpc":"2.0","method":"session/prompt","params":{"sessionId":"ses_1","prompt":[]}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"session/other","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        "not json",
        "",
    ] {
        assert!(!rig.send_line(line.as_bytes()), "{line}");
    }
    assert_eq!(rig.log.len(), 1);
}

#[test]
fn the_answer_comes_under_the_id_byte_for_byte() {
    for own in ["\"7\"", "7", "9007199254740993", "null"] {
        let mut rig = Rig::new();
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":{own},"method":"session/prompt","params":{{"sessionId":"ses_1","prompt":[]}}}}"#
        );
        rig.send_line(line.as_bytes());
        rig.answer(&text(""));
        assert_eq!(rig.last_line()["id"].to_string(), own);
    }
}

#[test]
fn a_chosen_model_of_another_family_gets_the_whole_history_on_its_own_wire() {
    let mut rig = Rig::with(|o| {
        o.settings.provider = crate::provider::Provider::of_word("databricks_v2").expect("a provider");
        o.settings.model = "databricks-claude-opus-4-7".into();
    });
    rig.prompt("one");
    assert_eq!(rig.last_ask().path, "/ai-gateway/anthropic/v1/messages");
    let call = json!({"type": "tool_use", "id": "a", "name": "t__say", "input": {}});
    rig.answer(&json!({"stop_reason": "tool_use", "content": [call]}));
    rig.set_model("gemini");
    rig.finish(0, text_result("ok"));
    assert_eq!(rig.last_ask().path, "/ai-gateway/anthropic/v1/messages", "not within the turn");
    rig.answer(&json!({"stop_reason": "end_turn", "content": [{"type": "text", "text": "first"}]}));
    let promised = rig.session.next_request("two").to_vec();
    rig.prompt("two");
    assert_eq!(rig.last_ask().path, "/ai-gateway/mlflow/v1/chat/completions");
    assert_eq!(
        rig.messages(),
        [
            json!({"content": "one", "role": "user"}),
            json!({"content": "", "role": "assistant", "tool_calls": [
                {"function": {"arguments": "{}", "name": "t__say"}, "id": "a", "type": "function"}]}),
            json!({"content": "ok", "role": "tool", "tool_call_id": "a"}),
            json!({"content": "first", "role": "assistant"}),
            json!({"content": "two", "role": "user"}),
        ]
    );
    assert_eq!(rig.last_ask().body["tools"][0]["function"]["name"], "t__say");
    assert_eq!(promised, rig.last_ask().bytes);
    rig.answer(&text("second"));
    rig.set_model("gpt-5");
    rig.prompt("three");
    assert_eq!(rig.last_ask().path, "/ai-gateway/openai/v1/responses");
    assert_eq!(rig.last_ask().body["input"].as_array().map(Vec::len), Some(7));
    rig.cancel();
}
