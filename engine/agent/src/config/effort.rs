//! How hard a model is asked to think.

use waxlog_core::effort::Effort;
use waxlog_core::provider::Provider;

use super::environment::Environment;
use super::error::ConfigError;

/// All words, as error texts list them.
pub(super) const EFFORT_WORDS: &str = "none|minimal|low|medium|high|xhigh|max";

/// The effort that the environment asks for, if it asks for one.
pub(super) fn read(env: &Environment) -> Result<Option<Effort>, ConfigError> {
    let Some(typed) = env.get_filled("BUZZ_AGENT_THINKING_EFFORT") else {
        return Ok(None);
    };
    let word = typed.trim().to_lowercase();
    match Effort::ALL.into_iter().find(|effort| effort.as_str() == word) {
        Some(effort) => Ok(Some(effort)),
        None => Err(ConfigError::EffortUnknown { word }),
    }
}

/// Refuses at startup what no model of the provider can ever do.
pub(super) fn check(effort: Effort, provider: Provider) -> Result<(), ConfigError> {
    if effort < provider.spec().least_effort {
        return Err(ConfigError::EffortNotAnthropic { word: effort.as_str() });
    }
    Ok(())
}
