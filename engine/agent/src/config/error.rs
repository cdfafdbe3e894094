//! What can be wrong with the settings. Every text starts `config: ` and names the variable.

use std::path::PathBuf;

use thiserror::Error;
use waxlog_core::provider::Provider;

use super::effort::EFFORT_WORDS;

/// The first setting that is wrong. The process says so on stderr and exits with status 2.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// No provider is named.
    #[error("config: BUZZ_AGENT_PROVIDER is required; set it to one of: {}", Provider::words())]
    ProviderMissing,
    /// The provider is none that we know.
    #[error("config: BUZZ_AGENT_PROVIDER={typed} not supported; use one of: {}", Provider::words())]
    ProviderUnknown {
        /// The word as it was typed.
        typed: String,
    },
    /// A variable without which the provider cannot be used is absent or blank.
    #[error("config: {name} required")]
    Required {
        /// The variable.
        name: &'static str,
    },
    /// The form of the API is none that we know.
    #[error("config: OPENAI_COMPAT_API={typed} not supported (use auto, chat or responses)")]
    ApiUnknown {
        /// The word as it was typed.
        typed: String,
    },
    /// Two places for the system prompt.
    #[error(
        "config: BUZZ_AGENT_SYSTEM_PROMPT and BUZZ_AGENT_SYSTEM_PROMPT_FILE are mutually exclusive; unset one"
    )]
    TwoPrompts,
    /// The system prompt's file cannot be read.
    #[error("config: read {}: {reason}", path.display())]
    PromptFile {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// A number that is none, or does not fit its type.
    #[error("config: {name}: {reason}")]
    Number {
        /// The variable.
        name: &'static str,
        /// What the parser says.
        reason: String,
    },
    /// A number below its minimum.
    #[error("config: {name}={value} is too small; use {min} or more")]
    TooSmall {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: u64,
        /// The smallest value that is legal.
        min: u64,
    },
    /// A number above its maximum.
    #[error("config: {name}={value} is too large; use {max} or less")]
    TooLarge {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: u64,
        /// The largest value that is legal.
        max: u64,
    },
    /// The context window leaves no room beside the response.
    #[error(
        "config: BUZZ_AGENT_MAX_CONTEXT_TOKENS={context} must be greater than \
         BUZZ_AGENT_MAX_OUTPUT_TOKENS={output}: the window must leave room for the response"
    )]
    NoRoomForOutput {
        /// The window, in tokens.
        context: u64,
        /// The response, in tokens.
        output: u32,
    },
    /// The longest back-off is shorter than the first.
    #[error(
        "config: BUZZ_AGENT_MCP_RESTART_MAX_MS={max_ms} must be at least \
         BUZZ_AGENT_MCP_RESTART_BASE_MS={base_ms}"
    )]
    BackoffCap {
        /// The longest, in milliseconds.
        max_ms: u64,
        /// The first, in milliseconds.
        base_ms: u64,
    },
    /// A word for the effort that is none.
    #[error("config: BUZZ_AGENT_THINKING_EFFORT={word} not supported (use {EFFORT_WORDS})")]
    EffortUnknown {
        /// The word, in lower case.
        word: String,
    },
    /// An effort that the provider does not have.
    #[error(
        "config: BUZZ_AGENT_THINKING_EFFORT={word} not valid for Anthropic (use low|medium|high|xhigh|max)"
    )]
    EffortNotAnthropic {
        /// The word.
        word: &'static str,
    },
    /// Nowhere to keep the log.
    #[error("config: WAXLOG_HOME required: neither XDG_STATE_HOME nor HOME is set; set one of the three")]
    NoHome,
    /// Nowhere to keep the user's login.
    #[error(
        "config: HOME required: without {key_variable} the user logs in, and the login is kept below HOME; set \
         either"
    )]
    NoHomeForLogin {
        /// The variable that makes a login needless.
        key_variable: &'static str,
    },
    /// A slot's name that is no folder's.
    #[error(
        "config: WAXLOG_SLOT={typed} not supported (use up to {} letters, digits and hyphens)",
        super::SLOT_NAME_MAX_BYTES
    )]
    SlotName {
        /// As it was typed.
        typed: String,
    },
    /// A word for the durability that is none.
    #[error("config: WAXLOG_DURABILITY={typed} not supported (use process or power)")]
    DurabilityUnknown {
        /// The word as it was typed.
        typed: String,
    },
}
