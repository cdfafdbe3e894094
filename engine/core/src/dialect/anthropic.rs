//! Anthropic Messages.

use serde_json::{json, Map, Value};

use super::chat::excerpt;
use super::{arguments, Answer, AnswerError, AnsweredCall, Decoded, Stop};
use crate::content::Part;
use crate::effort::{self, Effort};
use crate::history::{Assistant, Item, ToolResult};
use crate::json::push_string;
use crate::mcp::Tool;
use crate::rope::{Body, Chunk, HashedRope};
use crate::settings::Settings;
use crate::usage::{count, Usage};

/// How many of the last messages carry a cache mark.
const MARKED_MESSAGES: usize = 2;

/// Grows the `messages` array of Anthropic requests, a chunk per content block.
///
/// The last messages are rendered anew in each request, since the cache marks move with the end; what lies
/// before them is hashed once.
#[derive(Clone, Debug)]
pub(super) struct AnthropicEncoder {
    words: Words,
    system: Chunk,
    system_is_empty: bool,
    caching: bool,
    max_output_tokens: u32,
    effort: Option<Effort>,
    messages: Vec<Message>,
    frozen: usize,
    encoded: HashedRope,
}

/// One message: the content blocks without their opening brace, so that a mark can stand before them.
#[derive(Clone, Debug)]
struct Message {
    items: usize,
    role: Role,
    blocks: Vec<Chunk>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    User,
    Assistant,
}

/// The bytes between blocks, shared so that requests can be compared by identity.
#[derive(Clone, Debug)]
struct Words {
    head: Chunk,
    comma: Chunk,
    open: Chunk,
    next: Chunk,
    mark: Chunk,
    close_user: Chunk,
    close_assistant: Chunk,
}

impl AnthropicEncoder {
    pub(super) fn new(marks: bool, settings: &Settings, system_prompt: &str) -> AnthropicEncoder {
        let chunk = |text: &str| Chunk::from(text.as_bytes());
        let words = Words {
            head: chunk(&format!("{{\"max_tokens\":{},\"messages\":[", settings.max_output_tokens)),
            comma: chunk(","),
            open: chunk("{\"content\":[{"),
            next: chunk(",{"),
            mark: chunk("\"cache_control\":{\"type\":\"ephemeral\"},"),
            close_user: chunk("],\"role\":\"user\"}"),
            close_assistant: chunk("],\"role\":\"assistant\"}"),
        };
        let mut encoded = HashedRope::default();
        encoded.push(words.head.clone());
        let mut system = Vec::new();
        push_string(&mut system, system_prompt);
        AnthropicEncoder {
            words,
            system: Chunk::from(system),
            system_is_empty: system_prompt.is_empty(),
            caching: marks,
            max_output_tokens: settings.max_output_tokens,
            effort: settings.effort,
            messages: Vec::new(),
            frozen: 0,
            encoded,
        }
    }

    pub(super) fn push(&mut self, items: &[Item]) {
        for item in items {
            match item {
                Item::User(text) => self.message(Role::User, vec![text_block(text)]),
                Item::UserParts(parts) => {
                    let blocks = parts.iter().map(|part| open_block(&part_block(part))).collect();
                    self.message(Role::User, blocks);
                }
                Item::Assistant(assistant) => self.message(Role::Assistant, assistant_blocks(assistant)),
                Item::ToolResult(result) => self.result(result),
            }
        }
        self.freeze();
    }

    fn message(&mut self, role: Role, blocks: Vec<Chunk>) {
        self.messages.push(Message { items: 1, role, blocks });
    }

    /// Neighbouring results share one user message.
    fn result(&mut self, result: &ToolResult) {
        let block = result_block(result);
        match self.messages.last_mut() {
            Some(last) if last.role == Role::User && last.blocks.first().is_some_and(is_result) => {
                last.items += 1;
                last.blocks.push(block);
            }
            _ => self.message(Role::User, vec![block]),
        }
    }

    pub(super) fn drop_front(&mut self, mut count: usize) {
        let whole = self.messages.iter().take_while(|m| {
            let goes = m.items <= count;
            count = count.saturating_sub(m.items);
            goes
        });
        let whole = whole.count();
        self.messages.drain(..whole);
        self.frozen = 0;
        self.encoded = HashedRope::default();
        self.encoded.push(self.words.head.clone());
        self.freeze();
    }

    /// Hashes the messages that no mark can reach any more.
    fn freeze(&mut self) {
        let shown = self.messages.iter().enumerate().filter(|(_, m)| !m.blocks.is_empty());
        let shown: Vec<usize> = shown.map(|(index, _)| index).skip_while(|i| *i < self.frozen).collect();
        let Some(until) = shown.len().checked_sub(MARKED_MESSAGES).and_then(|n| shown.get(n)) else { return };
        for index in self.frozen..*until {
            let first = !self.messages[..index].iter().any(|m| !m.blocks.is_empty());
            render(&self.words, &self.messages[index], first, false, &mut self.encoded);
        }
        self.frozen = *until;
    }

