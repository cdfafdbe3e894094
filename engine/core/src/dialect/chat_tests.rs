use super::*;
use crate::dialect::{self, Encoder};
use crate::history::Call;
use crate::mcp::Catalogue;
use crate::session::tests::rig;

const CHAT: Form = Form { dialect: Dialect::Chat, names_model: true, marks: false };
const OPENROUTER: Form = Form { dialect: Dialect::Openrouter, names_model: true, marks: true };

fn user(text: &str) -> Item {
    Item::User(text.to_owned())
}

fn map(value: Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

fn call(id: &str, arguments: Value, extra: Value) -> Call {
    Call { id: id.into(), name: "t__say".into(), arguments: map(arguments), extra: map(extra) }
}

fn assistant(text: &str, calls: Vec<Call>) -> Item {
    Item::Assistant(Assistant { text: text.into(), calls, reasoning_details: None })
}

fn result(id: &str, parts: Vec<Part>) -> Item {
    Item::ToolResult(ToolResult { id: id.into(), parts, is_error: false })
}

fn words(text: &str) -> Part {
    Part::Text(text.to_owned())
}

fn image(data: &str) -> Part {
    Part::Image { data: data.into(), mime: "image/png".into() }
}

fn body(form: Form, settings: &Settings, history: &[Item], catalogue: &Catalogue) -> String {
    let mut encoder = Encoder::new(form, settings, "be \"good\"\u{1f}\u{e9}");
    encoder.push(history);
    let tools: Vec<&Tool> = catalogue.tools.iter().collect();
    let tools = encoder.encode_tools(&tools);
    let body = encoder.request("m", tools.as_ref());
    let bytes = body.rope.to_vec();
    assert_eq!(hex::encode(body.sha256), hex::encode(<sha2::Sha256 as sha2::Digest>::digest(&bytes)));
    let text = String::from_utf8(bytes).expect("UTF-8");
    let parsed: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(parsed.to_string(), text, "compact, keys in order");
    text
}

fn plain(history: &[Item]) -> String {
    body(CHAT, &rig::settings(), history, &Catalogue::default())
}

/// The messages after the system prompt.
fn messages(history: &[Item]) -> String {
    let body = plain(history);
    let start =
        r#"{"max_completion_tokens":1000,"messages":[{"content":"be \"good\"\u001fé","role":"system"}"#;
    let rest = body.strip_prefix(start).expect("a head");
    rest.strip_suffix(r#"],"model":"m","stream":false}"#).expect("a tail").to_owned()
}

fn read(value: Value) -> Decoded {
    dialect::decode(Dialect::Chat, value.to_string().as_bytes())
}

fn said(message: Value) -> Answer {
    read(json!({"choices": [{"finish_reason": "stop", "message": message}]})).answer.expect("an answer")
}

fn error(value: Value) -> String {
    read(value).answer.expect_err("an error").to_string()
}

#[test]
fn an_empty_history_byte_for_byte() {
    assert_eq!(
        plain(&[]),
        "{\"max_completion_tokens\":1000,\"messages\":[{\"content\":\"be \\\"good\\\"\\u001f\u{e9}\",\"role\":\
         \"system\"}],\"model\":\"m\",\"stream\":false}"
    );
}

#[test]
fn a_history_byte_for_byte() {
    let history = [
        user("hi\n\u{7f}/"),
        assistant(
            "",
            vec![
                call(
                    "a",
                    json!({"z": 1.0, "a": [1e16, "\u{8}"]}),
                    json!({"thoughtSignature": "s", "index": 0}),
                ),
                call("b", json!({}), json!({})),
            ],
        ),
        result("a", vec![words("seen"), image("QUJD"), words("end")]),
        result("b", vec![image("RA==")]),
        user("more"),
        assistant("", vec![]),
        assistant(" ", vec![]),
        user(""),
    ];
    let line = |bytes: usize| {
        format!("This tool result included an image (image/png, {bytes} base64 bytes) that is provided in the next user message.")
    };
    let url = |data: &str| {
        format!("{{\"image_url\":{{\"url\":\"data:image/png;base64,{data}\"}},\"type\":\"image_url\"}}")
    };
    let expected = [
        ",{\"content\":\"hi\\n\u{7f}/\",\"role\":\"user\"}".to_owned(),
        concat!(
            r#",{"content":"","role":"assistant","tool_calls":[{"function":{"arguments":"{\"a\":[1e+16,\"\\b\"],\"z\":1.0}","#,
            r#""name":"t__say"},"id":"a","index":0,"thoughtSignature":"s","type":"function"},"#,
            r#"{"function":{"arguments":"{}","name":"t__say"},"id":"b","type":"function"}]}"#
        )
        .to_owned(),
        format!(",{{\"content\":\"seen\\n{}\\nend\",\"role\":\"tool\",\"tool_call_id\":\"a\"}}", line(4)),
        format!(",{{\"content\":\"{}\",\"role\":\"tool\",\"tool_call_id\":\"b\"}}", line(4)),
        format!(",{{\"content\":[{},{}],\"role\":\"user\"}}", url("QUJD"), url("RA==")),
        r#",{"content":"more","role":"user"}"#.to_owned(),
        r#",{"content":"","role":"assistant"}"#.to_owned(),
        r#",{"content":" ","role":"assistant"}"#.to_owned(),
        r#",{"content":"","role":"user"}"#.to_owned(),
    ];
    assert_eq!(messages(&history), expected.concat());
}

#[test]
fn extras_cannot_replace_what_a_call_is() {
    let odd = call("a", json!({}), json!({"id": "x", "type": "y", "function": "z", "own": 1}));
    assert_eq!(
        messages(&[assistant("", vec![odd])]),
        r#",{"content":"","role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"t__say"},"id":"a","own":1,"type":"function"}]}"#
    );
}

#[test]
fn a_result_without_parts_is_an_empty_text() {
    assert_eq!(messages(&[result("a", vec![])]), r#",{"content":"","role":"tool","tool_call_id":"a"}"#);
}

#[test]
fn held_reasoning_details_come_back_word_for_word() {
    let details = json!([{"type": "reasoning.encrypted", "data": "x", "a": null}]);
    let item =
        Item::Assistant(Assistant { text: "t".into(), calls: vec![], reasoning_details: Some(details) });
    assert_eq!(
        messages(&[item]),
        r#",{"content":"t","reasoning_details":[{"a":null,"data":"x","type":"reasoning.encrypted"}],"role":"assistant"}"#
    );
}

#[test]
fn tools_and_effort_stand_in_their_places() {
    let settings = Settings { effort: Some(Effort::High), ..rig::settings() };
    let body = body(CHAT, &settings, &[], &rig::catalogue(&[("t", &["say"])]));
    let tail = concat!(
        r#"],"model":"m","reasoning_effort":"high","stream":false,"tool_choice":"auto","tools":[{"function":"#,
        r#"{"description":"does say","name":"t__say","parameters":{"type":"object"}},"type":"function"}]}"#
    );
    assert!(body.ends_with(tail), "{body}");
}

#[test]
fn a_legacy_endpoint_is_not_told_the_model() {
    let form = Form { names_model: false, ..CHAT };
    assert!(body(form, &rig::settings(), &[], &Catalogue::default()).ends_with(r#"],"stream":false}"#));
}

#[test]
fn openrouter_marks_the_system_prompt_the_last_two_text_users_and_the_last_tool() {
    let history =
        [user("one"), user("two"), result("a", vec![image("QUJD")]), user("three"), assistant("ok", vec![])];
    let catalogue = rig::catalogue(&[("t", &["say", "run"])]);
    let body: Value =
        serde_json::from_str(&body(OPENROUTER, &rig::settings(), &history, &catalogue)).expect("JSON");
    let marked = |text: &str, role: &str| json!({"content": [{"cache_control": {"type": "ephemeral"}, "text": text, "type": "text"}], "role": role});
    let messages = body["messages"].as_array().expect("messages");
    assert_eq!(messages[0], marked("be \"good\"\u{1f}\u{e9}", "system"));
    assert_eq!(messages[1], json!({"content": "one", "role": "user"}));
    assert_eq!(messages[2], marked("two", "user"));
    assert_eq!(messages[4]["content"][0]["type"], "image_url");
    assert_eq!(messages[5], marked("three", "user"));
    assert_eq!(body.to_string().matches("cache_control").count(), 4);
    assert_eq!(body["tools"][1]["function"]["cache_control"], json!({"type": "ephemeral"}));
    assert_eq!((&body["max_tokens"], body.get("max_completion_tokens")), (&json!(1000), None));
}

#[test]
fn a_summary_request_byte_for_byte() {
    let body = dialect::summary_request(CHAT, "m", "sum up");
    let system = serde_json::to_string(crate::handoff::SUMMARY_SYSTEM_PROMPT).expect("a string");
    let expected = format!(
        "{{\"max_completion_tokens\":8192,\"messages\":[{{\"content\":{system},\"role\":\"system\"}},{{\"content\":\
         \"sum up\",\"role\":\"user\"}}],\"model\":\"m\",\"stream\":false}}"
    );
    assert_eq!(String::from_utf8(body.rope.to_vec()).expect("UTF-8"), expected);
}

#[test]
fn growing_and_dropping_give_the_bytes_of_a_fresh_start() {
    let round = |n: usize| {
        let a = format!("a{n}");
        [
            user(&n.to_string()),
            assistant("", vec![call(&a, json!({}), json!({}))]),
            result(&a, vec![image("QUJD")]),
        ]
    };
    for form in [CHAT, OPENROUTER] {
        let mut grown = Encoder::new(form, &rig::settings(), "s");
        (0..5).for_each(|n| round(n).iter().for_each(|item| grown.push(std::slice::from_ref(item))));
        for dropped in 0..5 {
            let mut fresh = Encoder::new(form, &rig::settings(), "s");
            fresh.push(&(dropped..5).flat_map(round).collect::<Vec<_>>());
            assert_eq!(grown.request("m", None).rope.to_vec(), fresh.request("m", None).rope.to_vec());
            grown.drop_front(3);
        }
    }
}

#[test]
fn content_is_a_text_nothing_or_a_list_of_blocks() {
    for (content, text, reasoning) in [
        (json!("plain"), "plain", ""),
        (json!(null), "", ""),
        (json!(7), "", ""),
        (
            json!([{"type": "text", "text": "a"}, {"type": "text", "text": ""}, {"type": "text", "text": "b"}]),
            "a\nb",
            "",
        ),
        (json!([{"type": "odd", "text": "a"}, {"text": "b"}, {"type": "text"}, 7]), "a\nb", ""),
        (
            json!([{"type": "reasoning", "summary": [{"text": "x"}, {"text": "y"}]}, {"type": "reasoning", "text": "z"}, {"type": "text", "text": "a"}]),
            "a",
            "x\ny\nz",
        ),
    ] {
        let answer = said(json!({"content": content}));
        assert_eq!((answer.text.as_str(), answer.reasoning.as_str()), (text, reasoning), "{content}");
    }
    assert_eq!(said(json!({})).text, "");
}

#[test]
fn reasoning_fields_have_an_order() {
    let blocks = json!([{"type": "reasoning", "text": "third"}]);
    for (message, reasoning) in [
        (json!({"reasoning_content": "first", "reasoning": "second", "content": blocks}), "first"),
        (json!({"reasoning": "second", "content": blocks}), "second"),
        (json!({"reasoning_content": "", "reasoning": "second"}), "second"),
        (json!({"reasoning_content": null, "reasoning": {"odd": 1}, "content": blocks}), "third"),
        (json!({"content": "x"}), ""),
    ] {
        assert_eq!(said(message.clone()).reasoning, reasoning, "{message}");
    }
}

#[test]
fn every_finish_reason_has_its_stop() {
    for (word, stop) in [
        (json!("stop"), Stop::EndTurn),
        (json!("end_turn"), Stop::EndTurn),
        (json!("tool_calls"), Stop::ToolUse),
        (json!("tool_use"), Stop::ToolUse),
        (json!("length"), Stop::MaxTokens),
        (json!("max_tokens"), Stop::MaxTokens),
        (json!("content_filter"), Stop::Refusal),
        (json!("refusal"), Stop::Refusal),
        (json!("pause_turn"), Stop::Other),
        (json!(null), Stop::Other),
        (json!(7), Stop::Other),
    ] {
        let body = json!({"choices": [{"finish_reason": word, "message": {}}]});
        assert_eq!(read(body).answer.expect("an answer").stop, stop, "{word}");
    }
    assert_eq!(read(json!({"choices": [{"message": {}}]})).answer.expect("an answer").stop, Stop::Other);
}

#[test]
fn calls_are_read_with_their_extras_and_only_those() {
    let answer = said(json!({"tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "n", "arguments": "{\"x\":1}", "odd": 1}, "index": 0, "sig": {"b": 1}},
        {"function": {"name": "n"}},
        {"id": null, "function": {"name": null, "arguments": null}},
    ]}));
    let call = |id: &str, name: &str, arguments: Value, extra: Value| AnsweredCall {
        id: id.into(),
        name: name.into(),
        arguments: Ok(map(arguments)),
        extra: map(extra),
    };
    assert_eq!(
        answer.calls,
        [
            call("a", "n", json!({"x": 1}), json!({"index": 0, "sig": {"b": 1}})),
            call("", "n", json!({}), json!({})),
            call("", "", json!({}), json!({})),
        ]
    );
    for none in [json!(null), json!([]), json!("x"), json!({})] {
        assert!(said(json!({"tool_calls": none})).calls.is_empty());
    }
}

#[test]
fn c03_c04_an_error_in_the_clothes_of_an_answer_keeps_its_words() {
    for (body, told) in [
        (json!({"error": {"code": 429, "message": "slow down"}}), "provider error (429): slow down"),
        (json!({"error": {"code": "quota", "message": "no"}}), "provider error (quota): no"),
        (json!({"error": {"message": "no"}}), "provider error (unknown): no"),
        (json!({"error": "plain"}), "provider error (unknown): \"plain\""),
        (json!({"error": {"code": 1.5}}), "provider error (1.5): {\"code\":1.5}"),
        (
            json!({"choices": [{"finish_reason": "error", "error": {"code": 502, "message": "up", "metadata": {"error_type": "overloaded"}}}]}),
            "provider error (502, overloaded): up",
        ),
        (json!({"choices": [{"finish_reason": "error"}]}), "provider error (unknown): null"),
        (json!({"error": null, "choices": []}), "response missing choices: {\"choices\":[],\"error\":null}"),
    ] {
        assert_eq!(error(body), told);
    }
}

#[test]
fn an_error_of_null_beside_choices_is_none() {
    let body = json!({"error": null, "choices": [{"finish_reason": "stop", "message": {"content": "fine"}}]});
    assert_eq!(read(body).answer.expect("an answer").text, "fine");
}

#[test]
fn c05_what_a_body_lacks_is_named_with_a_bounded_excerpt() {
    for (body, lacks) in [
        (json!({}), "response missing choices"),
        (json!({"choices": null}), "response missing choices"),
        (json!({"choices": []}), "response missing choices"),
        (json!({"choices": {}}), "response missing choices"),
        (json!({"choices": [{}]}), "response missing message"),
        (json!({"choices": [null]}), "response missing message"),
        (json!({"choices": [{"message": null}]}), "response missing message"),
        (json!({"choices": [{"message": {"tool_calls": [{"id": "a"}]}}]}), "tool_call missing function"),
        (json!({"choices": [{"message": {"tool_calls": [null]}}]}), "tool_call missing function"),
        (json!({"pad": "\u{e9}".repeat(100_000)}), "response missing choices"),
    ] {
        let told = error(body);
        assert!(told.starts_with(lacks) && told.len() < 800, "{told}");
    }
}

#[test]
fn a_body_that_is_no_json_says_so() {
    for body in [&b""[..], b"{", b"\xff", b"{} {}"] {
        let decoded = dialect::decode(Dialect::Chat, body);
        assert!(matches!(decoded.answer, Err(AnswerError::Json(_))), "{body:?}");
        assert_eq!(decoded.usage, Usage::default());
    }
}

#[test]
fn c23_c25_c27_usage_in_every_shape() {
    let usage = |usage: Value| read(json!({"usage": usage, "choices": [{"message": {}}]})).usage;
    let known = |input, output, cached, total| Usage { input, output, cached, total };
    for (given, expected) in [
        (
            json!({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12, "prompt_tokens_details": null}),
            known(Some(10), Some(2), None, Some(12)),
        ),
        (
            json!({"prompt_tokens": 1000, "prompt_tokens_details": {"cached_tokens": 500}}),
            known(Some(1000), None, Some(500), None),
        ),
        (
            json!({"prompt_tokens": 13320, "cache_read_input_tokens": 13312, "prompt_tokens_details": {"cached_tokens": 13312}}),
            known(Some(13320), None, Some(13312), None),
        ),
        (
            json!({"prompt_tokens": 1, "cache_read_input_tokens": null, "prompt_tokens_details": {"cached_tokens": 0}}),
            known(Some(1), None, Some(0), None),
        ),
        (json!({"prompt_tokens": "12", "completion_tokens": 1.5, "total_tokens": -1}), Usage::default()),
        (json!({"prompt_tokens": 1e30, "input_tokens": 7}), Usage::default()),
        (json!(null), Usage::default()),
        (json!(7), Usage::default()),
    ] {
        assert_eq!(usage(given.clone()), expected, "{given}");
    }
    let billed = read(json!({"usage": {"prompt_tokens": 5}, "error": {"code": 500}}));
    assert_eq!(billed.usage.input, Some(5));
}

#[test]
fn only_openrouter_keeps_reasoning_details_and_only_a_list() {
    let body = |details: Value| {
        json!({"choices": [{"message": {"content": "x", "reasoning_details": details}}]}).to_string()
    };
    let kept = |dialect, details: Value| {
        dialect::decode(dialect, body(details).as_bytes()).answer.expect("an answer").reasoning_details
    };
    let list = json!([{"type": "reasoning.text", "text": "hm"}]);
    assert_eq!(kept(Dialect::Openrouter, list.clone()), Some(list.clone()));
    assert_eq!(kept(Dialect::Openrouter, json!([])), Some(json!([])));
    for other in [json!(null), json!({}), json!("x")] {
        assert_eq!(kept(Dialect::Openrouter, other), None);
    }
    assert_eq!(kept(Dialect::Chat, list), None);
}
