//! What follows a failed attempt at the model's endpoint: another one, or the end of the turn.

use std::time::Duration;

use crate::acp::code;
use crate::provider::Retry;
use crate::record::{Failure, Outcome};

/// Attempts at one request before it is given up.
pub const ATTEMPTS_MAX: u32 = 3;
/// Back-off before the second attempt, in milliseconds; it doubles from there.
const BACKOFF_BASE_MS: u64 = 500;
/// Longest wait that an endpoint may ask for, in milliseconds.
const RETRY_AFTER_MAX_MS: u64 = 60_000;
/// What OpenRouter says when no upstream takes what the request asks for.
const NO_ENDPOINT: &str = "No endpoints found that can handle the requested parameters";
/// Where the doubling ends, in milliseconds.
const BACKOFF_MAX_MS: u64 = 8_000;

/// Where a request stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attempts {
    /// Attempts of the current series that have failed.
    pub failed: u32,
    /// Whether the series after a refused credential has begun.
    pub auth_repeated: bool,
}

/// What follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The same bytes again after a while.
    Again {
        /// The wait in milliseconds.
        after_ms: u64,
        /// Where the request stands then.
        attempts: Attempts,
    },
    /// The turn fails.
    Fail(Outcome),
}

/// What time and chance have to do with a failed attempt.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timing {
    /// How long the endpoint asks to wait, in milliseconds, if it does.
    pub retry_after_ms: Option<u64>,
    /// Milliseconds since the first attempt began.
    pub elapsed_ms: u64,
    /// The draw for the back-off, 0 to 999.
    pub jitter_permille: u16,
}

/// What an attempt left behind, for the error's text.
#[derive(Clone, Copy, Debug)]
pub struct Failed<'a> {
    /// The provider's rules.
    pub retry: Retry,
    /// The model asked.
    pub model: &'a str,
    /// The first bytes of the body.
    pub body: &'a str,
    /// Time and chance.
    pub timing: Timing,
}

impl Failed<'_> {
    /// Judges `failure` after `before`.
    pub fn judge(&self, failure: &Failure, before: Attempts) -> Verdict {
        let now = Attempts { failed: before.failed + 1, ..before };
        if let (Retry::Openrouter, Failure::Status { status, reason }) = (self.retry, failure) {
            return self.judge_openrouter(*status, reason, now);
        }
        match failure {
            Failure::Status { status: status @ (401 | 403), reason } => self.refused(*status, reason, before),
            Failure::Status { status: 404, reason } => self.model_not_found(reason),
            Failure::Status { status, reason } if is_passing(*status) => {
                let what = format!("exhausted retries: {status} {reason}: {}", self.body);
                self.again_or(now, what)
            }
            Failure::Transport { text } => self.again_or(now, format!("transport: {text}")),
            Failure::Status { status, reason } => self.llm(format!("{status} {reason}: {}", self.body)),
            Failure::BodyRead { text } => {
                self.llm(format!("body read: {text} ({})", self.cumulative(now.failed)))
            }
            Failure::Auth { text } => self.fail(code::AUTH, format!("llm auth: {text}")),
            Failure::TooLarge { text } | Failure::Unsendable { text } => self.llm(text.clone()),
        }
    }

    /// Judges an answer whose body is an error with `error_code`: some gateways wrap a passing failure in
    /// a good status.
    pub fn judge_wrapped(&self, error_code: &str, text: &str, before: Attempts) -> Verdict {
        let now = Attempts { failed: before.failed + 1, ..before };
        match wrapped_status(error_code) {
            Some(status) if is_passing(status) => self.again_or(now, text.to_owned()),
            _ => self.llm(text.to_owned()),
        }
    }

    /// OpenRouter passes on why its own upstream failed, and asks for patience in a header.
    fn judge_openrouter(&self, status: u16, reason: &str, now: Attempts) -> Verdict {
        let (body, asked) = (self.body, self.timing.retry_after_ms.filter(|ms| *ms > 0));
        let exhausted = || format!("exhausted retries: {status} {reason}: {body}");
        let routing = || format!("no OpenRouter endpoint supports the requested parameters: {body}");
        match status {
            401 => self.fail(
                code::AUTH,
                "llm auth: 401 static key rejected by OpenRouter; check OPENROUTER_API_KEY".to_owned(),
            ),
            402 => {
                self.llm("402 OpenRouter credits exhausted; add credits to the account of the key".to_owned())
            }
            404 if body.contains(NO_ENDPOINT) => self.llm(routing()),
            404 => self.model_not_found(reason),
            429 => self.again_after(asked, now, || format!("rate limited: {body}")),
            503 => match upstream_error(body).as_deref() {
                Some("provider_overloaded") => self.again_after(asked, now, exhausted),
                Some(_) => self.again_after(None, now, exhausted),
                None if now.failed >= ATTEMPTS_MAX => self.llm(routing()),
                None => self.again_after(None, now, exhausted),
            },
            499..=599 => self.again_after(None, now, exhausted),
            _ => self.llm(format!("{status} {reason}: {body}")),
        }
    }

    fn again_after(&self, wait_ms: Option<u64>, now: Attempts, what: impl Fn() -> String) -> Verdict {
        match wait_ms {
            Some(ms) if now.failed < ATTEMPTS_MAX => {
                Verdict::Again { after_ms: ms.min(RETRY_AFTER_MAX_MS), attempts: now }
            }
            _ => self.again_or(now, what()),
        }
    }

    fn model_not_found(&self, reason: &str) -> Verdict {
        let text = format!("llm model not found: ({}) 404 {reason}: {}", self.model, self.body);
        self.fail(code::MODEL_NOT_FOUND, text)
    }

    /// Credentials were refused. OpenAI-shaped endpoints get one more series, Anthropic does not.
    fn refused(&self, status: u16, reason: &str, before: Attempts) -> Verdict {
        if self.retry == (Retry::Common { repeats_auth: true }) && !before.auth_repeated {
            return Verdict::Again { after_ms: 0, attempts: Attempts { failed: 0, auth_repeated: true } };
        }
        let said =
            if self.body.trim().is_empty() { format!("{status} {reason}") } else { self.body.to_owned() };
        self.fail(code::AUTH, format!("llm auth: {said}"))
    }

    fn again_or(&self, now: Attempts, what: String) -> Verdict {
        if now.failed < ATTEMPTS_MAX {
            let after_ms = backoff_ms(now.failed - 1, self.timing.jitter_permille);
            return Verdict::Again { after_ms, attempts: now };
        }
        self.llm(format!("{what} ({})", self.cumulative(now.failed)))
    }

    fn cumulative(&self, attempts: u32) -> String {
        let plural = if attempts == 1 { "" } else { "s" };
        format!("cumulative {:?}, {attempts} attempt{plural}", Duration::from_millis(self.timing.elapsed_ms))
    }

    fn llm(&self, text: String) -> Verdict {
        self.fail(code::FAILED, format!("llm: ({}) {text}", self.model))
    }

    fn fail(&self, code: i64, message: String) -> Verdict {
        Verdict::Fail(Outcome::Failed { code, message })
    }
}

