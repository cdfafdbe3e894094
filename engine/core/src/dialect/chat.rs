//! OpenAI Chat Completions.

use serde_json::{json, Map, Value};

use super::{arguments, Answer, AnswerError, AnsweredCall, Decoded, Stop};
use crate::content::Part;
use crate::effort::{self, Effort};
use crate::history::{Assistant, Item, ToolResult};
use crate::json::push_string;
use crate::mcp::Tool;
use crate::rope::{Body, Chunk, HashedRope};
use crate::settings::Settings;
use crate::usage::{count, Usage};

/// Grows the `messages` array of Chat requests, a chunk per item.
#[derive(Clone, Debug)]
pub struct ChatEncoder {
    head: Chunk,
    items: Vec<Chunk>,
    encoded: HashedRope,
    effort: Option<Effort>,
}

impl ChatEncoder {
    pub(super) fn new(settings: &Settings, system_prompt: &str) -> ChatEncoder {
        let mut head =
            format!("{{\"max_completion_tokens\":{},\"messages\":[{{\"content\":", settings.max_output_tokens)
                .into_bytes();
        push_string(&mut head, system_prompt);
        head.extend_from_slice(b",\"role\":\"system\"}");
        let head = Chunk::from(head);
        let mut encoded = HashedRope::default();
        encoded.push(head.clone());
        ChatEncoder { head, items: Vec::new(), encoded, effort: settings.effort }
    }

    pub(super) fn push(&mut self, items: &[Item]) {
        let mut images = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let mut out = Vec::new();
            match item {
                Item::User(text) => message(&mut out, text, "user"),
                Item::Assistant(assistant) => assistant_message(&mut out, assistant),
                Item::ToolResult(result) => {
                    result_message(&mut out, result, &mut images);
                    let run_ends = !matches!(items.get(index + 1), Some(Item::ToolResult(_)));
                    if run_ends && !images.is_empty() {
                        let content = Value::Array(std::mem::take(&mut images));
                        push_value(&mut out, &json!({"content": content, "role": "user"}));
                    }
                }
            }
            let chunk = Chunk::from(out);
            self.encoded.push(chunk.clone());
            self.items.push(chunk);
        }
    }

    pub(super) fn drop_front(&mut self, count: usize) {
        self.items.drain(..count.min(self.items.len()));
        self.encoded = HashedRope::default();
        self.encoded.push(self.head.clone());
        self.items.iter().for_each(|chunk| self.encoded.push(chunk.clone()));
    }

    pub(super) fn request(&self, model: &str, tools: Option<&Chunk>) -> Body {
        let mut body = self.encoded.clone();
        let mut options = b"],\"model\":".to_vec();
        push_string(&mut options, model);
        if let Some(effort) = self.effort.map(|e| effort::openai(model, e).as_str()) {
            options.extend_from_slice(format!(",\"reasoning_effort\":\"{effort}\"").as_bytes());
        }
        options.extend_from_slice(b",\"stream\":false");
        match tools {
            Some(tools) => {
                options.extend_from_slice(b",\"tool_choice\":\"auto\",\"tools\":");
                body.push(Chunk::from(options));
                body.push(tools.clone());
                body.push(Chunk::from(&b"}"[..]));
            }
            None => {
                options.push(b'}');
                body.push(Chunk::from(options));
            }
        }
        body.finish()
    }
}

/// The form in which a tool is offered.
pub(super) fn tool(tool: &Tool) -> Value {
    json!({
        "type": "function",
        "function": {"name": tool.qualified, "description": tool.description, "parameters": tool.schema},
    })
}

fn message(out: &mut Vec<u8>, text: &str, role: &str) {
    out.extend_from_slice(b",{\"content\":");
    push_string(out, text);
    out.extend_from_slice(format!(",\"role\":\"{role}\"}}").as_bytes());
}

fn push_value(out: &mut Vec<u8>, value: &Value) {
    out.push(b',');
    out.extend_from_slice(value.to_string().as_bytes());
}

fn assistant_message(out: &mut Vec<u8>, assistant: &Assistant) {
    let mut object = json!({"content": assistant.text, "role": "assistant"});
    if !assistant.calls.is_empty() {
        let calls = assistant.calls.iter().map(|call| {
            let mut entry = call.extra.clone();
            let arguments = Value::Object(call.arguments.clone()).to_string();
            entry.insert("function".into(), json!({"name": call.name, "arguments": arguments}));
            entry.insert("id".into(), json!(call.id));
            entry.insert("type".into(), json!("function"));
            Value::Object(entry)
        });
        object["tool_calls"] = calls.collect();
    }
    if let Some(details) = &assistant.reasoning_details {
        object["reasoning_details"] = details.clone();
    }
    push_value(out, &object);
}

