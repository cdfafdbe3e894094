//! The model's endpoint: address and credentials, and how what came of a request becomes an input.

use std::time::SystemTime;

use waxlog_core::provider::{Credential, Spec};
use waxlog_core::record::Failure;
use waxlog_core::rope::Rope;
use waxlog_core::session::Input;
use waxlog_core::settings::Settings;

use crate::config::Config;
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
    spec: &'static Spec,
}

/// The snapshot of `config` that a session's decisions depend on.
pub fn settings(config: &Config) -> Settings {
    let limits = &config.limits;
    Settings {
        provider: config.provider.provider,
        api: config.provider.api,
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
        effort: config.effort,
    }
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
    pub fn new(config: &Config, client: ModelClient) -> Endpoint {
        Endpoint {
            client,
            base_url: config.provider.base_url.clone(),
            key: config.provider.key.clone().unwrap_or_else(|| Secret::new(String::new())),
            anthropic_version: config.provider.anthropic_version.clone(),
            spec: config.provider.provider.spec(),
        }
    }

    /// Sends one attempt.
    pub async fn post(&self, path: &str, body: &Rope) -> Outcome {
        let url = format!("{}{path}", self.base_url);
        let mut headers = vec![("content-type", Secret::new("application/json".to_owned()))];
        headers.extend(self.spec.headers.iter().map(|(name, value)| (*name, Secret::new((*value).to_owned()))));
        match self.spec.credential {
            Credential::ApiKey => {
                headers.push(("x-api-key", self.key.clone()));
                headers.push(("anthropic-version", Secret::new(self.anthropic_version.clone())));
            }
            Credential::Bearer => {
                headers.push(("authorization", Secret::new(format!("Bearer {}", self.key.expose()))));
            }
        }
        self.client.post(&url, &headers, body.chunks().to_vec()).await
    }
}

/// The input that `outcome` is.
pub fn input(asked: u64, outcome: Outcome, elapsed_ms: u64, scrubber: &Scrubber) -> Input {
    let jitter_permille = fastrand::u16(0..1000);
    let retry_after_ms = match &outcome {
        Outcome::Answered(answer) => retry_after_ms(&answer.headers, SystemTime::now()),
        Outcome::Failed(_) => None,
    };
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
    Input::AttemptFailed { asked, failure, headers, body, retry_after_ms, elapsed_ms, jitter_permille }
}

/// How long a `Retry-After` header asks to wait: whole seconds, or until a date. Anything else says nothing.
fn retry_after_ms(headers: &[(String, String)], now: SystemTime) -> Option<u64> {
    let (_, value) = headers.iter().find(|(name, _)| name == "retry-after")?;
    let value = value.trim();
    if let Ok(seconds) = value.parse::<u64>() {
        return Some(seconds.saturating_mul(1000));
    }
    let until = httpdate::parse_http_date(value).ok()?;
    let wait = until.duration_since(now).unwrap_or_default();
    u64::try_from(wait.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn c33_retry_after_is_seconds_or_a_date_or_nothing() {
        let now = UNIX_EPOCH + Duration::from_secs(1_445_412_450);
        let asked = |value: &str| retry_after_ms(&[("retry-after".to_owned(), value.to_owned())], now);
        assert_eq!(asked("120"), Some(120_000));
        assert_eq!(asked("0"), Some(0));
        assert_eq!(asked("99999999"), Some(99_999_999_000));
        assert_eq!(asked("Wed, 21 Oct 2015 07:28:00 GMT"), Some(30_000));
        assert_eq!(asked("Tue, 21 Oct 2014 07:28:00 GMT"), Some(0));
        for nothing in ["-1", "1.5", "soon", ""] {
            assert_eq!(asked(nothing), None, "{nothing}");
        }
        assert_eq!(retry_after_ms(&[], now), None);
    }

    #[test]
    fn a_kept_address_has_no_user() {
        assert_eq!(without_user("https://u:p@host/v1"), "https://host/v1");
        assert_eq!(without_user("http://host:1/a@b"), "http://host:1/a@b");
        assert_eq!(without_user("odd"), "odd");
    }
}
