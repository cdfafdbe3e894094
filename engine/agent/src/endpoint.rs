//! The model's endpoint: address and credentials, and how what came of a request becomes an input.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use waxlog_core::provider::{Credential, Spec};
use waxlog_core::record::Failure;
use waxlog_core::rope::Rope;
use waxlog_core::session::Input;
use waxlog_core::settings::Settings;

use crate::auth::{AuthError, TokenSource};
use crate::config::Config;
use crate::http::{without_user, Answer, FailureKind, ModelClient, Outcome};
use crate::scrub::Scrubber;
use crate::secret::Secret;

/// Where the requests of a session go.
#[derive(Clone)]
pub struct Endpoint {
    client: ModelClient,
    base_url: String,
    tokens: TokenSource,
    anthropic_version: String,
    spec: &'static Spec,
    rejected: Arc<Mutex<Option<Rejected>>>,
}

/// The last attempt that was answered with 401 or 403.
struct Rejected {
    /// The request.
    asked: u64,
    /// The token that it showed.
    token: Secret<String>,
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
        ask_permission: limits.ask_permission,
        prefer_mesh_for_auto: limits.prefer_mesh_for_auto && config.provider.provider.spec().has_mesh,
    }
}

impl Endpoint {
    /// The endpoint that `config` names, with tokens from `tokens`.
    pub fn new(config: &Config, client: ModelClient, tokens: TokenSource) -> Endpoint {
        Endpoint {
            client,
            base_url: config.provider.base_url.clone(),
            tokens,
            anthropic_version: config.provider.anthropic_version.clone(),
            spec: config.provider.provider.spec(),
            rejected: Arc::default(),
        }
    }

    /// The same endpoint for another session: requests are numbered within one.
    pub fn for_session(&self) -> Endpoint {
        Endpoint { rejected: Arc::default(), ..self.clone() }
    }

    /// Sends one attempt at the request number `asked`. An attempt that follows a refused token gets another
    /// one, if there is one.
    pub async fn post(&self, asked: u64, path: &str, body: &Rope) -> Result<Outcome, AuthError> {
        let rejected = self.rejected().take().filter(|rejected| rejected.asked == asked);
        let token = match rejected {
            Some(rejected) => self.tokens.renewed(&rejected.token).await?,
            None => self.tokens.bearer().await?,
        };
        let outcome = self.send(path, body, &token).await;
        if matches!(&outcome, Outcome::Answered(Answer { status: 401 | 403, .. })) {
            *self.rejected() = Some(Rejected { asked, token });
        }
        Ok(outcome)
    }

    fn rejected(&self) -> MutexGuard<'_, Option<Rejected>> {
        // Nothing is left half done under this lock.
        self.rejected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn send(&self, path: &str, body: &Rope, token: &Secret<String>) -> Outcome {
        let url = format!("{}{path}", self.base_url);
        let mut headers = vec![("content-type", Secret::new("application/json".to_owned()))];
        headers
            .extend(self.spec.headers.iter().map(|(name, value)| (*name, Secret::new((*value).to_owned()))));
        match self.spec.credential {
            Credential::ApiKey => {
                headers.push(("x-api-key", token.clone()));
                headers.push(("anthropic-version", Secret::new(self.anthropic_version.clone())));
            }
            Credential::Bearer => {
                headers.push(("authorization", Secret::new(format!("Bearer {}", token.expose()))));
            }
        }
        self.client.post(&url, &headers, body).await
    }
}

/// The input that what came of an attempt is.
pub fn input(asked: u64, sent: Result<Outcome, AuthError>, elapsed_ms: u64, scrubber: &Scrubber) -> Input {
    let jitter_permille = fastrand::u16(0..1000);
    let retry_after_ms = match &sent {
        Ok(Outcome::Answered(answer)) => retry_after_ms(&answer.headers, SystemTime::now()),
        Ok(Outcome::Failed(_)) | Err(_) => None,
    };
    let (failure, headers, body) = match sent {
        Err(error) => {
            let text = scrubber.scrub_text(error.to_string());
            (Failure::Auth { text }, Vec::new(), Vec::new())
        }
        Ok(Outcome::Answered(Answer { status, headers, body, .. })) if (200..300).contains(&status) => {
            let body = scrubber.scrub(body);
            return Input::Answered { asked, status, headers, body, elapsed_ms, jitter_permille };
        }
        Ok(Outcome::Answered(Answer { status, reason, headers, body })) => {
            (Failure::Status { status, reason: reason.to_owned() }, headers, scrubber.scrub(body))
        }
        Ok(Outcome::Failed(failed)) => {
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
}
