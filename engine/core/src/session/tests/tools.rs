//! Calls: which run, in which order, and what the model is told of them.

use std::collections::BTreeSet;

use serde_json::{json, Value};

use super::rig::*;
use crate::mcp::ServerEvent;
use crate::provider::{ApiMode, Provider};
use crate::record::{CallOutcome, Head};
use crate::session::{Effect, CALLS_PER_ANSWER_MAX, REFLECTION};

fn reflected(text: &str) -> String {
    format!("{text}\n{REFLECTION}")
}

#[test]
fn an_unknown_tool_is_announced_and_failed_and_the_turn_goes_on() {
    let mut rig = Rig::new();
    rig.prompt("go");
    rig.told();
    rig.answer(&calls_of(&[("a", "t__nope", json!("{}"))]));
    assert_eq!(rig.told(), ["pending a t__nope", "failed a: unknown tool: t__nope"]);
    assert!(rig.calls.is_empty());
    assert_eq!(
        rig.messages()[1..],
        [
            json!({"content": "", "role": "assistant", "tool_calls": [
                {"function": {"arguments": "{}", "name": "t__nope"}, "id": "a", "type": "function"}]}),
            json!({"content": reflected("unknown tool: t__nope"), "role": "tool", "tool_call_id": "a"}),
        ]
    );
    rig.answer(&text("done"));
    assert_eq!(rig.told(), ["message done", "stop end_turn"]);
}

