//! Dialects: how a history becomes a request's bytes, and how an answer's bytes are read.
//!
//! A dialect is an encoder, which grows with the history and keeps what it encoded, and a decoder, which
//! is a pure function of the answer's bytes. Equal inputs give equal bytes.

mod anthropic;
mod arguments;
mod chat;
mod listing;
mod responses;

use serde::{Deserialize, Serialize};
use serde_json::{json, Map, Value};

use self::anthropic::AnthropicEncoder;
use self::chat::ChatEncoder;
use self::responses::ResponsesEncoder;
use crate::effort::Effort;
use crate::handoff::{SUMMARY_MAX_OUTPUT_TOKENS, SUMMARY_SYSTEM_PROMPT};
use crate::history::Item;
use crate::mcp::Tool;
use crate::provider::Form;
use crate::rope::{Body, Chunk, HashedRope};
use crate::settings::Settings;
use crate::usage::Usage;

/// The wire formats of model endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// OpenAI Chat Completions.
    Chat,
    /// OpenRouter's form of it.
    Openrouter,
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Anthropic,
}

/// Why a model stopped, in the provider-neutral words of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It was done.
    EndTurn,
    /// It wants its calls run.
    ToolUse,
    /// It hit its output limit.
    MaxTokens,
    /// It, or a filter, refused.
    Refusal,
    /// Anything else, or nothing said.
    Other,
}

impl Stop {
    /// The one table that Anthropic's `stop_reason` and Chat's `finish_reason` share.
    fn of_word(word: Option<&str>) -> Stop {
        match word {
            Some("end_turn" | "stop") => Stop::EndTurn,
            Some("tool_use" | "tool_calls") => Stop::ToolUse,
            Some("max_tokens" | "length") => Stop::MaxTokens,
            Some("refusal" | "content_filter") => Stop::Refusal,
            _ => Stop::Other,
        }
    }
}

/// One call of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct AnsweredCall {
    /// The provider's id; may be empty or repeated, see [`crate::session`].
    pub id: String,
    /// The qualified tool name.
    pub name: String,
    /// The arguments, or what is wrong with them in words that a model can act on.
    pub arguments: Result<Map<String, Value>, String>,
    /// Keys beside the modelled ones.
    pub extra: Map<String, Value>,
}

/// What a model said in one round.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Its text, possibly empty.
    pub text: String,
    /// Its reasoning, shown to the client and not kept.
    pub reasoning: String,
    /// Its calls, uncut.
    pub calls: Vec<AnsweredCall>,
    /// Why it stopped.
    pub stop: Stop,
    /// A raw array that is replayed as it is, where the provider gives one.
    pub reasoning_details: Option<Value>,
}

/// Why an answer with a good status is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The body is not one JSON document.
    #[error("json: {0}")]
    Json(String),
    /// It lacks what the dialect requires.
    #[error("{0}")]
    Shape(String),
    /// It is an error in the clothes of an answer.
    #[error("provider error ({code}): {message}")]
    Provider {
        /// The provider's code, `unknown` if it gave none.
        code: String,
        /// The provider's words.
        message: String,
    },
}

/// An answer as read: its usage counts even where the rest is of no use, since it was billed.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// What it says about tokens.
    pub usage: Usage,
    /// What the model said.
    pub answer: Result<Answer, AnswerError>,
}

/// Reads the body of a 2xx answer. Total: any bytes give a value.
pub fn decode(dialect: Dialect, body: &[u8]) -> Decoded {
    match crate::json::from_outside::<Value>(body) {
        Ok(value) => match dialect {
            Dialect::Chat => chat::decode(&value),
            Dialect::Openrouter => chat::decode_openrouter(&value),
            Dialect::Responses => responses::decode(&value),
            Dialect::Anthropic => anthropic::decode(&value),
        },
        Err(e) => Decoded { usage: Usage::default(), answer: Err(AnswerError::Json(e.to_string())) },
    }
}