/// The kind of upstream failure that an OpenRouter error body names.
fn upstream_error(body: &str) -> Option<String> {
    let body: serde_json::Value = crate::json::from_outside(body.as_bytes()).ok()?;
    body.pointer("/error/metadata/error_type")?.as_str().map(str::to_owned)
}

/// The status that the code of a wrapped error stands for: its number, possibly before a type, or one of the
/// words that Anthropic and OpenAI have for failures that pass. OpenAI's `server_error` is none of them: it comes
/// with answers that have been billed, and asking again would bill them again.
fn wrapped_status(error_code: &str) -> Option<u16> {
    let code = error_code.split_once(", ").map_or(error_code, |(code, _type)| code);
    match code {
        "rate_limit_error" | "rate_limit_exceeded" => Some(429),
        "api_error" => Some(500),
        "timeout_error" => Some(504),
        "overloaded_error" => Some(529),
        number => number.parse().ok(),
    }
}

fn is_passing(status: u16) -> bool {
    matches!(status, 429 | 499 | 500..=599)
}

/// The wait after the attempt `n`, from 0: half of the base for certain, the other half by the draw.
fn backoff_ms(n: u32, jitter_permille: u16) -> u64 {
    let base = (BACKOFF_BASE_MS << n.min(16)).min(BACKOFF_MAX_MS);
    let half = base / 2;
    base - half + half * u64::from(jitter_permille.min(999)) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANTHROPIC: Retry = Retry::Common { repeats_auth: false };
    const OPENAI: Retry = Retry::Common { repeats_auth: true };

    fn failed(retry: Retry) -> Failed<'static> {
        let timing = Timing { retry_after_ms: None, elapsed_ms: 2000, jitter_permille: 500 };
        Failed { retry, model: "m", body: "why", timing }
    }

    fn status(status: u16) -> Failure {
        Failure::Status { status, reason: "R".into() }
    }

    fn text(verdict: Verdict) -> (i64, String) {
        match verdict {
            Verdict::Fail(Outcome::Failed { code, message }) => (code, message),
            other => panic!("{other:?}"),
        }
    }

    fn after(failed: u32) -> Attempts {
        Attempts { failed, auth_repeated: false }
    }

    #[test]
    fn c34_passing_failures_are_tried_three_times() {
        let f = failed(ANTHROPIC);
        for passing in [429, 499, 500, 503, 529] {
            assert!(matches!(f.judge(&status(passing), after(0)), Verdict::Again { after_ms: 375, .. }));
            assert!(matches!(f.judge(&status(passing), after(1)), Verdict::Again { after_ms: 750, .. }));
            let (code, text) = text(f.judge(&status(passing), after(2)));
            assert_eq!(code, code::FAILED);
            assert_eq!(
                text,
                format!("llm: (m) exhausted retries: {passing} R: why (cumulative 2s, 3 attempts)")
            );
        }
    }

    #[test]
    fn other_statuses_end_the_turn_at_once() {
        for final_ in [400, 402, 408, 409, 413, 422, 302] {
            let (code, message) = text(failed(OPENAI).judge(&status(final_), after(0)));
            assert_eq!((code, message), (code::FAILED, format!("llm: (m) {final_} R: why")));
        }
        let (code, message) = text(failed(OPENAI).judge(&status(404), after(0)));
        assert_eq!(code, code::MODEL_NOT_FOUND);
        assert!(message.starts_with("llm model not found: (m) "), "{message}");
    }

    #[test]
    fn refused_credentials_are_tried_once_more_where_the_reference_does() {
        let openai = failed(OPENAI);
        let again = Attempts { failed: 0, auth_repeated: true };
        assert_eq!(openai.judge(&status(401), after(2)), Verdict::Again { after_ms: 0, attempts: again });
        assert_eq!(text(openai.judge(&status(403), again)), (code::AUTH, "llm auth: why".into()));
        assert_eq!(text(failed(ANTHROPIC).judge(&status(401), after(0))).0, code::AUTH);
    }

    #[test]
    fn a_token_that_cannot_be_had_ends_the_turn_at_once() {
        let failure = Failure::Auth { text: "not logged in".into() };
        for retry in [ANTHROPIC, OPENAI, Retry::Openrouter] {
            let told = text(failed(retry).judge(&failure, after(0)));
            assert_eq!(told, (code::AUTH, "llm auth: not logged in".into()));
        }
    }

    #[test]
    fn a_body_that_breaks_off_is_not_tried_again() {
        let failure = Failure::BodyRead { text: "cut".into() };
        let (_, message) = text(failed(OPENAI).judge(&failure, after(0)));
        assert_eq!(message, "llm: (m) body read: cut (cumulative 2s, 1 attempt)");
    }

    #[test]
    fn c03_an_error_wrapped_in_a_good_status_goes_by_its_inner_code() {
        let f = failed(OPENAI);
        assert!(matches!(f.judge_wrapped("429", "slow", after(0)), Verdict::Again { .. }));
        assert!(matches!(f.judge_wrapped("502", "up", after(1)), Verdict::Again { .. }));
        assert_eq!(text(f.judge_wrapped("unknown", "odd", after(0))).1, "llm: (m) odd");
    }

    #[test]
    fn openrouter_waits_as_long_as_it_asks_for_within_the_cap() {
        let mut f = failed(Retry::Openrouter);
        for (asked_ms, wait_ms) in [(5_000, 5_000), (60_000, 60_000), (3_601_000, 60_000), (0, 375)] {
            f.timing.retry_after_ms = Some(asked_ms);
            assert!(
                matches!(f.judge(&status(429), after(0)), Verdict::Again { after_ms, .. } if after_ms == wait_ms)
            );
        }
        f.timing.retry_after_ms = Some(5_000);
        assert!(matches!(f.judge(&status(502), after(0)), Verdict::Again { after_ms: 375, .. }));
        let overloaded =
            Failed { body: r#"{"error":{"metadata":{"error_type":"provider_overloaded"}}}"#, ..f };
        assert!(matches!(overloaded.judge(&status(503), after(0)), Verdict::Again { after_ms: 5_000, .. }));
        assert!(matches!(f.judge(&status(503), after(0)), Verdict::Again { after_ms: 375, .. }));
    }

    #[test]
    fn openrouter_failures_say_what_can_be_done() {
        let f = failed(Retry::Openrouter);
        let (code, message) = text(f.judge(&status(401), after(0)));
        assert!(code == code::AUTH && message.contains("401") && message.contains("static key rejected"));
        assert!(text(f.judge(&status(402), after(0))).1.contains("credits exhausted"));
        assert_eq!(text(f.judge(&status(403), after(0))), (code::FAILED, "llm: (m) 403 R: why".into()));
        assert_eq!(text(f.judge(&status(404), after(0))).0, code::MODEL_NOT_FOUND);
        let routing = Failed { body: NO_ENDPOINT, ..f };
        assert!(text(routing.judge(&status(404), after(0))).1.contains("no OpenRouter endpoint supports"));
        assert!(text(f.judge(&status(503), after(2))).1.contains("no OpenRouter endpoint supports"));
        assert!(text(f.judge(&status(429), after(2)))
            .1
            .contains("rate limited: why (cumulative 2s, 3 attempts)"));
    }

    #[test]
    fn the_back_off_doubles_to_its_cap() {
        let waits: Vec<u64> = (0..6).map(|n| backoff_ms(n, 0)).collect();
        assert_eq!(waits, [250, 500, 1000, 2000, 4000, 4000]);
        assert_eq!(backoff_ms(0, 999), 499);
    }
}