#[test]
fn a_hook_is_never_offered_and_never_called_for_the_model() {
    let mut rig = Rig::with(|o| {
        o.catalogue = catalogue(&[("t", &["say", "_Stop"])]);
        o.hook_servers = vec![0];
    });
    rig.prompt("go");
    let offered: Vec<&Value> = rig.last_ask().body["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .map(|t| &t["function"]["name"])
        .collect();
    assert_eq!(offered, ["t__say"]);
    rig.told();
    rig.answer(&calls_of(&[("a", "t___Stop", json!("{}"))]));
    assert_eq!(rig.told(), ["pending a t___Stop", "failed a: unknown tool: t___Stop"]);
    assert!(rig.calls.is_empty());
    rig.cancel();
}

#[test]
fn of_a_hundred_calls_the_first_64_are_announced_kept_and_answered() {
    let mut rig = Rig::new();
    rig.prompt("go");
    let ids: Vec<String> = (0..100).map(|n| format!("c{n}")).collect();
    let calls: Vec<_> = ids.iter().map(|id| (id.as_str(), "t__nope", json!("{}"))).collect();
    rig.answer(&calls_of(&calls));
    let told = rig.told();
    let pending: BTreeSet<&String> = told.iter().filter(|line| line.starts_with("pending")).collect();
    assert_eq!(pending.len(), CALLS_PER_ANSWER_MAX);
    let messages = rig.messages();
    assert_eq!(messages[1]["tool_calls"].as_array().map(Vec::len), Some(CALLS_PER_ANSWER_MAX));
    assert_eq!(messages[2..].iter().filter(|m| m["role"] == "tool").count(), CALLS_PER_ANSWER_MAX);
    assert_eq!(messages.last().expect("one")["tool_call_id"], "c63");
    rig.answer(&text("done"));
}

#[test]
fn c15_missing_and_repeated_ids_are_made_unique_and_results_find_their_calls() {
    for in_anthropic in [false, true] {
        let mut rig = Rig::with(|o| {
            if in_anthropic {
                anthropic(o)
            }
        });
        rig.prompt("go");
        let ids = ["", "", "x", "x", "x"];
        if in_anthropic {
            let block = |id: &&str| json!({"type": "tool_use", "id": id, "name": "t__say", "input": {}});
            let content: Vec<Value> = ids.iter().map(block).collect();
            rig.answer(&json!({"stop_reason": "tool_use", "content": content}));
        } else {
            rig.answer(&calls_of(&ids.map(|id| (id, "t__say", json!("{}")))));
        }
        for index in (0..ids.len()).rev() {
            rig.finish(index, text_result(&format!("of {index}")));
        }
        let results: Vec<String> = rig.history()[2..].to_vec();
        assert_eq!(
            results,
            [
                "result call_1_1_0 of 0",
                "result call_1_1_1 of 1",
                "result x of 2",
                "result x-2 of 3",
                "result x-3 of 4",
            ]
        );
        rig.cancel();
    }
}

#[test]
fn ids_may_come_again_in_another_round() {
    let mut rig = Rig::new();
    rig.prompt("go");
    for _ in 0..2 {
        rig.answer(&say_call("same"));
        rig.finish(0, text_result("ok"));
    }
    rig.answer(&text("done"));
    assert_eq!(
        rig.history()[1..5],
        ["assistant  same", "result same ok", "assistant  same", "result same ok"]
    );
}

#[test]
fn c07_c08_c11_arguments_in_any_form_run_and_go_back_as_a_string() {
    for (given, run) in [
        (json!({"path": "a.txt"}), json!({"path": "a.txt"})),
        (json!("{\"path\": \"a.txt\"}"), json!({"path": "a.txt"})),
        (json!("{\"z\": 1, \"a\": [ ]}"), json!({"a": [], "z": 1})),
        (json!(""), json!({})),
        (json!(null), json!({})),
        (json!("null"), json!({})),
    ] {
        let mut rig = Rig::new();
        rig.prompt("go");
        rig.answer(&calls_of(&[("a", "t__say", given.clone())]));
        let call = Started { asked: 1, index: 0, server: 0, bare: "say".into(), arguments: run.clone() };
        assert_eq!(rig.calls, [call], "{given}");
        rig.finish(0, text_result("ok"));
        assert_eq!(rig.messages()[1]["tool_calls"][0]["function"]["arguments"], json!(run.to_string()));
        rig.cancel();
    }
}

#[test]
fn c11_arguments_go_back_as_a_string_on_each_openai_wire() {
    let object = json!({"path": "a.txt"});
    let usage = json!({"input_tokens": 1, "output_tokens": 1});
    let item = json!({"type": "function_call", "call_id": "a", "name": "t__say", "arguments": object});
    let responses = json!({"status": "completed", "output": [item], "usage": usage});
    let chat = calls_of(&[("a", "t__say", object.clone())]);
    for (provider, api, answer, place) in [
        ("openai", ApiMode::Chat, &chat, "/messages/2/tool_calls/0/function/arguments"),
        ("openrouter", ApiMode::Chat, &chat, "/messages/2/tool_calls/0/function/arguments"),
        ("databricks", ApiMode::Chat, &chat, "/messages/2/tool_calls/0/function/arguments"),
        ("openai", ApiMode::Responses, &responses, "/input/1/arguments"),
    ] {
        let mut rig = Rig::with(|o| {
            o.settings.provider = Provider::of_word(provider).expect("a provider");
            o.settings.api = api;
        });
        rig.prompt("go");
        rig.answer(answer);
        assert_eq!(rig.calls[0].arguments, object, "{provider}");
        rig.finish(0, text_result("ok"));
        assert_eq!(rig.last_ask().body.pointer(place), Some(&json!(object.to_string())), "{provider}");
        rig.cancel();
    }
}

#[test]
fn c09_c10_broken_arguments_fail_their_call_alone() {
    for (given, needle) in [
        (json!("{\"command\": \"ls"), "not valid JSON"),
        (json!("[1]"), "an array"),
        (json!("\"ls\""), "a string"),
        (json!([1]), "an array"),
        (json!(3), "a number"),
    ] {
        let mut rig = Rig::new();
        rig.prompt("go");
        rig.told();
        rig.answer(&calls_of(&[("a", "t__say", given), ("b", "t__say", json!("{}"))]));
        let told = rig.told();
        assert_eq!(told[0], "pending a t__say");
        assert!(told[1].starts_with("failed a: ") && told[1].contains(needle), "{told:?}");
        assert_eq!(told[2..], ["pending b t__say", "in_progress b"]);
        assert_eq!(rig.calls.len(), 1);
        rig.finish(1, text_result("ok"));
        let messages = rig.messages();
        assert_eq!(messages[1]["tool_calls"][0]["function"]["arguments"], "{}");
        assert_eq!(messages[2]["tool_call_id"], "a");
        assert!(messages[2]["content"].as_str().expect("text").contains(needle));
        rig.answer(&text("sorry"));
    }
}

#[test]
fn a_call_without_a_name_fails_the_turn() {
    let mut rig = Rig::new();
    rig.prompt("go");
    rig.answer(&calls_of(&[("a", "t__say", json!("{}")), ("b", "", json!("{}"))]));
    assert_eq!(rig.told(), ["run run_1", "error -32000: llm: provider: tool_call missing name"]);
    assert_eq!(rig.history(), ["user go"]);
}

#[test]
fn extra_keys_of_a_call_come_back_beside_its_function_and_count() {
    let mut rig = Rig::new();
    rig.prompt("go");
    let mut answer = say_call("a");
    answer["choices"][0]["message"]["tool_calls"][0]["thoughtSignature"] = json!("sig");
    answer["choices"][0]["message"]["tool_calls"][0]["index"] = json!(0);
    let before = rig.session.history().wire_bytes();
    rig.answer(&answer);
    let call = "a".len() + "t__say".len() + "{}".len() + r#"{"index":0,"thoughtSignature":"sig"}"#.len();
    assert_eq!(rig.session.history().wire_bytes() - before, call as u64);
    assert_eq!(rig.session.history().pressure_bytes() - before, call as u64);
    rig.finish(0, text_result("ok"));
    assert_eq!(
        rig.messages()[1]["tool_calls"][0],
        json!({"function": {"arguments": "{}", "name": "t__say"}, "id": "a", "index": 0, "thoughtSignature": "sig",
            "type": "function"})
    );
    rig.cancel();
}

#[test]
fn c16_results_go_back_in_call_order_whatever_their_own() {
    let mut rig = Rig::calling(3, |_| {});
    rig.finish(2, text_result("third"));
    rig.finish(0, text_result("first"));
    rig.finish(1, text_result("second"));
    assert_eq!(rig.told(), ["completed c", "completed a", "completed b"]);
    assert_eq!(rig.history()[2..], ["result a first", "result b second", "result c third"]);
    let completion = rig.log.iter().filter_map(|record| match record.head {
        Head::CallFinished { index, .. } => Some(index),
        _ => None,
    });
    assert_eq!(completion.collect::<Vec<_>>(), [2, 0, 1]);
    rig.cancel();
}

#[test]
fn calls_start_in_call_order_while_there_is_room() {
    let mut rig = Rig::with(|o| o.settings.max_parallel_tools = 2);
    rig.prompt("go");
    rig.told();
    rig.answer(&calls_of(&["a", "b", "c", "d"].map(|id| (id, "t__say", json!("{}")))));
    assert_eq!(
        rig.told(),
        [
            "pending a t__say",
            "pending b t__say",
            "pending c t__say",
            "pending d t__say",
            "in_progress a",
            "in_progress b"
        ]
    );
    rig.finish(1, text_result("b"));
    assert_eq!(rig.told(), ["completed b", "in_progress c"]);
    assert!(!rig.finish(3, text_result("not started")));
    rig.finish(0, text_result("a"));
    assert_eq!(rig.told(), ["completed a", "in_progress d"]);
    let started: Vec<usize> = rig.calls.iter().map(|c| c.index).collect();
    assert_eq!(started, [0, 1, 2, 3]);
    rig.cancel();
    rig.drain();
}

#[test]
fn one_at_a_time_means_that_one_ends_before_the_next_begins() {
    for limit in [0, 1] {
        let mut rig = Rig::with(|o| o.settings.max_parallel_tools = limit);
        rig.prompt("go");
        rig.answer(&calls_of(&["a", "b"].map(|id| (id, "t__say", json!("{}")))));
        assert_eq!(rig.told().last().map(String::as_str), Some("in_progress a"));
        rig.finish(0, error_result("no"));
        assert_eq!(rig.told(), ["returned error a", "in_progress b"]);
        rig.finish(1, text_result("b"));
        rig.answer(&text("done"));
    }
}

#[test]
fn each_way_to_fail_is_told_and_reflected_once() {
    let rejected = br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"bad"}}"#;
    for (outcome, line, told, text) in [
        (CallOutcome::Returned, error_result("no").to_string(), "returned error a", "no".to_owned()),
        (
            CallOutcome::Returned,
            String::new(),
            "returned error a",
            "Tool call rejected: Mcp error: -32602: bad".into(),
        ),
        (
            CallOutcome::TransportFailed { text: "mcp: call t__say: gone".into() },
            String::new(),
            "failed a: mcp: call t__say: gone",
            "mcp: call t__say: gone".into(),
        ),
        (
            CallOutcome::Unavailable { text: "mcp: t is recovering".into() },
            String::new(),
            "failed a: mcp: t is recovering",
            "mcp: t is recovering".into(),
        ),
        (CallOutcome::Cancelled, String::new(), "failed a: cancelled", "cancelled".into()),
    ] {
        let mut rig = Rig::calling(1, |_| {});
        let line = match (&outcome, line.is_empty()) {
            (CallOutcome::Returned, true) => rejected.to_vec(),
            _ => format!(r#"{{"jsonrpc":"2.0","id":1,"result":{line}}}"#).into_bytes(),
        };
        rig.finish_as(0, outcome, &line);
        assert_eq!(rig.told(), [told]);
        assert_eq!(rig.history()[2..], [format!("error a {}", reflected(&text))]);
        rig.answer(&super::rig::text("done"));
    }
}

