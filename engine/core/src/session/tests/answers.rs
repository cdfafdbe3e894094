//! What model, servers and hooks answer in tests.

use serde_json::{json, Value};

use crate::record::Failure;

/// What a hook had to say.
pub(crate) enum Heard {
    Line(Vec<u8>),
    TimedOut,
    Failed,
}

pub(crate) fn says(text: &str) -> Heard {
    Heard::Line(json!({"jsonrpc": "2.0", "id": 1, "result": text_result(text)}).to_string().into_bytes())
}

/// A Chat answer that ends the turn.
pub(crate) fn text(text: &str) -> Value {
    finish_with(text, "stop")
}

pub(crate) fn finish_with(text: &str, reason: &str) -> Value {
    json!({"choices": [{"finish_reason": reason, "message": {"content": text}}]})
}

/// A Chat answer with calls: id, name, arguments.
pub(crate) fn calls_of(calls: &[(&str, &str, Value)]) -> Value {
    let calls = calls.iter().map(|(id, name, arguments)| {
        json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
    });
    let calls: Vec<Value> = calls.collect();
    json!({"choices": [{"finish_reason": "tool_calls", "message": {"content": null, "tool_calls": calls}}]})
}

pub(crate) fn say_call(id: &str) -> Value {
    calls_of(&[(id, "t__say", json!("{}"))])
}

/// The same answer with its usage.
pub(crate) fn costing(mut answer: Value, input: u64, output: u64) -> Value {
    answer["usage"] = json!({"prompt_tokens": input, "completion_tokens": output});
    answer
}

pub(crate) fn costing_total(answer: Value, input: u64, output: u64, total: u64) -> Value {
    let mut answer = costing(answer, input, output);
    answer["usage"]["total_tokens"] = json!(total);
    answer
}

pub(crate) fn text_result(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

pub(crate) fn error_result(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": true})
}

pub(crate) fn status(status: u16, reason: &str) -> Failure {
    Failure::Status { status, reason: reason.into() }
}
