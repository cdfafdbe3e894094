use super::*;
use crate::dialect::{self, Dialect, Encoder};
use crate::history::Call;
use crate::mcp::Catalogue;
use crate::provider::Form;
use crate::session::tests::rig;

const PLAIN: Form = Form { dialect: Dialect::Anthropic, names_model: true, marks: false };
const MARKED: Form = Form { marks: true, ..PLAIN };
const MARK: &str = r#""cache_control":{"type":"ephemeral"},"#;

fn user(text: &str) -> Item {
    Item::User(text.to_owned())
}

fn call(id: &str, arguments: Value) -> Call {
    let extra = json!({"thoughtSignature": "s"}).as_object().expect("an object").clone();
    Call {
        id: id.into(),
        name: "t__say".into(),
        arguments: arguments.as_object().expect("one").clone(),
        extra,
    }
}

fn assistant(text: &str, calls: Vec<Call>) -> Item {
    Item::Assistant(Assistant { text: text.into(), calls, reasoning_details: Some(json!([1])) })
}

fn result(id: &str, parts: Vec<Part>, is_error: bool) -> Item {
    Item::ToolResult(ToolResult { id: id.into(), parts, is_error })
}

fn words(text: &str) -> Part {
    Part::Text(text.to_owned())
}

fn image(data: &str) -> Part {
    Part::Image { data: data.into(), mime: "image/png".into() }
}

fn request(
    form: Form,
    settings: &Settings,
    system: &str,
    history: &[Item],
    model: &str,
    catalogue: &Catalogue,
) -> String {
    let mut encoder = Encoder::new(form, settings, system);
    encoder.push(history);
    let tools: Vec<&Tool> = catalogue.tools.iter().collect();
    let tools = encoder.encode_tools(&tools);
    let body = encoder.request(model, tools.as_ref());
    let bytes = body.rope.to_vec();
    assert_eq!(hex::encode(body.sha256), hex::encode(<sha2::Sha256 as sha2::Digest>::digest(&bytes)));
    let text = String::from_utf8(bytes).expect("UTF-8");
    let parsed: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(parsed.to_string(), text, "compact, keys in order");
    text
}

fn body(form: Form, history: &[Item]) -> String {
    request(form, &rig::settings(), "sys", history, "m", &Catalogue::default())
}

fn read(value: Value) -> Decoded {
    dialect::decode(Dialect::Anthropic, value.to_string().as_bytes())
}

fn small_history() -> Vec<Item> {
    vec![
        user("hi \"\u{e9}\""),
        assistant("look", vec![call("a", json!({"z": 1, "a": "x"})), call("b", json!({}))]),
        result("a", vec![words("one"), image("QUJD"), words("two")], false),
        result("b", vec![words("no"), words("[Reflect]")], true),
        user("more"),
        assistant("", vec![]),
        user(""),
        user("last"),
    ]
}

#[test]
fn a_history_byte_for_byte_without_marks() {
    let expected = [
        r#"{"max_tokens":1000,"messages":["#,
        "{\"content\":[{\"text\":\"hi \\\"\u{e9}\\\"\",\"type\":\"text\"}],\"role\":\"user\"},",
        r#"{"content":[{"text":"look","type":"text"},{"id":"a","input":{"a":"x","z":1},"name":"t__say","type":"tool_use"},"#,
        r#"{"id":"b","input":{},"name":"t__say","type":"tool_use"}],"role":"assistant"},"#,
        r#"{"content":[{"content":[{"text":"one","type":"text"},{"source":{"data":"QUJD","media_type":"image/png","type":"base64"},"type":"image"},"#,
        r#"{"text":"two","type":"text"}],"is_error":false,"tool_use_id":"a","type":"tool_result"},"#,
        r#"{"content":[{"text":"no","type":"text"},{"text":"[Reflect]","type":"text"}],"is_error":true,"tool_use_id":"b","type":"tool_result"}],"role":"user"},"#,
        r#"{"content":[{"text":"more","type":"text"}],"role":"user"},"#,
        r#"{"content":[{"text":"","type":"text"}],"role":"user"},"#,
        r#"{"content":[{"text":"last","type":"text"}],"role":"user"}"#,
        r#"],"model":"m","system":"sys"}"#,
    ];
    assert_eq!(body(PLAIN, &small_history()), expected.concat());
}

#[test]
fn a_history_byte_for_byte_with_marks() {
    let history = [user("one"), assistant("", vec![call("a", json!({}))]), result("a", vec![], false)];
    let expected = [
        r#"{"max_tokens":1000,"messages":["#,
        r#"{"content":[{"text":"one","type":"text"}],"role":"user"},"#,
        r#"{"content":[{"#,
        MARK,
        r#""id":"a","input":{},"name":"t__say","type":"tool_use"}],"role":"assistant"},"#,
        r#"{"content":[{"#,
        MARK,
        r#""content":[],"is_error":false,"tool_use_id":"a","type":"tool_result"}],"role":"user"}"#,
        r#"],"model":"m","system":[{"#,
        MARK,
        r#""text":"sys","type":"text"}]}"#,
    ];
    assert_eq!(body(MARKED, &history), expected.concat());
}