#[test]
fn c20_a_protocol_error_of_a_server_does_not_end_the_turn() {
    let mut rig = Rig::calling(1, |_| {});
    rig.finish_line(0, br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"bad"}}"#);
    assert_eq!(rig.asks.len(), 2);
    rig.answer(&text("done"));
    assert_eq!(rig.told().last().map(String::as_str), Some("stop end_turn"));
}

#[test]
fn a_call_that_took_too_long_says_so() {
    let mut rig = Rig::calling(1, |_| {});
    rig.finish_as(0, CallOutcome::TimedOut { after_secs: 660 }, b"");
    assert!(rig.told()[0].starts_with("failed a: tool: timeout after 660s"));
    assert!(rig.history()[2].ends_with(REFLECTION));
    rig.cancel();
}

#[test]
fn the_suffix_is_the_last_part_of_a_failure_and_no_line_shows_it() {
    let mut rig = Rig::with(anthropic);
    rig.prompt("go");
    let block = |id| json!({"type": "tool_use", "id": id, "name": "t__say", "input": {}});
    rig.answer(&json!({"stop_reason": "tool_use", "content": [block("a"), block("b")]}));
    rig.finish(0, error_result("no"));
    rig.finish(1, text_result("yes"));
    let text = |text: &str| json!({"text": text, "type": "text"});
    let marked = |mut block: Value| {
        block["cache_control"] = json!({"type": "ephemeral"});
        block
    };
    let results = [
        json!({"content": [text("no"), text(REFLECTION)], "is_error": true, "tool_use_id": "a", "type": "tool_result"}),
        marked(
            json!({"content": [text("yes")], "is_error": false, "tool_use_id": "b", "type": "tool_result"}),
        ),
    ];
    assert_eq!(rig.messages()[2], json!({"content": results, "role": "user"}));
    assert!(!rig.lines.iter().any(|line| line.to_string().contains("[Reflect]")));
    assert_eq!((REFLECTION.len(), &REFLECTION[..2]), (73, "\n\n"));
    rig.cancel();
}

