//! How hard a model is asked to think.

use super::environment::Environment;
use super::error::ConfigError;
use super::provider::ProviderKind;

/// All words, as error texts list them.
pub(super) const EFFORT_WORDS: &str = "none|minimal|low|medium|high|xhigh|max";

/// The effort, in ascending order. What a model makes of it is resolved with each request, since the model
/// of a session can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // Each variant is the word it is named after.
pub enum Effort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    XHigh,
    Max,
}

impl Effort {
    /// All of them, in ascending order.
    pub const ALL: [Effort; 7] = [
        Effort::None,
        Effort::Minimal,
        Effort::Low,
        Effort::Medium,
        Effort::High,
        Effort::XHigh,
        Effort::Max,
    ];

    /// The word on every wire.
    pub fn word(self) -> &'static str {
        match self {
            Effort::None => "none",
            Effort::Minimal => "minimal",
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
            Effort::XHigh => "xhigh",
            Effort::Max => "max",
        }
    }

    /// The effort that the environment asks for, if it asks for one.
    pub(super) fn read(env: &Environment) -> Result<Option<Self>, ConfigError> {
        let Some(typed) = env.get_filled("BUZZ_AGENT_THINKING_EFFORT") else {
            return Ok(None);
        };
        let word = typed.trim().to_lowercase();
        match Self::ALL.into_iter().find(|effort| effort.word() == word) {
            Some(effort) => Ok(Some(effort)),
            None => Err(ConfigError::EffortUnknown { word }),
        }
    }

    /// Refuses at startup what no model of the provider can ever do.
    pub(super) fn check(self, provider: ProviderKind) -> Result<(), ConfigError> {
        if provider == ProviderKind::Anthropic && self < Effort::Low {
            let word = self.word();
            return Err(ConfigError::EffortNotAnthropic { word });
        }
        Ok(())
    }
}
