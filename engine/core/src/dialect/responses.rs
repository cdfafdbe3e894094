//! OpenAI Responses.

use serde_json::{json, Map, Value};

use super::chat::{close_with_tools, excerpt, result_text};
use super::listing::Listing;
use super::{arguments, Answer, AnswerError, AnsweredCall, Decoded, Stop};
use crate::content::Part;
use crate::effort::{self, Effort};
use crate::history::{Assistant, Item, ToolResult};
use crate::json::push_string;
use crate::mcp::Tool;
use crate::rope::{Body, Chunk};
use crate::settings::Settings;
use crate::usage::{count, Usage};

/// Grows the `input` array of Responses requests.
#[derive(Clone, Debug)]
pub(super) struct ResponsesEncoder {
    input: Listing,
    instructions: Chunk,
    max_output_tokens: u32,
    effort: Option<Effort>,
}

impl ResponsesEncoder {
    pub(super) fn new(settings: &Settings, system_prompt: &str) -> ResponsesEncoder {
        let mut instructions = Vec::new();
        push_string(&mut instructions, system_prompt);
        ResponsesEncoder {
            input: Listing::new(b"{\"input\":[".to_vec(), false),
            instructions: Chunk::from(instructions),
            max_output_tokens: settings.max_output_tokens,
            effort: settings.effort,
        }
    }

    pub(super) fn push(&mut self, items: &[Item]) {
        for item in items {
            let values = match item {
                Item::User(text) => {
                    vec![json!({"content": [input_part(&Part::Text(text.clone()))], "role": "user"})]
                }
                Item::UserParts(parts) => {
                    let blocks: Vec<Value> = parts.iter().map(input_part).collect();
                    vec![json!({"content": blocks, "role": "user"})]
                }
                Item::Assistant(assistant) => assistant_items(assistant),
                Item::ToolResult(result) => result_items(result),
            };
            let elements: Vec<String> = values.iter().map(Value::to_string).collect();
            self.input.push(elements.join(",").into_bytes());
        }
    }

    pub(super) fn drop_front(&mut self, count: usize) {
        self.input.drop_front(count);
    }

    pub(super) fn request(&self, model: &str, tools: Option<&Chunk>) -> Body {
        let mut body = self.input.open();
        body.push(Chunk::from(&b"],\"instructions\":"[..]));
        body.push(self.instructions.clone());
        let mut options =
            format!(",\"max_output_tokens\":{},\"model\":", self.max_output_tokens).into_bytes();
        push_string(&mut options, model);
        if let Some(effort) = self.effort {
            let effort = effort::openai(model, effort).as_str();
            options.extend_from_slice(format!(",\"reasoning\":{{\"effort\":\"{effort}\"}}").as_bytes());
        }
        close_with_tools(&mut body, options, tools);
        body.finish()
    }
}

/// The form in which a tool is offered.
pub(super) fn tool(tool: &Tool) -> Value {
    json!({
        "type": "function", "name": tool.qualified, "description": tool.description,
        "parameters": tool.schema,
    })
}

fn assistant_items(assistant: &Assistant) -> Vec<Value> {
    let text = (!assistant.text.is_empty())
        .then(|| json!({"content": [{"text": assistant.text, "type": "output_text"}], "role": "assistant"}));
    let calls = assistant.calls.iter().map(|call| {
        let arguments = Value::Object(call.arguments.clone()).to_string();
        json!({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments})
    });
    text.into_iter().chain(calls).collect()
}

fn input_part(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({"type": "input_text", "text": text}),
        Part::Image { data, mime } => {
            json!({"type": "input_image", "image_url": format!("data:{mime};base64,{data}")})
        }
    }
}

/// An output is text only; its images follow at once in a user item.
fn result_items(result: &ToolResult) -> Vec<Value> {
    let output = json!({
        "type": "function_call_output", "call_id": result.id, "output": result_text(result),
    });
    let images = result.parts.iter().filter(|part| matches!(part, Part::Image { .. }));
    let images: Vec<Value> = images.map(input_part).collect();
    let images = (!images.is_empty()).then(|| json!({"content": images, "role": "user"}));
    [output].into_iter().chain(images).collect()
}

/// Reads a Responses answer.
pub(super) fn decode(value: &Value) -> Decoded {
    Decoded { usage: usage(value), answer: answer(value) }
}

fn usage(value: &Value) -> Usage {
    let Some(usage) = value.get("usage") else { return Usage::default() };
    let nested = usage.get("input_tokens_details").and_then(|d| d.get("cached_tokens"));
    Usage {
        input: count(usage.get("input_tokens")),
        output: count(usage.get("output_tokens")),
        cached: count(usage.get("cache_read_input_tokens")).or_else(|| count(nested)),
        total: count(usage.get("total_tokens")),
    }
}

fn answer(value: &Value) -> Result<Answer, AnswerError> {
    let status = value.get("status").and_then(Value::as_str);
    let error = value.get("error").filter(|e| !e.is_null());
    if status == Some("failed") || error.is_some() {
        let error = error.unwrap_or(value);
        let word = |key: &str| error.get(key).and_then(Value::as_str);
        return Err(AnswerError::Provider {
            code: error
                .get("code")
                .map_or("unknown".to_owned(), |c| c.as_str().map_or_else(|| c.to_string(), str::to_owned)),
            message: word("message").map_or_else(|| excerpt(error), str::to_owned),
        });
    }
    let Some(output) = value.get("output").and_then(Value::as_array) else {
        return Err(AnswerError::Shape(format!("response missing output: {}", excerpt(value))));
    };
    let (mut text, mut thoughts, mut calls) = (String::new(), Vec::new(), Vec::new());
    for item in output {
        match item.get("type").and_then(Value::as_str) {
            Some("message") => text.extend(texts(item.get("content"), "output_text")),
            Some("reasoning") => thoughts.extend(texts(item.get("summary"), "summary_text")),
            Some("function_call") => calls.push(call(item)),
            _ => {}
        }
    }
    let stop = match (status, calls.is_empty()) {
        (Some("completed"), true) => Stop::EndTurn,
        (Some("completed"), false) => Stop::ToolUse,
        (Some("incomplete"), _) => {
            match value.pointer("/incomplete_details/reason").and_then(Value::as_str) {
                Some("max_output_tokens") => Stop::MaxTokens,
                _ => Stop::Other,
            }
        }
        _ => Stop::Other,
    };
    Ok(Answer { text, reasoning: thoughts.join("\n"), calls, stop, reasoning_details: None })
}

fn texts<'a>(list: Option<&'a Value>, kind: &'a str) -> impl Iterator<Item = &'a str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(move |block| {
        let is_text =
            matches!(block.get("type").and_then(Value::as_str), Some(k) if k == kind || k == "text");
        block.get("text").and_then(Value::as_str).filter(|_| is_text)
    })
}

fn call(item: &Value) -> AnsweredCall {
    let word = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    AnsweredCall {
        id: word("call_id"),
        name: word("name"),
        arguments: arguments::read(item.get("arguments")),
        extra: Map::new(),
    }
}