/// Tool messages are text only, so images ride in a user message after the run of results.
fn result_message(out: &mut Vec<u8>, result: &ToolResult, images: &mut Vec<Value>) {
    let mut text = String::new();
    for (index, part) in result.parts.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        match part {
            Part::Text(t) => text.push_str(t),
            Part::Image { data, mime } => {
                text.push_str(&format!(
                    "This tool result included an image ({mime}, {} base64 bytes) that is provided in the next user message.",
                    data.len()
                ));
                let url = format!("data:{mime};base64,{data}");
                images.push(json!({"type": "image_url", "image_url": {"url": url}}));
            }
        }
    }
    out.extend_from_slice(b",{\"content\":");
    push_string(out, &text);
    out.extend_from_slice(b",\"role\":\"tool\",\"tool_call_id\":");
    push_string(out, &result.id);
    out.push(b'}');
}

/// Reads a Chat answer.
pub(super) fn decode(value: &Value) -> Decoded {
    Decoded { usage: usage(value), answer: answer(value) }
}

fn usage(value: &Value) -> Usage {
    let Some(usage) = value.get("usage") else { return Usage::default() };
    let nested = usage.get("prompt_tokens_details").and_then(|d| d.get("cached_tokens"));
    Usage {
        input: count(usage.get("prompt_tokens")),
        output: count(usage.get("completion_tokens")),
        cached: count(usage.get("cache_read_input_tokens")).or_else(|| count(nested)),
        total: count(usage.get("total_tokens")),
    }
}

fn answer(value: &Value) -> Result<Answer, AnswerError> {
    let choice = value.get("choices").and_then(|c| c.get(0));
    let Some(choice) = choice else {
        return Err(match value.get("error") {
            Some(error) if !error.is_null() => provider_error(error),
            _ => AnswerError::Shape(format!("response missing choices: {}", excerpt(value))),
        });
    };
    let finish = choice.get("finish_reason").and_then(Value::as_str);
    if finish == Some("error") {
        return Err(provider_error(choice.get("error").unwrap_or(&Value::Null)));
    }
    let message = choice
        .get("message")
        .filter(|m| m.is_object())
        .ok_or_else(|| AnswerError::Shape(format!("response missing message: {}", excerpt(value))))?;
    let (text, in_content) = content(message.get("content"));
    let reasoning = ["reasoning_content", "reasoning"]
        .iter()
        .find_map(|key| message.get(*key).and_then(Value::as_str).filter(|t| !t.is_empty()))
        .map_or(in_content, str::to_owned);
    let calls = match message.get("tool_calls") {
        Some(Value::Array(list)) => list.iter().map(call).collect::<Result<_, _>>()?,
        _ => Vec::new(),
    };
    Ok(Answer { text, reasoning, calls, stop: Stop::of_word(finish), reasoning_details: None })
}

/// A message's content: text, and the reasoning that some gateways put among its blocks.
fn content(value: Option<&Value>) -> (String, String) {
    let blocks = match value {
        Some(Value::String(text)) => return (text.clone(), String::new()),
        Some(Value::Array(blocks)) => blocks,
        _ => return (String::new(), String::new()),
    };
    let (mut text, mut reasoning) = (Vec::new(), Vec::new());
    for block in blocks {
        let own = block.get("text").and_then(Value::as_str);
        if block.get("type").and_then(Value::as_str) == Some("reasoning") {
            let summary = block.get("summary").and_then(Value::as_array).map(|parts| {
                parts.iter().filter_map(|p| p.get("text").and_then(Value::as_str)).collect::<Vec<_>>().join("\n")
            });
            reasoning.extend(summary.or_else(|| own.map(str::to_owned)));
        } else {
            text.extend(own.map(str::to_owned));
        }
    }
    let join = |mut pieces: Vec<String>| {
        pieces.retain(|p| !p.is_empty());
        pieces.join("\n")
    };
    (join(text), join(reasoning))
}

fn call(value: &Value) -> Result<AnsweredCall, AnswerError> {
    let function = value
        .get("function")
        .ok_or_else(|| AnswerError::Shape(format!("tool_call missing function: {}", excerpt(value))))?;
    let string = |v: Option<&Value>| v.and_then(Value::as_str).unwrap_or_default().to_owned();
    let extra: Map<String, Value> = value
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| !matches!(key.as_str(), "id" | "type" | "function"))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    Ok(AnsweredCall {
        id: string(value.get("id")),
        name: string(function.get("name")),
        arguments: arguments::read(function.get("arguments")),
        extra,
    })
}

fn provider_error(error: &Value) -> AnswerError {
    let code = match error.get("code") {
        Some(Value::String(code)) => code.clone(),
        Some(Value::Number(code)) => code.to_string(),
        _ => "unknown".to_owned(),
    };
    let kind = error.get("metadata").and_then(|m| m.get("error_type")).and_then(Value::as_str);
    let message = match error.get("message").and_then(Value::as_str) {
        Some(message) => message.to_owned(),
        None => excerpt(error),
    };
    AnswerError::Provider { code: kind.map_or(code.clone(), |k| format!("{code}, {k}")), message }
}

/// The start of a body, for an error text.
pub(super) fn excerpt(value: &Value) -> String {
    const EXCERPT_CHARS: usize = 300;
    let text = value.to_string();
    match text.char_indices().nth(EXCERPT_CHARS) {
        Some((at, _)) => format!("{} ...", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
#[path = "chat_tests.rs"]
mod tests;
