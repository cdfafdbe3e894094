//! The system prompt that sessions start from when the client brings none.

use std::path::PathBuf;

use super::environment::Environment;
use super::error::ConfigError;

/// The prompt when nothing else is configured.
const BUILT_IN: &str = "You are buzz-agent. You act through the tools you are given: inspect, change and \
verify things with them instead of guessing. Your tool calls are the work that counts; the people you work \
for may not see anything else you write, so say what they need to know through a tool as well.";

/// A system prompt and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemPrompt {
    /// The text, untrimmed; may be empty.
    pub text: String,
    /// Its origin.
    pub source: PromptSource,
}

/// Where a system prompt came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptSource {
    /// This program.
    BuiltIn,
    /// `BUZZ_AGENT_SYSTEM_PROMPT`.
    Variable,
    /// The file that `BUZZ_AGENT_SYSTEM_PROMPT_FILE` names.
    File(PathBuf),
}

impl SystemPrompt {
    pub(super) fn read(env: &Environment) -> Result<Self, ConfigError> {
        let inline = env.get("BUZZ_AGENT_SYSTEM_PROMPT");
        let file = env.get("BUZZ_AGENT_SYSTEM_PROMPT_FILE");
        let (text, source) = match (inline, file) {
            (Some(_), Some(_)) => return Err(ConfigError::TwoPrompts),
            (Some(text), None) => (text.to_owned(), PromptSource::Variable),
            (None, Some(path)) => Self::read_file(PathBuf::from(path))?,
            (None, None) => (BUILT_IN.to_owned(), PromptSource::BuiltIn),
        };
        Ok(Self { text, source })
    }

    fn read_file(path: PathBuf) -> Result<(String, PromptSource), ConfigError> {
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok((text, PromptSource::File(path))),
            Err(error) => Err(ConfigError::PromptFile { path, reason: error.to_string() }),
        }
    }
}
