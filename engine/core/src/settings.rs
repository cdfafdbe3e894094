//! The settings that a session runs under: what of the environment its decisions depend on, frozen in
//! the session's first record. No secret is among them.

use serde::{Deserialize, Serialize};

use crate::dialect::Dialect;
use crate::effort::Effort;

/// Who serves the model, as far as the loop cares: retry rules and error classes differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// Anthropic's own endpoint.
    Anthropic,
    /// OpenAI or anything that speaks its wire.
    Openai,
}

/// A snapshot of the settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Who serves the model.
    pub provider: Provider,
    /// The wire format of its endpoint.
    pub dialect: Dialect,
    /// The base URL without user information.
    pub base_url: String,
    /// The configured model; a session may override it.
    pub model: String,
    /// Output cap of one request, in tokens.
    pub max_output_tokens: u32,
    /// Size of the context window, in tokens.
    pub max_context_tokens: u64,
    /// Requests per prompt; 0 is unlimited.
    pub max_rounds: u32,
    /// Context handoffs of a session; 0 is never.
    pub max_handoffs: u64,
    /// Objections of one turn to its own end; 0 is none.
    pub stop_max_rejections: u32,
    /// Whether a turn that published nothing is reminded.
    pub require_reply: bool,
    /// Budget of the history, in bytes.
    pub max_history_bytes: u64,
    /// Calls that may run at the same time.
    pub max_parallel_tools: usize,
    /// Cap of the text of one tool result, in bytes.
    pub max_tool_result_text_bytes: usize,
    /// Whether Anthropic cache marks are sent.
    pub prompt_caching: bool,
    /// Thinking effort, if one was chosen.
    pub effort: Option<Effort>,
}
