//! Who answers: provider, key, model and address. The names come from the table of providers.

use waxlog_core::provider::{self, ApiMode};

use super::environment::Environment;
use super::error::ConfigError;
use crate::secret::Secret;

/// The provider that was chosen, with everything that is needed to reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// Which one.
    pub provider: provider::Provider,
    /// What it bills; `None` where the user logs in instead.
    pub key: Option<Secret<String>>,
    /// The model to ask for, as long as a session names no other.
    pub model: String,
    /// Its address, without a slash at the end.
    pub base_url: String,
    /// Which of the OpenAI wires is spoken.
    pub api: ApiMode,
    /// The version header of Anthropic's wire.
    pub anthropic_version: String,
}

impl Provider {
    pub(super) fn read(env: &Environment) -> Result<Self, ConfigError> {
        let typed = env.get_filled("BUZZ_AGENT_PROVIDER").ok_or(ConfigError::ProviderMissing)?;
        let provider = provider::Provider::of_word(typed)
            .ok_or_else(|| ConfigError::ProviderUnknown { typed: typed.to_owned() })?;
        let spec = provider.spec();
        let key = env.get_filled(spec.key_variable).map(|key| Secret::new(key.to_owned()));
        if spec.key_required && key.is_none() {
            return Err(ConfigError::Required { name: spec.key_variable });
        }
        let model = env
            .get_filled("BUZZ_AGENT_MODEL")
            .or_else(|| env.get_filled(spec.model_variable))
            .ok_or(ConfigError::Required { name: spec.model_variable })?;
        let base_url = env
            .get_filled(spec.base_url_variable)
            .or(spec.default_base_url)
            .ok_or(ConfigError::Required { name: spec.base_url_variable })?;
        Ok(Self {
            provider,
            key,
            model: model.to_owned(),
            base_url: base_url.trim_end_matches('/').to_owned(),
            api: if spec.has_api_modes { read_api(env)? } else { ApiMode::Auto },
            anthropic_version: env.get("ANTHROPIC_API_VERSION").unwrap_or("2023-06-01").to_owned(),
        })
    }
}

fn read_api(env: &Environment) -> Result<ApiMode, ConfigError> {
    let typed = env.get("OPENAI_COMPAT_API").unwrap_or_default();
    match typed.trim().to_lowercase().as_str() {
        "" | "auto" => Ok(ApiMode::Auto),
        "chat" | "chat-completions" | "chat_completions" => Ok(ApiMode::Chat),
        "responses" => Ok(ApiMode::Responses),
        _ => Err(ConfigError::ApiUnknown { typed: typed.to_owned() }),
    }
}