#[test]
fn c17_two_blocks_are_one_result_in_order() {
    let mut rig = Rig::calling(1, |_| {});
    rig.finish(0, json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}));
    assert_eq!(rig.messages()[2], json!({"content": "a\nb", "role": "tool", "tool_call_id": "a"}));
    rig.cancel();
}

#[test]
fn an_empty_result_is_an_empty_text() {
    let mut rig = Rig::calling(1, |_| {});
    rig.finish(0, json!({"content": []}));
    assert_eq!(rig.last_line()["params"]["update"]["content"][0]["content"]["text"], "");
    assert_eq!(rig.messages()[2], json!({"content": "", "role": "tool", "tool_call_id": "a"}));
    rig.cancel();
}

#[test]
fn c18_the_same_tool_of_two_servers_goes_where_its_name_says() {
    let mut rig = Rig::with(|o| o.catalogue = catalogue(&[("s1", &["sql"]), ("s2", &["sql"])]));
    rig.prompt("go");
    rig.answer(&calls_of(&[("a", "s2__sql", json!("{}")), ("b", "s1__sql", json!("{}"))]));
    let servers: Vec<usize> = rig.calls.iter().map(|c| c.server).collect();
    assert_eq!(servers, [1, 0]);
    rig.cancel();
    rig.drain();
}

