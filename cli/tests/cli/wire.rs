//! The rule that providers hold every request to: no call without its result, no result without its call.

use serde_json::Value;

use crate::answers::Dialect;

/// Checks a request's bytes.
#[track_caller]
pub(crate) fn expect_paired(dialect: Dialect, request: &[u8]) {
    let body: Value = serde_json::from_slice(request).expect("a JSON body");
    let messages = body["messages"].as_array().expect("messages");
    match dialect {
        Dialect::Chat => chat(messages),
        Dialect::Anthropic => anthropic(messages),
    }
}

/// Checks a request's bytes by the wire that they are of: each has a key at the top that no other has.
#[track_caller]
pub(crate) fn expect_paired_on_its_wire(request: &[u8]) {
    let body: Value = serde_json::from_slice(request).expect("a JSON body");
    match body.get("input") {
        Some(input) => responses(input.as_array().expect("items")),
        None if body.get("system").is_some() => expect_paired(Dialect::Anthropic, request),
        None => expect_paired(Dialect::Chat, request),
    }
}

/// Every call item has an output item after it, and before anybody else speaks.
#[track_caller]
fn responses(items: &[Value]) {
    let mut open: Vec<&Value> = Vec::new();
    for item in items {
        match item["type"].as_str() {
            Some("function_call") => open.push(&item["call_id"]),
            Some("function_call_output") => {
                let at = open.iter().position(|id| **id == item["call_id"]);
                open.remove(at.unwrap_or_else(|| panic!("an output without a call: {item}")));
            }
            _ => assert!(open.is_empty(), "calls without outputs: {open:?} before {item}"),
        }
    }
    assert!(open.is_empty(), "calls without outputs at the end: {open:?}");
}

/// Each assistant message is followed at once by one tool message a call, in any order.
#[track_caller]
fn chat(messages: &[Value]) {
    let mut open: Vec<&Value> = Vec::new();
    for message in messages {
        if message["role"] == "tool" {
            let at = open.iter().position(|id| **id == message["tool_call_id"]);
            open.remove(at.unwrap_or_else(|| panic!("a result without a call: {message}")));
            continue;
        }
        assert!(open.is_empty(), "calls without results: {open:?} before {message}");
        open = message["tool_calls"].as_array().into_iter().flatten().map(|call| &call["id"]).collect();
    }
    assert!(open.is_empty(), "calls without results at the end: {open:?}");
}

/// The message after calls is the user's and holds exactly their results.
#[track_caller]
fn anthropic(messages: &[Value]) {
    let ids = |message: &Value, kind: &str, key: &str| {
        let blocks = message["content"].as_array().expect("blocks");
        let mut ids: Vec<String> =
            blocks.iter().filter(|block| block["type"] == kind).map(|block| block[key].to_string()).collect();
        ids.sort();
        ids
    };
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        assert_eq!(ids(message, "tool_result", "tool_use_id"), open, "results of other calls in {message}");
        open = ids(message, "tool_use", "id");
    }
    assert!(open.is_empty(), "calls without results at the end: {open:?}");
}