/// Encodes a history as it grows.
#[derive(Clone, Debug)]
pub struct Encoder {
    form: Form,
    effort: Option<Effort>,
    inner: Inner,
}

#[derive(Clone, Debug)]
enum Inner {
    Chat(ChatEncoder),
    Responses(ResponsesEncoder),
    Anthropic(AnthropicEncoder),
}

impl Encoder {
    /// An encoder for a session with nothing said so far.
    pub fn new(form: Form, settings: &Settings, system_prompt: &str) -> Encoder {
        let inner = match form.dialect {
            Dialect::Chat | Dialect::Openrouter => {
                Inner::Chat(ChatEncoder::new(form, settings, system_prompt))
            }
            Dialect::Responses => Inner::Responses(ResponsesEncoder::new(settings, system_prompt)),
            Dialect::Anthropic => {
                Inner::Anthropic(AnthropicEncoder::new(form.marks, settings, system_prompt))
            }
        };
        Encoder { form, effort: settings.effort, inner }
    }

    /// The form of its requests.
    pub fn form(&self) -> Form {
        self.form
    }

    /// The effort that its requests ask for.
    pub fn effort(&self) -> Option<Effort> {
        self.effort
    }

    /// Encodes items that were appended to the history together. Results of one round come in one call.
    pub fn push(&mut self, items: &[Item]) {
        match &mut self.inner {
            Inner::Chat(e) => e.push(items),
            Inner::Responses(e) => e.push(items),
            Inner::Anthropic(e) => e.push(items),
        }
    }

    /// Forgets the `count` oldest items; the next one is a user item.
    pub fn drop_front(&mut self, count: usize) {
        match &mut self.inner {
            Inner::Chat(e) => e.drop_front(count),
            Inner::Responses(e) => e.drop_front(count),
            Inner::Anthropic(e) => e.drop_front(count),
        }
    }

    /// Encodes the offered tools, in order.
    pub fn encode_tools(&self, tools: &[&Tool]) -> Option<Chunk> {
        let list = match &self.inner {
            Inner::Chat(_) => chat::tools(tools, self.form.marks),
            Inner::Responses(_) => tools.iter().copied().map(responses::tool).collect(),
            Inner::Anthropic(_) => tools.iter().copied().map(anthropic::tool).collect(),
        };
        (!tools.is_empty()).then(|| Chunk::from(list.to_string().into_bytes()))
    }

    /// The body of the next request.
    pub fn request(&self, model: &str, tools: Option<&Chunk>) -> Body {
        match &self.inner {
            Inner::Chat(e) => e.request(model, tools),
            Inner::Responses(e) => e.request(model, tools),
            Inner::Anthropic(e) => e.request(model, tools),
        }
    }
}

/// The request that asks `model` to sum a session up: no tools, no effort, no cache marks.
pub fn summary_request(form: Form, model: &str, prompt: &str) -> Body {
    let (system, tokens) = (SUMMARY_SYSTEM_PROMPT, SUMMARY_MAX_OUTPUT_TOKENS);
    let messages = || json!([{"content": system, "role": "system"}, {"content": prompt, "role": "user"}]);
    let mut body = match form.dialect {
        Dialect::Chat => {
            json!({"max_completion_tokens": tokens, "messages": messages(), "stream": false})
        }
        Dialect::Openrouter => json!({"max_tokens": tokens, "messages": messages(), "stream": false}),
        Dialect::Responses => {
            json!({"input": prompt, "instructions": system, "max_output_tokens": tokens})
        }
        Dialect::Anthropic => {
            let content = json!([{"text": prompt, "type": "text"}]);
            json!({
                "max_tokens": tokens, "system": system,
                "messages": [{"content": content, "role": "user"}],
            })
        }
    };
    if form.names_model {
        body["model"] = json!(model);
    }
    let mut rope = HashedRope::default();
    rope.push(Chunk::from(body.to_string().into_bytes()));
    rope.finish()
}
