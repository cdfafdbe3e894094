//! Answer bodies of each wire, sound and odd.

use serde_json::{json, Value};
use waxlog_core::dialect::Dialect;
use waxlog_core::usage::Usage;

use super::{usage_object, Call, Saying, Stop};
use crate::dice::Dice;

/// A body that is no good answer.
pub(super) struct Odd {
    pub(super) bytes: Vec<u8>,
    /// Whether it reports its tokens all the same.
    pub(super) tells_usage: bool,
}

/// The body that says `saying`; `serial` makes it unlike any other.
pub(super) fn encode(dialect: Dialect, saying: &Saying, serial: u64) -> Vec<u8> {
    let mut body = match dialect {
        Dialect::Chat | Dialect::Openrouter => chat(dialect, saying),
        Dialect::Responses => responses(saying),
        Dialect::Anthropic => anthropic(saying),
    };
    body["id"] = json!(format!("resp_{serial}"));
    body["usage"] = usage_object(dialect, saying.usage);
    body.to_string().into_bytes()
}

fn chat(dialect: Dialect, saying: &Saying) -> Value {
    let call = |call: &Call| {
        json!({
            "id": call.id, "type": "function", "index": 0,
            "function": {"name": call.name, "arguments": call.arguments},
        })
    };
    let mut message = json!({"role": "assistant", "content": saying.text});
    if !saying.calls.is_empty() {
        message["tool_calls"] = saying.calls.iter().map(call).collect();
    }
    if !saying.thought.is_empty() {
        message["reasoning_content"] = json!(saying.thought);
        if dialect == Dialect::Openrouter {
            message["reasoning_details"] = json!([{"type": "reasoning.text", "text": saying.thought}]);
        }
    }
    let finish = match saying.stop {
        Stop::End => json!("stop"),
        Stop::Calls => json!("tool_calls"),
        Stop::Length => json!("length"),
        Stop::Refusal => json!("content_filter"),
        Stop::Unsaid => Value::Null,
    };
    json!({"choices": [{"message": message, "finish_reason": finish}]})
}

fn responses(saying: &Saying) -> Value {
    let mut output = Vec::new();
    if !saying.thought.is_empty() {
        output.push(
            json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": saying.thought}]}),
        );
    }
    if !saying.text.is_empty() {
        output.push(json!({"type": "message", "content": [{"type": "output_text", "text": saying.text}]}));
    }
    output.extend(saying.calls.iter().map(|call| {
        json!({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments})
    }));
    match saying.stop {
        Stop::End | Stop::Calls => json!({"status": "completed", "output": output}),
        Stop::Length => {
            json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": output})
        }
        Stop::Refusal => {
            json!({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}, "output": output})
        }
        Stop::Unsaid => json!({"output": output}),
    }
}

fn anthropic(saying: &Saying) -> Value {
    let mut content = Vec::new();
    if !saying.thought.is_empty() {
        content.push(json!({"type": "thinking", "thinking": saying.thought}));
    }
    if !saying.text.is_empty() {
        content.push(json!({"type": "text", "text": saying.text}));
    }
    content.extend(
        saying.calls.iter().map(
            |call| json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}),
        ),
    );
    let stop = match saying.stop {
        Stop::End => json!("end_turn"),
        Stop::Calls => json!("tool_use"),
        Stop::Length => json!("max_tokens"),
        Stop::Refusal => json!("refusal"),
        Stop::Unsaid => Value::Null,
    };
    json!({"content": content, "stop_reason": stop})
}

/// A body with a good status that is an error, has another shape or is no JSON.
pub(super) fn odd(dialect: Dialect, usage: Usage, dice: &mut Dice) -> Odd {
    let untold = |bytes: &[u8]| Odd { bytes: bytes.to_vec(), tells_usage: false };
    match dice.size(0..7) {
        0 => untold(b"<html>busy</html>"),
        1 => untold(b""),
        2 => untold(b"{\"choices\":[{\"message\":{\"content\":\"cut"),
        3 => untold(b"[]"),
        4 => told(json!({"choices": [], "content": 3, "output": "none"}), dialect, usage),
        _ => told(wrapped(dialect, dice), dialect, usage),
    }
}

fn told(mut body: Value, dialect: Dialect, usage: Usage) -> Odd {
    body["usage"] = usage_object(dialect, usage);
    Odd { bytes: body.to_string().into_bytes(), tells_usage: true }
}

/// An error in the clothes of an answer; some of its codes stand for what may pass.
fn wrapped(dialect: Dialect, dice: &mut Dice) -> Value {
    let code = dice.pick(&[429, 502, 400]);
    let error = json!({"code": code, "message": "upstream said no", "type": "overloaded_error"});
    match (dialect, dice.chance(500)) {
        (Dialect::Chat | Dialect::Openrouter, true) => {
            json!({"choices": [{"finish_reason": "error", "error": error, "message": {}}]})
        }
        (Dialect::Responses, true) => json!({"status": "failed", "error": error}),
        _ => json!({"error": error}),
    }
}