    pub(super) fn request(&self, model: &str, tools: Option<&Chunk>) -> Body {
        let mut body = self.encoded.clone();
        let mut first = self.messages[..self.frozen].iter().all(|m| m.blocks.is_empty());
        for message in &self.messages[self.frozen..] {
            render(&self.words, message, first, self.caching, &mut body);
            first &= message.blocks.is_empty();
        }
        let mut options = b"],\"model\":".to_vec();
        push_string(&mut options, model);
        let thinking = self.effort.and_then(|e| effort::anthropic(model, e, self.max_output_tokens));
        if let Some(effort) = thinking.as_ref().and_then(|t| t.output_effort) {
            options.extend_from_slice(format!(",\"output_config\":{{\"effort\":\"{effort}\"}}").as_bytes());
        }
        let as_block = self.caching && !self.system_is_empty;
        options.extend_from_slice(b",\"system\":");
        if as_block {
            options.extend_from_slice(b"[{\"cache_control\":{\"type\":\"ephemeral\"},\"text\":");
        }
        body.push(Chunk::from(options));
        body.push(self.system.clone());
        let mut rest = Vec::new();
        if as_block {
            rest.extend_from_slice(b",\"type\":\"text\"}]");
        }
        if let Some(thinking) = thinking {
            rest.extend_from_slice(b",\"thinking\":");
            rest.extend_from_slice(thinking.field.to_string().as_bytes());
        }
        if let Some(tools) = tools {
            rest.extend_from_slice(b",\"tools\":");
            body.push(Chunk::from(std::mem::take(&mut rest)));
            body.push(tools.clone());
        }
        rest.push(b'}');
        body.push(Chunk::from(rest));
        body.finish()
    }
}

fn render(words: &Words, message: &Message, first: bool, marked: bool, out: &mut HashedRope) {
    if message.blocks.is_empty() {
        return;
    }
    if !first {
        out.push(words.comma.clone());
    }
    for (index, block) in message.blocks.iter().enumerate() {
        out.push(if index == 0 { words.open.clone() } else { words.next.clone() });
        if marked && index + 1 == message.blocks.len() {
            out.push(words.mark.clone());
        }
        out.push(block.clone());
    }
    out.push(match message.role {
        Role::User => words.close_user.clone(),
        Role::Assistant => words.close_assistant.clone(),
    });
}

/// The form in which a tool is offered.
pub(super) fn tool(tool: &Tool) -> Value {
    json!({"name": tool.qualified, "description": tool.description, "input_schema": tool.schema})
}

const RESULT_START: &[u8] = b"\"content\":[";

fn is_result(block: &Chunk) -> bool {
    block.starts_with(RESULT_START)
}

fn text_block(text: &str) -> Chunk {
    let mut out = b"\"text\":".to_vec();
    push_string(&mut out, text);
    out.extend_from_slice(b",\"type\":\"text\"}");
    Chunk::from(out)
}

/// A block without its opening brace.
fn open_block(value: &Value) -> Chunk {
    Chunk::from(&value.to_string().as_bytes()[1..])
}

fn assistant_blocks(assistant: &Assistant) -> Vec<Chunk> {
    let text = (!assistant.text.is_empty()).then(|| text_block(&assistant.text));
    let calls = assistant.calls.iter().map(|call| {
        open_block(&json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}))
    });
    text.into_iter().chain(calls).collect()
}

fn part_block(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Image { data, mime } => {
            let source = json!({"type": "base64", "media_type": mime, "data": data});
            json!({"type": "image", "source": source})
        }
    }
}

fn result_block(result: &ToolResult) -> Chunk {
    let mut out = RESULT_START.to_vec();
    for (index, part) in result.parts.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        match part {
            Part::Text(text) => {
                out.push(b'{');
                out.extend_from_slice(&text_block(text));
            }
            Part::Image { .. } => out.extend_from_slice(part_block(part).to_string().as_bytes()),
        }
    }
    out.extend_from_slice(format!("],\"is_error\":{},\"tool_use_id\":", result.is_error).as_bytes());
    push_string(&mut out, &result.id);
    out.extend_from_slice(b",\"type\":\"tool_result\"}");
    Chunk::from(out)
}

/// Reads an Anthropic answer.
pub(super) fn decode(value: &Value) -> Decoded {
    Decoded { usage: usage(value), answer: answer(value) }
}

/// The input excludes both cache fields on this wire, so they are added; there is never a total.
fn usage(value: &Value) -> Usage {
    let Some(usage) = value.get("usage") else { return Usage::default() };
    let read = count(usage.get("cache_read_input_tokens"));
    let parts = [count(usage.get("input_tokens")), read, count(usage.get("cache_creation_input_tokens"))];
    let input = parts.iter().flatten().copied().reduce(u64::saturating_add);
    Usage { input, output: count(usage.get("output_tokens")), cached: read, total: None }
}

fn answer(value: &Value) -> Result<Answer, AnswerError> {
    if let Some(error) = value.get("error").filter(|e| !e.is_null()) {
        let word = |key: &str| error.get(key).and_then(Value::as_str);
        return Err(AnswerError::Provider {
            code: word("type").unwrap_or("unknown").to_owned(),
            message: word("message").map_or_else(|| excerpt(error), str::to_owned),
        });
    }
    let Some(content) = value.get("content").and_then(Value::as_array) else {
        return Err(AnswerError::Shape(format!("response missing content: {}", excerpt(value))));
    };
    let (mut text, mut thoughts, mut calls) = (String::new(), Vec::new(), Vec::new());
    for block in content {
        let word = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
        match word("type") {
            "text" => text.push_str(word("text")),
            "thinking" => thoughts.push(word("thinking").to_owned()),
            "tool_use" => calls.push(AnsweredCall {
                id: word("id").to_owned(),
                name: word("name").to_owned(),
                arguments: arguments::read(block.get("input")),
                extra: Map::new(),
            }),
            _ => {}
        }
    }
    let stop = Stop::of_word(value.get("stop_reason").and_then(Value::as_str));
    Ok(Answer { text, reasoning: thoughts.join("\n"), calls, stop, reasoning_details: None })
}

#[cfg(test)]
#[path = "anthropic_tests.rs"]
mod tests;
