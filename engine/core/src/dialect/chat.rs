//! OpenAI Chat Completions.

use std::collections::BTreeMap;

use serde_json::{json, Map, Value};

use super::listing::Listing;
use super::{arguments, Answer, AnswerError, AnsweredCall, Decoded, Dialect, Stop};
use crate::content::Part;
use crate::effort::{self, Effort};
use crate::history::{Assistant, Item, ToolResult};
use crate::json::push_string;
use crate::mcp::Tool;
use crate::provider::Form;
use crate::rope::{Body, Chunk, HashedRope};
use crate::settings::Settings;
use crate::usage::{count, Usage};

/// Grows the `messages` array of Chat requests, for OpenAI's form and for OpenRouter's.
#[derive(Clone, Debug)]
pub(super) struct ChatEncoder {
    form: Form,
    effort: Option<Effort>,
    messages: Listing,
    /// The user messages that are plain text, by item, in the form that carries a cache mark.
    marked_users: BTreeMap<usize, Chunk>,
}

/// How many of the last plain user messages carry a cache mark.
const MARKED_USERS: usize = 2;

impl ChatEncoder {
    pub(super) fn new(form: Form, settings: &Settings, system_prompt: &str) -> ChatEncoder {
        let limit = if form.dialect == Dialect::Openrouter { "max_tokens" } else { "max_completion_tokens" };
        let mut head = format!("{{\"{limit}\":{},\"messages\":[", settings.max_output_tokens).into_bytes();
        if form.marks {
            head.extend_from_slice(&marked(system_prompt, "system"));
        } else {
            head.extend_from_slice(&message(system_prompt, "system"));
        }
        let messages = Listing::new(head, true);
        ChatEncoder { form, effort: settings.effort, messages, marked_users: BTreeMap::new() }
    }

    pub(super) fn push(&mut self, items: &[Item]) {
        let mut images = Vec::new();
        let mut has_new_user = false;
        for (index, item) in items.iter().enumerate() {
            let encoded = match item {
                Item::User(text) => {
                    if self.form.marks {
                        has_new_user = true;
                        self.marked_users.insert(self.messages.len(), Chunk::from(marked(text, "user")));
                    }
                    message(text, "user")
                }
                Item::UserParts(parts) => {
                    json!({"content": user_parts(parts), "role": "user"}).to_string().into_bytes()
                }
                Item::Assistant(assistant) => assistant_message(assistant).to_string().into_bytes(),
                Item::ToolResult(result) => {
                    let mut out = result_message(result, &mut images);
                    let run_ends = !matches!(items.get(index + 1), Some(Item::ToolResult(_)));
                    if run_ends && !images.is_empty() {
                        let content = Value::Array(std::mem::take(&mut images));
                        out.push(b',');
                        out.extend_from_slice(
                            json!({"content": content, "role": "user"}).to_string().as_bytes(),
                        );
                    }
                    out
                }
            };
            self.messages.push(encoded);
        }
        if has_new_user {
            self.move_marks();
        }
    }

    /// The marks stay with the last user messages; they move when there is a new one, not in each round.
    fn move_marks(&mut self) {
        let last = self.marked_users.iter().rev().take(MARKED_USERS);
        self.messages.vary(last.map(|(index, chunk)| (*index, chunk.clone())).collect());
    }

    pub(super) fn drop_front(&mut self, count: usize) {
        self.messages.drop_front(count);
        let kept = std::mem::take(&mut self.marked_users).into_iter();
        self.marked_users =
            kept.filter_map(|(index, chunk)| Some((index.checked_sub(count)?, chunk))).collect();
        if self.form.marks {
            self.move_marks();
        }
    }

