//! Who answers: provider, key, model and address.

use super::environment::Environment;
use super::error::ConfigError;
use crate::secret::Secret;

/// The providers that can be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderKind {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI, and whoever speaks like it.
    OpenAi,
    /// OpenRouter, a relative of OpenAI chat.
    OpenRouter,
    /// Databricks serving endpoints.
    Databricks,
    /// Databricks AI gateway.
    DatabricksV2,
}

/// Which form of the OpenAI API is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiMode {
    /// Responses towards OpenAI itself, Chat towards everyone else, until a server says otherwise.
    Auto,
    /// Chat completions.
    Chat,
    /// Responses.
    Responses,
}

/// A provider with all it takes to reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// Which one.
    pub kind: ProviderKind,
    /// Its key, untrimmed; absent for Databricks without a static token, which then needs a sign-in.
    pub key: Option<Secret<String>>,
    /// The model that sessions start with.
    pub model: String,
    /// The base address, without trailing slashes.
    pub base_url: String,
    /// The form of the API; `Auto` for all but OpenAI.
    pub api: ApiMode,
    /// The `anthropic-version` header.
    pub anthropic_version: String,
}

/// The variables of one provider.
struct Variables {
    key: &'static str,
    key_required: bool,
    model: &'static str,
    base_url: &'static str,
    default_base_url: Option<&'static str>,
}

impl ProviderKind {
    fn read(env: &Environment) -> Result<Self, ConfigError> {
        let typed = env
            .get_filled("BUZZ_AGENT_PROVIDER")
            .ok_or(ConfigError::ProviderMissing)?;
        match typed.trim().to_lowercase().as_str() {
            "anthropic" => Ok(Self::Anthropic),
            "openai" | "openai-compat" => Ok(Self::OpenAi),
            "openrouter" => Ok(Self::OpenRouter),
            "databricks" => Ok(Self::Databricks),
            "databricks_v2" | "databricks-v2" => Ok(Self::DatabricksV2),
            _ => Err(ConfigError::ProviderUnknown {
                typed: typed.to_owned(),
            }),
        }
    }

    fn variables(self) -> Variables {
        match self {
            Self::Anthropic => Variables {
                key: "ANTHROPIC_API_KEY",
                key_required: true,
                model: "ANTHROPIC_MODEL",
                base_url: "ANTHROPIC_BASE_URL",
                default_base_url: Some("https://api.anthropic.com"),
            },
            Self::OpenAi => Variables {
                key: "OPENAI_COMPAT_API_KEY",
                key_required: true,
                model: "OPENAI_COMPAT_MODEL",
                base_url: "OPENAI_COMPAT_BASE_URL",
                default_base_url: Some("https://api.openai.com/v1"),
            },
            Self::OpenRouter => Variables {
                key: "OPENROUTER_API_KEY",
                key_required: true,
                model: "OPENROUTER_MODEL",
                base_url: "OPENROUTER_BASE_URL",
                default_base_url: Some("https://openrouter.ai/api/v1"),
            },
            Self::Databricks | Self::DatabricksV2 => Variables {
                key: "DATABRICKS_TOKEN",
                key_required: false,
                model: "DATABRICKS_MODEL",
                base_url: "DATABRICKS_HOST",
                default_base_url: None,
            },
        }
    }
}

impl Provider {
    /// Reads the provider and its variables; those of other providers may hold anything.
    pub(super) fn read(env: &Environment) -> Result<Self, ConfigError> {
        let kind = ProviderKind::read(env)?;
        let names = kind.variables();
        let key = env
            .get_filled(names.key)
            .map(|key| Secret::new(key.to_owned()));
        if names.key_required && key.is_none() {
            return Err(ConfigError::Required { name: names.key });
        }
        let model = env
            .get_filled("BUZZ_AGENT_MODEL")
            .or_else(|| env.get_filled(names.model))
            .ok_or(ConfigError::Required { name: names.model })?;
        let base_url = env
            .get_filled(names.base_url)
            .or(names.default_base_url)
            .ok_or(ConfigError::Required {
                name: names.base_url,
            })?;
        let anthropic_version = env.get("ANTHROPIC_API_VERSION").unwrap_or("2023-06-01");
        Ok(Self {
            kind,
            key,
            model: model.to_owned(),
            base_url: base_url.trim_end_matches('/').to_owned(),
            api: match kind {
                ProviderKind::OpenAi => ApiMode::read(env)?,
                _ => ApiMode::Auto,
            },
            anthropic_version: anthropic_version.to_owned(),
        })
    }

    /// Whether requests start out in the Responses form: by setting, or because OpenAI itself is asked.
    pub fn starts_with_responses(&self) -> bool {
        match self.api {
            ApiMode::Chat => false,
            ApiMode::Responses => true,
            ApiMode::Auto => self.kind == ProviderKind::OpenAi && is_openai_host(&self.base_url),
        }
    }
}

impl ApiMode {
    fn read(env: &Environment) -> Result<Self, ConfigError> {
        let typed = env.get("OPENAI_COMPAT_API").unwrap_or_default();
        match typed.trim().to_lowercase().as_str() {
            "" | "auto" => Ok(Self::Auto),
            "chat" | "chat-completions" | "chat_completions" => Ok(Self::Chat),
            "responses" => Ok(Self::Responses),
            _ => Err(ConfigError::ApiUnknown {
                typed: typed.to_owned(),
            }),
        }
    }
}

/// The host ends at the first slash or colon: `https://api.openai.com.evil.example` is someone else.
fn is_openai_host(base_url: &str) -> bool {
    let rest = base_url
        .strip_prefix("https://")
        .or_else(|| base_url.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split(['/', ':']).next());
    host.is_some_and(|host| host == "api.openai.com" || host.ends_with(".openai.com"))
}
