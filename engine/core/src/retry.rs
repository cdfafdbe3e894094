//! What follows a failed attempt at the model's endpoint: another one, or the end of the turn.

use std::time::Duration;

use crate::acp::code;
use crate::record::{Failure, Outcome};
use crate::settings::Provider;

/// Attempts at one request before it is given up.
pub const ATTEMPTS_MAX: u32 = 3;
/// Back-off before the second attempt, in milliseconds; it doubles from there.
const BACKOFF_BASE_MS: u64 = 500;
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

/// What an attempt left behind, for the error's text.
#[derive(Clone, Copy, Debug)]
pub struct Failed<'a> {
    /// Who serves the model.
    pub provider: Provider,
    /// The model asked.
    pub model: &'a str,
    /// The first bytes of the body.
    pub body: &'a str,
    /// Milliseconds since the first attempt began.
    pub elapsed_ms: u64,
    /// The draw for the back-off, 0 to 999.
    pub jitter_permille: u16,
}

impl Failed<'_> {
    /// Judges `failure` after `before`.
    pub fn judge(&self, failure: &Failure, before: Attempts) -> Verdict {
        let now = Attempts { failed: before.failed + 1, ..before };
        match failure {
            Failure::Status { status: status @ (401 | 403), reason } => self.refused(*status, reason, before),
            Failure::Status { status: 404, reason } => self.fail(
                code::MODEL_NOT_FOUND,
                format!("llm model not found: ({}) 404 {reason}: {}", self.model, self.body),
            ),
            Failure::Status { status, reason } if is_passing(*status) => {
                let what = format!("exhausted retries: {status} {reason}: {}", self.body);
                self.again_or(now, what)
            }
            Failure::Transport { text } => self.again_or(now, format!("transport: {text}")),
            Failure::Status { status, reason } => self.llm(format!("{status} {reason}: {}", self.body)),
            Failure::BodyRead { text } => {
                self.llm(format!("body read: {text} ({})", self.cumulative(now.failed)))
            }
            Failure::TooLarge { text } | Failure::Unsendable { text } => self.llm(text.clone()),
        }
    }

    /// Judges an answer whose body is an error with `error_code`: some gateways wrap a passing failure in
    /// a good status.
    pub fn judge_wrapped(&self, error_code: &str, text: &str, before: Attempts) -> Verdict {
        let now = Attempts { failed: before.failed + 1, ..before };
        match error_code.parse::<u16>() {
            Ok(status) if is_passing(status) => self.again_or(now, text.to_owned()),
            _ => self.llm(text.to_owned()),
        }
    }

    /// Credentials were refused. OpenAI-shaped endpoints get one more series, Anthropic does not.
    fn refused(&self, status: u16, reason: &str, before: Attempts) -> Verdict {
        if self.provider == Provider::Openai && !before.auth_repeated {
            return Verdict::Again { after_ms: 0, attempts: Attempts { failed: 0, auth_repeated: true } };
        }
        let said = if self.body.trim().is_empty() { format!("{status} {reason}") } else { self.body.to_owned() };
        self.fail(code::AUTH, format!("llm auth: {said}"))
    }

    fn again_or(&self, now: Attempts, what: String) -> Verdict {
        if now.failed < ATTEMPTS_MAX {
            let after_ms = backoff_ms(now.failed - 1, self.jitter_permille);
            return Verdict::Again { after_ms, attempts: now };
        }
        self.llm(format!("{what} ({})", self.cumulative(now.failed)))
    }

    fn cumulative(&self, attempts: u32) -> String {
        let plural = if attempts == 1 { "" } else { "s" };
        format!("cumulative {:?}, {attempts} attempt{plural}", Duration::from_millis(self.elapsed_ms))
    }

    fn llm(&self, text: String) -> Verdict {
        self.fail(code::FAILED, format!("llm: ({}) {text}", self.model))
    }

    fn fail(&self, code: i64, message: String) -> Verdict {
        Verdict::Fail(Outcome::Failed { code, message })
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

    fn failed(provider: Provider) -> Failed<'static> {
        Failed { provider, model: "m", body: "why", elapsed_ms: 2000, jitter_permille: 500 }
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
        let f = failed(Provider::Anthropic);
        for passing in [429, 499, 500, 503, 529] {
            assert!(matches!(f.judge(&status(passing), after(0)), Verdict::Again { after_ms: 375, .. }));
            assert!(matches!(f.judge(&status(passing), after(1)), Verdict::Again { after_ms: 750, .. }));
            let (code, text) = text(f.judge(&status(passing), after(2)));
            assert_eq!(code, code::FAILED);
            assert_eq!(text, format!("llm: (m) exhausted retries: {passing} R: why (cumulative 2s, 3 attempts)"));
        }
    }

    #[test]
    fn other_statuses_end_the_turn_at_once() {
        for final_ in [400, 402, 408, 409, 413, 422, 302] {
            let (code, message) = text(failed(Provider::Openai).judge(&status(final_), after(0)));
            assert_eq!((code, message), (code::FAILED, format!("llm: (m) {final_} R: why")));
        }
        let (code, message) = text(failed(Provider::Openai).judge(&status(404), after(0)));
        assert_eq!(code, code::MODEL_NOT_FOUND);
        assert!(message.starts_with("llm model not found: (m) "), "{message}");
    }

    #[test]
    fn refused_credentials_are_tried_once_more_where_the_reference_does() {
        let openai = failed(Provider::Openai);
        let again = Attempts { failed: 0, auth_repeated: true };
        assert_eq!(openai.judge(&status(401), after(2)), Verdict::Again { after_ms: 0, attempts: again });
        assert_eq!(text(openai.judge(&status(403), again)), (code::AUTH, "llm auth: why".into()));
        assert_eq!(text(failed(Provider::Anthropic).judge(&status(401), after(0))).0, code::AUTH);
    }

    #[test]
    fn a_body_that_breaks_off_is_not_tried_again() {
        let failure = Failure::BodyRead { text: "cut".into() };
        let (_, message) = text(failed(Provider::Openai).judge(&failure, after(0)));
        assert_eq!(message, "llm: (m) body read: cut (cumulative 2s, 1 attempt)");
    }

    #[test]
    fn c03_an_error_wrapped_in_a_good_status_goes_by_its_inner_code() {
        let f = failed(Provider::Openai);
        assert!(matches!(f.judge_wrapped("429", "slow", after(0)), Verdict::Again { .. }));
        assert!(matches!(f.judge_wrapped("502", "up", after(1)), Verdict::Again { .. }));
        assert_eq!(text(f.judge_wrapped("unknown", "odd", after(0))).1, "llm: (m) odd");
    }

    #[test]
    fn the_back_off_doubles_to_its_cap() {
        let waits: Vec<u64> = (0..6).map(|n| backoff_ms(n, 0)).collect();
        assert_eq!(waits, [250, 500, 1000, 2000, 4000, 4000]);
        assert_eq!(backoff_ms(0, 999), 499);
    }
}