    pub(super) fn request(&self, model: &str, tools: Option<&Chunk>) -> Body {
        let mut body = self.messages.open();
        let mut options = b"]".to_vec();
        if self.form.names_model {
            options.extend_from_slice(b",\"model\":");
            push_string(&mut options, model);
        }
        match (self.effort, self.form.dialect) {
            (Some(effort), Dialect::Openrouter) => {
                options.extend_from_slice(
                    format!(",\"reasoning\":{{\"effort\":\"{}\"}}", effort.as_str()).as_bytes(),
                );
            }
            (Some(effort), _) => {
                let effort = effort::openai(model, effort).as_str();
                options.extend_from_slice(format!(",\"reasoning_effort\":\"{effort}\"").as_bytes());
            }
            (None, _) => {}
        }
        options.extend_from_slice(b",\"stream\":false");
        close_with_tools(&mut body, options, tools);
        body.finish()
    }
}

/// Ends a body with its options and, if there are any, the tools.
pub(super) fn close_with_tools(body: &mut HashedRope, mut options: Vec<u8>, tools: Option<&Chunk>) {
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
}

/// The list of offered tools; the last one may carry a cache mark.
pub(super) fn tools(list: &[&Tool], marks: bool) -> Value {
    let mut tools: Vec<Value> = list.iter().copied().map(tool).collect();
    if let (true, Some(last)) = (marks, tools.last_mut()) {
        last["function"]["cache_control"] = json!({"type": "ephemeral"});
    }
    Value::Array(tools)
}

/// The form in which a tool is offered.
fn tool(tool: &Tool) -> Value {
    json!({
        "type": "function",
        "function": {"name": tool.qualified, "description": tool.description, "parameters": tool.schema},
    })
}

fn message(text: &str, role: &str) -> Vec<u8> {
    let mut out = b"{\"content\":".to_vec();
    push_string(&mut out, text);
    out.extend_from_slice(format!(",\"role\":\"{role}\"}}").as_bytes());
    out
}

/// A message whose text is a block that ends a cached prefix.
fn marked(text: &str, role: &str) -> Vec<u8> {
    let block = json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}});
    json!({"content": [block], "role": role}).to_string().into_bytes()
}

fn assistant_message(assistant: &Assistant) -> Value {
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
    object
}

fn user_parts(parts: &[Part]) -> Value {
    let blocks = parts.iter().map(|part| match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Image { data, mime } => image(data, mime),
    });
    blocks.collect()
}

fn image(data: &str, mime: &str) -> Value {
    json!({"type": "image_url", "image_url": {"url": format!("data:{mime};base64,{data}")}})
}

/// Tool messages are text only, so images ride in a user message after the run of results.
fn result_message(result: &ToolResult, images: &mut Vec<Value>) -> Vec<u8> {
    for part in &result.parts {
        if let Part::Image { data, mime } = part {
            images.push(image(data, mime));
        }
    }
    let mut out = b"{\"content\":".to_vec();
    push_string(&mut out, &result_text(result));
    out.extend_from_slice(b",\"role\":\"tool\",\"tool_call_id\":");
    push_string(&mut out, &result.id);
    out.push(b'}');
    out
}

/// The text of a result on wires whose results are text: a line stands for each image.
pub(super) fn result_text(result: &ToolResult) -> String {
    let parts = result.parts.iter().map(|part| match part {
        Part::Text(text) => text.clone(),
        Part::Image { data, mime } => format!(
            "This tool result included an image ({mime}, {} base64 bytes) that is provided in the next user message.",
            data.len()
        ),
    });
    parts.collect::<Vec<_>>().join("\n")
}

/// Reads a Chat answer.
pub(super) fn decode(value: &Value) -> Decoded {
    Decoded { usage: usage(value), answer: answer(value) }
}

/// Reads an OpenRouter answer: as Chat, with the reasoning array that must come back.
pub(super) fn decode_openrouter(value: &Value) -> Decoded {
    let mut decoded = decode(value);
    if let Ok(answer) = &mut decoded.answer {
        let details = value.pointer("/choices/0/message/reasoning_details");
        answer.reasoning_details = details.filter(|d| d.is_array()).cloned();
    }
    decoded
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
                parts
                    .iter()
                    .filter_map(|p| p.get("text").and_then(Value::as_str))
                    .collect::<Vec<_>>()
                    .join("\n")
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
