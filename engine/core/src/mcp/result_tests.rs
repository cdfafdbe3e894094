//! What models are shown of the answers that servers give.

use serde_json::json;

use super::*;

const SMALL: ResultLimits = ResultLimits { text_bytes: 1024, total_bytes: 4096 };

fn answer(result: Value) -> Vec<u8> {
    json!({ "jsonrpc": "2.0", "id": 4, "result": result }).to_string().into_bytes()
}

fn shape(result: Value, limits: ResultLimits) -> CallResult {
    shape_result("s__t", &answer(result), limits)
}

fn content(blocks: Value) -> CallResult {
    shape(json!({ "content": blocks }), ResultLimits::default())
}

fn text(text: impl Into<String>) -> Part {
    Part::Text(text.into())
}

fn image(data: &str, mime: &str) -> Part {
    Part::Image { data: data.to_owned(), mime: mime.to_owned() }
}

#[test]
fn c17_two_texts_become_one_part_in_order() {
    let result = content(json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]));
    assert_eq!(result, CallResult { parts: vec![text("a\nb")], is_error: false, returned: true });
}

#[test]
fn text_image_text_stay_three_parts_in_order() {
    let result = content(json!([
        { "type": "text", "text": "before", "annotations": {} },
        { "type": "image", "data": "QUJD", "mimeType": "image/bmp" },
        { "type": "text", "text": "after" },
    ]));
    assert_eq!(result.parts, [text("before"), image("QUJD", "image/bmp"), text("after")]);
}

#[test]
fn an_image_over_the_rest_of_the_total_becomes_a_note() {
    let fits = "x".repeat(SMALL.total_bytes - "image/png".len());
    for (data, kept) in [(fits.clone(), true), (format!("{fits}x"), false)] {
        let result =
            shape(json!({ "content": [{ "type": "image", "data": data, "mimeType": "image/png" }] }), SMALL);
        let note = format!(
            "[image elided: image/png, {} base64 bytes exceeds remaining tool-result budget]",
            data.len()
        );
        let wanted = if kept { image(&data, "image/png") } else { text(note) };
        assert_eq!(result.parts, [wanted]);
    }
}

#[test]
fn text_that_waits_counts_against_a_following_image() {
    let result = shape(
        json!({ "content": [
            { "type": "text", "text": "y".repeat(1000) },
            { "type": "image", "data": "x".repeat(3200), "mimeType": "image/png" },
        ] }),
        SMALL,
    );
    let [Part::Text(only)] = result.parts.as_slice() else {
        panic!("{result:?}");
    };
    assert!(only.len() <= SMALL.text_bytes);
}

#[test]
fn a_large_image_is_not_cut_by_the_text_limit() {
    let data = "x".repeat(3000);
    let result =
        shape(json!({ "content": [{ "type": "image", "data": data, "mimeType": "image/png" }] }), SMALL);
    assert_eq!(result.parts, [image(&data, "image/png")]);
}

#[test]
fn c39_giant_text_is_cut_in_its_middle() {
    let result = content(json!([{ "type": "text", "text": "z".repeat(201_103) }]));
    let [Part::Text(cut)] = result.parts.as_slice() else {
        panic!("one text");
    };
    assert!(cut.len() <= RESULT_TEXT_DEFAULT_BYTES);
    assert!(cut.contains("of 201103 bytes elided from tool result"));
}

#[test]
fn text_after_the_text_limit_was_used_is_dropped() {
    let result = shape(
        json!({ "content": [
            { "type": "text", "text": "z".repeat(SMALL.text_bytes) },
            { "type": "image", "data": "QQ", "mimeType": "image/png" },
            { "type": "text", "text": "late" },
        ] }),
        SMALL,
    );
    assert_eq!(result.parts.len(), 2);
}

#[test]
fn other_blocks_leave_a_short_note() {
    let long = "u".repeat(300);
    let result = content(json!([
        { "type": "audio", "data": "QUJDRA", "mimeType": "audio/wav" },
        { "type": "resource_link", "uri": "file:///a", "name": "a" },
        { "type": "resource", "resource": { "uri": "file:///b", "text": "secret" } },
        { "type": "resource_link", "uri": long, "name": "c" },
    ]));
    let cut = "u".repeat(256);
    assert_eq!(
        result.parts,
        [text(format!(
            "[audio elided: audio/wav, 6 bytes]\n[resource: file:///a]\n[resource elided]\n[resource: {cut}]"
        ))]
    );
}

#[test]
fn a_result_without_content_is_empty_and_no_error() {
    for result in [
        json!({}),
        json!({ "content": [] }),
        json!({ "structuredContent": { "a": 1 }, "isError": null }),
        json!({ "content": [{ "type": "text", "text": "" }] }),
    ] {
        assert_eq!(shape(result, SMALL), CallResult { parts: Vec::new(), is_error: false, returned: true });
    }
}

#[test]
fn an_error_of_the_tool_is_returned_and_an_error() {
    let result = shape(json!({ "content": [{ "type": "text", "text": "no" }], "isError": true }), SMALL);
    assert_eq!((result.is_error, result.returned), (true, true));
    assert_eq!(result.parts, [text("no")]);
}

#[test]
fn unknown_shapes_are_unexpected_and_not_returned() {
    let lines = [
        answer(json!("text")),
        answer(json!({ "content": "text" })),
        answer(json!({ "content": [{ "type": "hologram" }] })),
        answer(json!({ "content": [{ "type": "text", "text": "kept" }, { "type": "text" }] })),
        answer(json!({ "content": [], "isError": "yes" })),
        br#"{"id":4}"#.to_vec(),
        b"not json".to_vec(),
        Vec::new(),
    ];
    for line in lines {
        assert_eq!(
            shape_result("s__t", &line, SMALL),
            CallResult::not_returned("mcp: call s__t: unexpected response type")
        );
    }
}

#[test]
fn c20_a_protocol_error_is_a_result_the_model_can_act_on() {
    let line = br#"{"id":4,"error":{"code":-32602,"message":"bad","data":{"b":1,"a":2}}}"#;
    let result = shape_result("s__t", line, SMALL);
    assert_eq!((result.is_error, result.returned), (true, true));
    assert_eq!(result.parts, [text(r#"Tool call rejected: Mcp error: -32602: bad({"a":2,"b":1})"#)]);
}

#[test]
fn a_long_protocol_error_is_cut_at_its_end() {
    let line = json!({ "id": 4, "error": { "code": 1, "message": "m".repeat(5000) } }).to_string();
    let result = shape_result("s__t", line.as_bytes(), SMALL);
    let [Part::Text(cut)] = result.parts.as_slice() else {
        panic!("one text");
    };
    assert!(cut.len() == SMALL.text_bytes && cut.ends_with("\n[truncated]"));
}

#[test]
fn c36_c38_broken_characters_become_replacements() {
    let mut line = br#"{"id":4,"result":{"content":[{"type":"text","text":"a\ud99c "#.to_vec();
    line.extend(b"f\xffo\"}]}}");
    assert_eq!(shape_result("s__t", &line, SMALL).parts, [text("a\u{fffd} f\u{fffd}o")]);
}

#[test]
fn failures_on_the_way_name_the_tool_and_what_to_do() {
    assert_eq!(transport_closed("s__t"), CallResult::not_returned("mcp: call s__t: Transport closed"));
    let Part::Text(late) = &timed_out("s__t", 660).parts[0] else {
        panic!("a text");
    };
    assert!(late.contains("timeout after 660s") && late.contains("faster"));
    assert_eq!(cancelled(), CallResult::not_returned("cancelled"));
}
