//! What is said in one round, and in which order.

use serde_json::json;

use super::rig::*;
use crate::acp::Profile;
use crate::session::Effect;

#[test]
fn a_round_says_usage_thought_text_and_then_its_calls() {
    let mut rig = Rig::new();
    rig.prompt("go");
    assert_eq!(rig.told(), ["run run_1"]);
    let mut answer = calls_of(&[("a", "t__say", json!("{\"x\":1}")), ("b", "t__none", json!("{}"))]);
    answer["choices"][0]["message"]["content"] = json!("text");
    answer["choices"][0]["message"]["reasoning_content"] = json!("why");
    rig.answer(&costing(answer, 10, 5));
    assert_eq!(
        rig.told(),
        [
            "usage 10+5 total -",
            "thought why",
            "message text",
            "pending a t__say",
            "pending b t__none",
            "failed b: unknown tool: t__none",
            "in_progress a",
        ]
    );
    rig.finish(0, text_result("ok"));
    assert_eq!(rig.told(), ["completed a"]);
    rig.answer(&text("done"));
    assert_eq!(rig.told(), ["message done", "usage 10+5 total -", "stop end_turn"]);
}

#[test]
fn the_lines_of_a_round_in_full() {
    let mut rig = Rig::new();
    rig.prompt("go");
    let mut answer = calls_of(&[("a", "t__say", json!("{\"x\":1}"))]);
    answer["choices"][0]["message"]["content"] = json!("text");
    answer["choices"][0]["message"]["reasoning_content"] = json!("why");
    rig.answer(&costing_total(answer, 10, 5, 15));
    rig.finish(
        0,
        json!({"content": [
            {"type": "text", "text": "ok"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        ]}),
    );
    let update = |update: serde_json::Value| json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "ses_1", "update": update}});
    let usage = json!({
        "sessionUpdate": "usage_update", "used": 15, "contextLimit": 0, "accumulatedInputTokens": 10,
        "accumulatedOutputTokens": 5, "accumulatedCachedInputTokens": 0, "accumulatedTotalTokens": 15, "model": "m",
    });
    let said = "ok\n[image: image/png, 4 base64 bytes]";
    assert_eq!(
        rig.lines[1..],
        [
            update(
                json!({"sessionUpdate": "session_info_update", "_meta": {"goose": {"activeRunId": "run_1"}}})
            ),
            json!({"jsonrpc": "2.0", "method": "_goose/unstable/session/update",
                "params": {"sessionId": "ses_1", "update": usage}}),
            update(
                json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "why"}})
            ),
            update(
                json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "text"}})
            ),
            update(
                json!({"sessionUpdate": "tool_call", "toolCallId": "a", "title": "t__say", "kind": "other",
                "status": "pending", "rawInput": {"x": 1}})
            ),
            update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "a", "status": "in_progress"})),
            update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "a", "status": "completed",
                "content": [{"type": "content", "content": {"type": "text", "text": said}}],
                "rawOutput": {"isError": false}})),
        ]
    );
    rig.cancel();
}

#[test]
fn the_answer_to_the_opening_is_the_first_line() {
    let rig = Rig::new();
    assert_eq!(rig.lines.len(), 1);
    let models = json!({"availableModels": [{"modelId": "m", "name": "m"}], "currentModelId": "m"});
    assert_eq!((&rig.lines[0]["id"], &rig.lines[0]["result"]["sessionId"]), (&json!(0), &json!("ses_1")));
    assert_eq!(rig.lines[0]["result"]["models"], models);
}

#[test]
fn white_space_is_text_and_nothing_is_none() {
    let mut rig = Rig::new();
    rig.prompt("go");
    rig.answer(&json!({"choices": [{"finish_reason": "stop", "message": {"content": " ", "reasoning_content": ""}}]}));
    assert_eq!(rig.told(), ["run run_1", "message  ", "stop end_turn"]);
}

#[test]
fn thinking_of_the_anthropic_wire_comes_before_the_text_and_is_not_sent_back() {
    let mut rig = Rig::with(anthropic);
    rig.prompt("go");
    rig.answer(&json!({"stop_reason": "end_turn", "content": [
        {"type": "text", "text": "said"}, {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "thinking", "thinking": "so", "signature": "s"},
    ]}));
    assert_eq!(rig.told(), ["run run_1", "thought hm\nso", "message said", "stop end_turn"]);
    rig.prompt("more");
    assert!(!String::from_utf8_lossy(&rig.last_ask().bytes).contains("thinking"));
    rig.cancel();
}

#[test]
fn c12_an_answer_of_reasoning_alone_ends_the_turn_as_silence() {
    let mut rig = Rig::with(|o| {
        anthropic(o);
        o.settings.require_reply = true;
        o.settings.stop_max_rejections = 1;
    });
    rig.prompt("go");
    let thought = json!({"stop_reason": "end_turn", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}]});
    rig.answer(&thought);
    assert_eq!(rig.told(), ["run run_1", "thought hm"]);
    assert_eq!(rig.asks.len(), 2, "the guard reminds");
    rig.answer(&thought);
    assert_eq!(rig.told(), ["thought hm", "stop end_turn"]);
}

#[test]
fn a_tick_says_keepalive_while_the_model_is_awaited_and_at_no_other_time() {
    let mut rig = Rig::new();
    assert!(!rig.tick());
    rig.prompt("go");
    assert!(rig.last_ask().keepalive);
    rig.told();
    assert!(rig.tick() && rig.tick());
    rig.fail(status(500, "R"), "");
    assert!(rig.tick(), "the wait for the next attempt is a wait for the model");
    assert_eq!(rig.told(), ["keepalive", "keepalive", "keepalive"]);
    let keepalive = json!({"jsonrpc": "2.0", "method": "session/update",
        "params": {"sessionId": "ses_1", "update": {"sessionUpdate": "keepalive"}}});
    assert_eq!(rig.last_line(), &keepalive);
    rig.answer(&say_call("a"));
    assert!(!rig.tick());
    rig.finish(0, text_result("ok"));
    assert!(!rig.input(crate::session::Input::KeepaliveTick { asked: 1 }), "a tick of the round before");
    rig.answer(&text("done"));
    assert!(!rig.tick());
}

#[test]
fn a_standard_client_gets_a_keepalive_that_it_knows() {
    let mut rig = Rig::with(|o| o.profile = Profile::Standard);
    rig.prompt("go");
    rig.tick();
    assert_eq!(rig.last_line()["params"]["update"], json!({"sessionUpdate": "session_info_update"}));
    rig.cancel();
}

#[test]
fn a_turn_is_settled_in_the_log_before_its_answer_is_said() {
    let mut rig = Rig::new();
    rig.prompt("go");
    let asked = rig.session.asked();
    let body = text("done").to_string().into_bytes();
    let answered = crate::session::Input::Answered {
        asked,
        status: 200,
        headers: vec![],
        body,
        elapsed_ms: 1,
        jitter_permille: 0,
    };
    let mut next = rig.session.admit(answered);
    let mut order = Vec::new();
    let mut records = Vec::new();
    let mut session = rig.session.clone();
    while let Some(record) = next {
        session.fold(&record);
        records.push(record);
        next = session.decide();
    }
    for effect in session.take_outbox() {
        match effect {
            Effect::Settle => order.push("settle"),
            Effect::Say(line) if line.windows(10).any(|w| w == b"stopReason") => order.push("answer"),
            _ => {}
        }
    }
    assert_eq!(order, ["settle", "answer"]);
    rig.take(records);
}