#[test]
fn marks_are_all_that_marking_adds() {
    for end in 0..small_history().len() {
        let history = &small_history()[..end];
        let marked = body(MARKED, history);
        let unmarked = marked.replace(MARK, "").replace(r#"[{"text":"sys","type":"text"}]}"#, r#""sys"}"#);
        assert_eq!(unmarked, body(PLAIN, history));
        let shown = body(PLAIN, history).matches("\"role\":").count();
        assert_eq!(marked.matches(MARK).count(), 1 + shown.min(2), "{end} items");
    }
}

#[test]
fn the_last_block_of_each_of_the_last_two_messages_is_marked() {
    let parsed: Value = serde_json::from_str(&body(MARKED, &small_history()[..4])).expect("JSON");
    let marks = |message: &Value| -> Vec<bool> {
        message["content"]
            .as_array()
            .expect("blocks")
            .iter()
            .map(|b| b.get("cache_control").is_some())
            .collect()
    };
    let messages = parsed["messages"].as_array().expect("messages");
    assert_eq!(
        messages.iter().map(marks).collect::<Vec<_>>(),
        [vec![false], vec![false, false, true], vec![false, true],]
    );
}

#[test]
fn an_empty_message_takes_no_mark_from_the_others() {
    let history = [user("one"), user("two"), assistant("", vec![])];
    assert_eq!(body(MARKED, &history).matches(MARK).count(), 3);
    assert!(!body(MARKED, &history).contains("assistant"));
}

#[test]
fn an_empty_system_prompt_stays_an_empty_text() {
    let of = |form| request(form, &rig::settings(), "", &[user("x")], "m", &Catalogue::default());
    assert!(of(MARKED).ends_with(r#"],"model":"m","system":""}"#));
    assert_eq!(of(MARKED).matches(MARK).count(), 1);
    assert!(of(PLAIN).ends_with(r#"],"model":"m","system":""}"#));
}

#[test]
fn an_empty_history_byte_for_byte() {
    assert_eq!(body(PLAIN, &[]), r#"{"max_tokens":1000,"messages":[],"model":"m","system":"sys"}"#);
}

#[test]
fn tools_and_thinking_stand_in_their_places() {
    let catalogue = rig::catalogue(&[("t", &["say"])]);
    let settings = Settings { effort: Some(Effort::High), max_output_tokens: 32_768, ..rig::settings() };
    let tools = r#""tools":[{"description":"does say","input_schema":{"type":"object"},"name":"t__say"}]}"#;
    let adaptive = request(PLAIN, &settings, "sys", &[], "claude-opus-4-7", &catalogue);
    assert_eq!(
        adaptive,
        format!(
            "{}{tools}",
            concat!(
                r#"{"max_tokens":32768,"messages":[],"model":"claude-opus-4-7","output_config":{"effort":"high"},"#,
                r#""system":"sys","thinking":{"type":"adaptive"},"#
            )
        )
    );
    let manual = request(PLAIN, &settings, "sys", &[], "claude-opus-4-5", &Catalogue::default());
    assert!(
        manual.ends_with(r#""system":"sys","thinking":{"budget_tokens":31744,"type":"enabled"}}"#),
        "{manual}"
    );
    let other = request(PLAIN, &settings, "sys", &[], "claude-haiku-4-5", &catalogue);
    assert!(other.ends_with(&format!("\"system\":\"sys\",{tools}")), "{other}");
}

#[test]
fn a_result_after_a_user_message_is_a_message_of_its_own() {
    let history = [user("\"content\":["), result("a", vec![], false), result("b", vec![], false)];
    let parsed: Value = serde_json::from_str(&body(PLAIN, &history)).expect("JSON");
    let sizes: Vec<usize> = parsed["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .map(|m| m["content"].as_array().map_or(0, Vec::len))
        .collect();
    assert_eq!(sizes, [1, 2]);
}

#[test]
fn a_summary_request_byte_for_byte() {
    let body = dialect::summary_request(MARKED, "m", "sum up");
    let system = serde_json::to_string(crate::handoff::SUMMARY_SYSTEM_PROMPT).expect("a string");
    let expected = format!(
        "{{\"max_tokens\":8192,\"messages\":[{{\"content\":[{{\"text\":\"sum up\",\"type\":\"text\"}}],\"role\":\"user\"}}],\
         \"model\":\"m\",\"system\":{system}}}"
    );
    assert_eq!(String::from_utf8(body.rope.to_vec()).expect("UTF-8"), expected);
}

#[test]
fn growing_and_dropping_give_the_bytes_of_a_fresh_start() {
    let round = |n: usize| {
        let (a, b) = (format!("a{n}"), format!("b{n}"));
        vec![
            user(&n.to_string()),
            assistant("", vec![call(&a, json!({})), call(&b, json!({}))]),
            result(&a, vec![image("QUJD")], false),
            result(&b, vec![words("x")], true),
            assistant("", vec![]),
        ]
    };
    for form in [PLAIN, MARKED] {
        let mut grown = Encoder::new(form, &rig::settings(), "sys");
        for item in (0..5).flat_map(round) {
            grown.push(&[item]);
        }
        for dropped in 0..=5 {
            let mut fresh = Encoder::new(form, &rig::settings(), "sys");
            fresh.push(&(dropped..5).flat_map(round).collect::<Vec<_>>());
            assert_eq!(grown.request("m", None).rope.to_vec(), fresh.request("m", None).rope.to_vec());
            grown.drop_front(5);
        }
    }
}

#[test]
fn texts_join_at_once_and_thoughts_with_a_line_feed() {
    let answer = read(json!({"stop_reason": "end_turn", "content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "a"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "b"},
        {"type": "thinking", "thinking": "so"},
        {"type": "odd", "text": "c"},
        7,
    ]}));
    let answer = answer.answer.expect("an answer");
    assert_eq!(
        (answer.text.as_str(), answer.reasoning.as_str(), answer.stop),
        ("ab", "hm\nso", Stop::EndTurn)
    );
    assert!(answer.calls.is_empty() && answer.reasoning_details.is_none());
}

#[test]
fn c07_c08_c10_calls_and_their_input() {
    let content: Vec<Value> = [
        json!({"path": "a.txt"}),
        json!("{\"path\":\"a.txt\"}"),
        json!(null),
        json!(""),
        json!([1]),
        json!("{"),
    ]
    .iter()
    .map(|input| json!({"type": "tool_use", "id": "i", "name": "n", "input": input}))
    .chain([json!({"type": "tool_use"})])
    .collect();
    let calls = read(json!({"stop_reason": "tool_use", "content": content})).answer.expect("an answer").calls;
    let path = json!({"path": "a.txt"}).as_object().cloned();
    assert_eq!(calls[0].arguments.clone().ok(), path);
    assert_eq!(calls[1].arguments.clone().ok(), path);
    assert!(calls[2..4].iter().all(|c| c.arguments.as_ref().is_ok_and(Map::is_empty)));
    assert!(calls[4].arguments.as_ref().is_err_and(|e| e.contains("an array")));
    assert!(calls[5].arguments.as_ref().is_err_and(|e| e.contains("not valid JSON")));
    assert_eq!((calls[6].id.as_str(), calls[6].name.as_str()), ("", ""));
}

#[test]
fn an_error_in_a_good_status_is_none_of_the_answers() {
    for (body, told) in [
        (
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}),
            "provider error (overloaded_error): busy",
        ),
        (json!({"error": {}}), "provider error (unknown): {}"),
        (json!({"error": "x"}), "provider error (unknown): \"x\""),
        (json!({}), "response missing content: {}"),
        (json!({"content": null}), "response missing content: {\"content\":null}"),
        (json!({"content": "text"}), "response missing content: {\"content\":\"text\"}"),
        (json!(null), "response missing content: null"),
    ] {
        assert_eq!(read(body).answer.expect_err("an error").to_string(), told);
    }
}

#[test]
fn c27_input_holds_both_cache_fields_and_there_is_never_a_total() {
    let usage = |usage: Value| read(json!({"usage": usage, "content": []})).usage;
    let known = |input, output, cached| Usage { input, output, cached, total: None };
    for (given, expected) in [
        (
            json!({"input_tokens": 100, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 50, "output_tokens": 7, "total_tokens": 9}),
            known(Some(1050), Some(7), Some(900)),
        ),
        (json!({"input_tokens": 500, "cache_read_input_tokens": 500}), known(Some(1000), None, Some(500))),
        (json!({"input_tokens": 42}), known(Some(42), None, None)),
        (json!({"cache_read_input_tokens": 0}), known(Some(0), None, Some(0))),
        (
            json!({"input_tokens": null, "cache_read_input_tokens": "9", "output_tokens": -1}),
            known(None, None, None),
        ),
        (
            json!({"input_tokens": u64::MAX, "cache_read_input_tokens": 1}),
            known(Some(u64::MAX), None, Some(1)),
        ),
        (json!(null), known(None, None, None)),
    ] {
        assert_eq!(usage(given.clone()), expected, "{given}");
    }
}

#[test]
fn stops_of_this_wire() {
    for (word, stop) in [
        ("end_turn", Stop::EndTurn),
        ("tool_use", Stop::ToolUse),
        ("max_tokens", Stop::MaxTokens),
        ("refusal", Stop::Refusal),
        ("stop_sequence", Stop::Other),
        ("pause_turn", Stop::Other),
    ] {
        assert_eq!(read(json!({"stop_reason": word, "content": []})).answer.expect("an answer").stop, stop);
    }
    assert_eq!(read(json!({"content": []})).answer.expect("an answer").stop, Stop::Other);
}
