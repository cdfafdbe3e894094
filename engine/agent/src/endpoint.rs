//! The model's endpoint: address and credentials, and how what came of a request becomes an input.

use waxlog_core::dialect::{self, Dialect};
use waxlog_core::effort::Effort;
use waxlog_core::record::Failure;
use waxlog_core::rope::Rope;
use waxlog_core::session::Input;
use waxlog_core::settings::{Provider, Settings};

use crate::config::{Config, ProviderKind};
use crate::http::{Answer, FailureKind, ModelClient, Outcome};
use crate::scrub::Scrubber;
use crate::secret::Secret;

/// Where requests go.
#[derive(Clone)]
pub struct Endpoint {
    client: ModelClient,
    base_url: String,
    key: Secret<String>,
    anthropic_version: String,
    provider: Provider,
}

/// A provider that this version cannot speak to.
#[derive(Debug, thiserror::Error)]
#[error("config: BUZZ_AGENT_PROVIDER={0} needs a dialect that this version does not have; use anthropic, or openai with OPENAI_COMPAT_API=chat")]
pub struct NoDialect(String);

/// The snapshot of `config` that a session's decisions depend on.
pub fn settings(config: &Config) -> Result<Settings, NoDialect> {
    let (provider, dialect) = match config.provider.kind {
        ProviderKind::Anthropic => (Provider::Anthropic, Dialect::Anthropic),
        ProviderKind::OpenAi if !config.provider.starts_with_responses() => (Provider::Openai, Dialect::Chat),
        other => return Err(NoDialect(format!("{other:?}"))),
    };
    let limits = &config.limits;
    Ok(Settings {
        provider,
        dialect,
        base_url: without_user(&config.provider.base_url),
        model: config.provider.model.clone(),
        max_output_tokens: limits.max_output_tokens,
        max_context_tokens: limits.max_context_tokens,
        max_rounds: limits.max_rounds,
        max_handoffs: limits.max_handoffs as u64,
        stop_max_rejections: limits.stop_max_rejections,
        require_reply: limits.require_reply,
        max_history_bytes: limits.max_history_bytes as u64,
        max_parallel_tools: limits.max_parallel_tools,
        max_tool_result_text_bytes: limits.max_result_text_bytes,
        prompt_caching: limits.prompt_caching,
        effort: config.effort.and_then(|e| Effort::ALL.into_iter().find(|c| c.as_str() == e.word())),
    })
}

/// A URL as it may be kept: user and password may be secrets.
fn without_user(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

impl Endpoint {
    /// The endpoint that `config` names.
    pub fn new(config: &Config, client: ModelClient, provider: Provider) -> Endpoint {
        Endpoint {
            client,
            base_url: config.provider.base_url.clone(),
            key: config.provider.key.clone().unwrap_or_else(|| Secret::new(String::new())),
            anthropic_version: config.provider.anthropic_version.clone(),
            provider,
        }
    }

    /// Sends one attempt.
    pub async fn post(&self, dialect: Dialect, body: &Rope) -> Outcome {
        let url = format!("{}{}", self.base_url, dialect::path(dialect));
        let json = Secret::new("application/json".to_owned());
        let mut headers = vec![("content-type", json)];
        match self.provider {
            Provider::Anthropic => {
                headers.push(("x-api-key", self.key.clone()));
                headers.push(("anthropic-version", Secret::new(self.anthropic_version.clone())));
            }
            Provider::Openai => {
                headers.push(("authorization", Secret::new(format!("Bearer {}", self.key.expose()))));
            }
        }
        self.client.post(&url, &headers, body.chunks().to_vec()).await
    }
}

/// The input that `outcome` is.
pub fn input(asked: u64, outcome: Outcome, elapsed_ms: u64, scrubber: &Scrubber) -> Input {
    let jitter_permille = fastrand::u16(0..1000);
    let (failure, headers, body) = match outcome {
        Outcome::Answered(Answer { status, headers, body, .. }) if (200..300).contains(&status) => {
            let body = scrubber.scrub(body);
            return Input::Answered { asked, status, headers, body, elapsed_ms, jitter_permille };
        }
        Outcome::Answered(Answer { status, reason, headers, body }) => {
            (Failure::Status { status, reason: reason.to_owned() }, headers, scrubber.scrub(body))
        }
        Outcome::Failed(failed) => {
            let text = scrubber.scrub_text(failed.text);
            let failure = match failed.kind {
                FailureKind::Request => Failure::Unsendable { text },
                FailureKind::Connect | FailureKind::Timeout | FailureKind::Transport => {
                    Failure::Transport { text }
                }
                FailureKind::BodyRead => Failure::BodyRead { text },
                FailureKind::TooLarge => Failure::TooLarge { text },
            };
            (failure, Vec::new(), Vec::new())
        }
    };
    Input::AttemptFailed { asked, failure, headers, body, elapsed_ms, jitter_permille }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_address_has_no_user() {
        assert_eq!(without_user("https://u:p@host/v1"), "https://host/v1");
        assert_eq!(without_user("http://host:1/a@b"), "http://host:1/a@b");
        assert_eq!(without_user("odd"), "odd");
    }
}
