//! Why a command of these groups did not succeed: one JSON line on stderr, and an exit code.

use std::io::{self, Write};

use serde_json::json;
use waxlog_nostr::build::BuildError;
use waxlog_nostr::client::http::HttpError;

/// A failure, by what a caller can do about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The command line or a value on it is wrong.
    #[error("{0}")]
    Usage(String),
    /// What was to be read or changed is not there.
    #[error("{0}")]
    NotFound(String),
    /// Somebody else has written in between.
    #[error("conflict: {0}")]
    Conflict(String),
    /// There is no proof of who this is, or a bad one.
    #[error("auth error: {0}")]
    Auth(String),
    /// The secret key cannot be read.
    #[error("key error: {0}")]
    Key(String),
    /// The relay refused, or could not be asked.
    #[error("{0}{hint}", hint = hint(.0))]
    Relay(#[from] HttpError),
    /// Anything else.
    #[error("{0}")]
    Other(String),
    /// Nobody reads stdout any more.
    #[error("stdout was closed")]
    BrokenPipe,
}

/// What may be wrong when a relay refuses an agent that has its owner's word.
fn hint(error: &HttpError) -> &'static str {
    match error {
        HttpError::Status { status: 403, .. } if std::env::var_os("BUZZ_AUTH_TAG").is_some() => {
            " (BUZZ_AUTH_TAG is set: the owner's tag may be stale or revoked; ask the owner for a new one)"
        }
        _ => "",
    }
}

impl Failure {
    /// The word for scripts.
    fn category(&self) -> &'static str {
        match self {
            Failure::Usage(_) => "user_error",
            Failure::NotFound(_) => "not_found",
            Failure::Conflict(_) => "conflict",
            Failure::Auth(_) | Failure::Relay(HttpError::Status { status: 401 | 403, .. }) => "auth_error",
            Failure::Key(_) => "key_error",
            Failure::Relay(HttpError::Status { .. }) => "relay_error",
            Failure::Relay(HttpError::Network { .. }) => "network_error",
            Failure::Relay(HttpError::DeliveryUnknown(_)) => "delivery_unknown",
            Failure::Relay(HttpError::Answer { .. }) | Failure::Other(_) | Failure::BrokenPipe => "error",
        }
    }

    /// The exit code.
    pub(crate) fn code(&self) -> i32 {
        match self.category() {
            "user_error" | "not_found" => 1,
            "network_error" | "relay_error" | "delivery_unknown" => 2,
            "auth_error" | "key_error" => 3,
            "conflict" => 5,
            _ if matches!(self, Failure::BrokenPipe) => 0,
            _ => 4,
        }
    }

    fn is_retryable(&self) -> bool {
        matches!(self, Failure::Relay(error) if error.is_retryable())
    }

    /// The line for stderr.
    pub(crate) fn line(&self) -> String {
        json!({"error": self.category(), "message": self.to_string(), "retryable": self.is_retryable()})
            .to_string()
    }

    /// Tells it on stderr.
    pub(crate) fn report(&self) {
        if !matches!(self, Failure::BrokenPipe) {
            // With stderr gone as well only the exit code is left.
            let _ = writeln!(io::stderr(), "{}", self.line());
        }
    }
}

/// Events that cannot be built end a command with code 4 unless it says otherwise: see [`as_usage`].
impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Failure {
        Failure::Other(error.to_string())
    }
}

impl From<io::Error> for Failure {
    /// A failed write to stdout.
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
            _ => Failure::Other(format!("cannot write to stdout: {error}")),
        }
    }
}

/// For `map_err` where a value that is wrong is the caller's slip.
pub(crate) fn as_usage(error: impl std::fmt::Display) -> Failure {
    Failure::Usage(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(status: u16) -> Failure {
        HttpError::Status { status, message: "m".into() }.into()
    }

    #[test]
    fn each_failure_has_its_word_its_code_and_whether_to_try_again() {
        let network = |retryable| HttpError::Network { text: "x".into(), retryable }.into();
        let strange = HttpError::Answer { url: "u".into(), wanted: "w", got: "g".into() };
        for (failure, category, code, retryable) in [
            (Failure::Usage("x".into()), "user_error", 1, false),
            (Failure::NotFound("x".into()), "not_found", 1, false),
            (Failure::Conflict("x".into()), "conflict", 5, false),
            (Failure::Auth("x".into()), "auth_error", 3, false),
            (Failure::Key("x".into()), "key_error", 3, false),
            (Failure::Other("x".into()), "error", 4, false),
            (strange.into(), "error", 4, false),
            (network(true), "network_error", 2, true),
            (network(false), "network_error", 2, false),
            (HttpError::DeliveryUnknown("x".into()).into(), "delivery_unknown", 2, false),
            (status(401), "auth_error", 3, false),
            (status(403), "auth_error", 3, false),
            (status(400), "relay_error", 2, false),
            (status(500), "relay_error", 2, false),
            (status(429), "relay_error", 2, true),
            (status(502), "relay_error", 2, true),
            (status(503), "relay_error", 2, true),
            (status(504), "relay_error", 2, true),
        ] {
            assert_eq!((failure.category(), failure.code()), (category, code), "{failure}");
            assert_eq!(failure.is_retryable(), retryable, "{failure}");
        }
    }

    #[test]
    fn the_line_is_one_object_whatever_the_text() {
        let line = Failure::Usage("a\n\"b\"".into()).line();
        assert_eq!(line, r#"{"error":"user_error","message":"a\n\"b\"","retryable":false}"#);
        assert!(status(401).line().contains("relay error 401: m"));
    }
}
