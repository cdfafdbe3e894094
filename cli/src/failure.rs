//! Why a command did not succeed, and the exit code that scripts see.

use std::io::{self, Write};

use waxlog_store::jsonl::JsonlError;
use waxlog_store::{LogError, OpenError};

/// A command's failure. Its text is one line for stderr.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A check failed, or what was asked for is not there.
    #[error("waxlog: {0}")]
    Check(String),
    /// The set-up is wrong: a folder, a lock, a version.
    #[error("waxlog: {0}")]
    SetUp(String),
    /// The command line is wrong; the text is the parser's, with its hints.
    #[error("{0}")]
    Usage(String),
    /// The form in which the linked agent reports what it cannot do.
    #[error("Error: {0}")]
    Linked(String),
    /// An agent that could not start.
    #[error("the agent did not start")]
    AgentStart,
    /// A command of the groups on a relay.
    #[error("{}", .0.line())]
    Group(crate::buzz::Failure),
    /// One whose exit code says it; what else there is to say was said.
    #[error("exit code {0}")]
    Said(u8),
    /// Nobody reads stdout any more, which ends a command early but is no error.
    #[error("waxlog: stdout was closed")]
    BrokenPipe,
}

impl Failure {
    /// The exit code.
    pub(crate) fn code(&self) -> i32 {
        match self {
            Failure::BrokenPipe => 0,
            Failure::Group(failure) => failure.code(),
            Failure::Said(code) => i32::from(*code),
            Failure::Check(_) | Failure::Linked(_) => 1,
            Failure::SetUp(_) | Failure::Usage(_) | Failure::AgentStart => 2,
        }
    }

    /// Tells it on stderr.
    pub(crate) fn report(&self) {
        if let Failure::Group(failure) = self {
            return failure.report();
        }
        // An agent's reason stands in the operator's log already.
        if !matches!(self, Failure::AgentStart | Failure::Said(_) | Failure::BrokenPipe) {
            // With stderr gone as well only the exit code is left.
            let _ = writeln!(io::stderr(), "{self}");
        }
    }

    /// An I/O error of something else than stdout.
    pub(crate) fn io(what: impl std::fmt::Display, error: &io::Error) -> Failure {
        let text = format!("{what}: {error}");
        match error.kind() {
            io::ErrorKind::NotFound => Failure::Check(text),
            _ => Failure::SetUp(text),
        }
    }
}

/// A failed write to stdout: every other use of files says itself what it did.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
            _ => Failure::io("cannot write to stdout", &error),
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Failure {
        match error {
            OpenError::NotALog { .. } | OpenError::Damaged(_) => Failure::Check(error.to_string()),
            OpenError::Log(error) => error.into(),
            other => Failure::SetUp(other.to_string()),
        }
    }
}

impl From<LogError> for Failure {
    fn from(error: LogError) -> Failure {
        Failure::Check(error.to_string())
    }
}

impl From<JsonlError> for Failure {
    fn from(error: JsonlError) -> Failure {
        match error {
            JsonlError::Log(error) => error.into(),
            JsonlError::Open(error) => error.into(),
            other => Failure::Check(other.to_string()),
        }
    }
}
