//! The settings that a session runs under: what of the environment its decisions depend on, frozen in
//! the session's first record. No secret is among them.

use serde::{Deserialize, Serialize};

use crate::effort::Effort;
use crate::provider::{ApiMode, Provider, Route, Target};

/// A snapshot of the settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Who serves the model.
    pub provider: Provider,
    /// Which of the OpenAI wires was chosen.
    pub api: ApiMode,
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
    /// Whether the client is asked before a tool of a server is called. Records of before there was the
    /// question do not say it.
    #[serde(default)]
    pub ask_permission: bool,
    /// Whether a relay mesh may stand in for the model `auto`. Absent like the one before.
    #[serde(default)]
    pub prefer_mesh_for_auto: bool,
}

impl Settings {
    /// Where requests for `model` go.
    pub fn route(&self, model: &str, upgraded: bool) -> Route {
        (self.provider.spec().route)(&Target {
            model,
            api: self.api,
            base_url: &self.base_url,
            upgraded,
            prompt_caching: self.prompt_caching,
        })
    }
}