#[test]
fn c39_a_giant_result_is_cut_on_its_way_in() {
    let mut rig = Rig::calling(1, |o| o.settings.max_tool_result_text_bytes = 2048);
    let giant = format!("head {} tail", "x".repeat(1_000_000));
    rig.finish(0, text_result(&giant));
    let shown = rig.messages()[2]["content"].as_str().expect("text").to_owned();
    assert!(shown.len() <= 2048);
    assert!(shown.starts_with("head ") && shown.ends_with(" tail") && shown.contains("bytes elided"));
    assert_eq!(rig.log.iter().filter(|r| r.raw.len() > 1_000_000).count(), 1, "the log keeps it whole, once");
    rig.cancel();
}

#[test]
fn c36_c38_odd_bytes_of_models_and_servers_cost_no_turn() {
    let mut rig = Rig::calling(1, |_| {});
    rig.finish_line(0, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"f\xffo \\ud99c\"}]}}");
    assert_eq!(rig.messages()[2]["content"], "f\u{fffd}o \u{fffd}");
    rig.answer_bytes(
        2,
        br#"{"choices":[{"finish_reason":"stop","message":{"content":"x\ud99c y"}}]}"#.to_vec(),
    );
    assert_eq!(rig.told(), ["completed a", "message x\u{fffd} y", "stop end_turn"]);
    rig.prompt("more");
    assert!(std::str::from_utf8(&rig.last_ask().bytes).is_ok());
    rig.cancel();
}

#[test]
fn tools_of_a_server_that_was_given_up_are_offered_no_more_but_stay_known() {
    let mut rig = Rig::calling(1, |o| o.catalogue = catalogue(&[("t", &["say"]), ("u", &["do"])]));
    assert!(rig.server(0, ServerEvent::Died { reason: "x".into(), attempt: 1, retry_in_ms: 500 }));
    assert!(rig.server(0, ServerEvent::Exhausted));
    assert!(!rig.server(5, ServerEvent::Exhausted));
    rig.finish_as(0, CallOutcome::Unavailable { text: "mcp: t is given up".into() }, b"");
    let names = |rig: &Rig| -> Vec<Value> {
        rig.last_ask().body["tools"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|t| t["function"]["name"].clone())
            .collect()
    };
    assert_eq!(names(&rig), ["u__do"]);
    rig.answer(&say_call("b"));
    assert_eq!(rig.calls.len(), 2, "it runs and its server says what is wrong");
    rig.cancel();
    rig.drain();
}

#[test]
fn tools_that_a_restart_did_not_bring_back_are_hidden() {
    let mut rig = Rig::calling(1, |_| {});
    rig.server(0, ServerEvent::RestartFailed { reason: "x".into(), attempt: 2, retry_in_ms: 0 });
    assert_eq!(rig.session.servers()[0].attempts, 2);
    rig.server(0, ServerEvent::Restarted { tools: vec!["shell".into(), "new".into()] });
    assert_eq!(rig.session.servers()[0].attempts, 0);
    rig.finish(0, text_result("ok"));
    let tools = rig.last_ask().body["tools"].as_array().expect("tools").clone();
    assert_eq!(tools.len(), 1);
    assert_eq!(tools[0]["function"]["name"], "t__shell");
    rig.server(0, ServerEvent::Restarted { tools: vec![] });
    rig.answer(&say_call("b"));
    rig.finish(0, text_result("ok"));
    assert!(rig.last_ask().body.get("tools").is_none() && rig.last_ask().body.get("tool_choice").is_none());
    rig.cancel();
}

#[test]
fn effects_of_a_round_carry_its_number() {
    let mut rig = Rig::calling(1, |_| {});
    rig.finish(0, text_result("ok"));
    rig.answer(&say_call("b"));
    let asked: Vec<u64> = rig.calls.iter().map(|c| c.asked).collect();
    assert_eq!(asked, [1, 2]);
    rig.cancel();
    assert_eq!(rig.count_effects(|e| matches!(e, Effect::StopCalls { asked: 2 })), 1);
    rig.drain();
}
