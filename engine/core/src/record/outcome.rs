//! How attempts, calls, hooks and turns end.

use serde::{Deserialize, Serialize};

/// Why an attempt gave no good answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// The endpoint answered with another status than 2xx.
    Status {
        /// The status.
        status: u16,
        /// Its reason phrase.
        reason: String,
    },
    /// No token could be had, so nothing was sent.
    Auth {
        /// Why, and what to do.
        text: String,
    },
    /// Nothing came back: no connection, a time-out, a reset.
    Transport {
        /// What the library said, without secrets.
        text: String,
    },
    /// The request cannot be sent at all (a bad URL).
    Unsendable {
        /// Why.
        text: String,
    },
    /// A good status whose body broke off.
    BodyRead {
        /// What the library said.
        text: String,
    },
    /// A good status whose body is over the cap.
    TooLarge {
        /// The size, or what is known of it.
        text: String,
    },
}

/// One call of a [`super::Head::CallsStarted`]; its arguments stand in the answer that asked for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedCall {
    /// Which call of the round, from 0.
    pub index: usize,
    /// Its id.
    pub id: String,
    /// The qualified tool name.
    pub name: String,
    /// The server's name.
    pub server: String,
}

/// A point at which servers may have a say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hook {
    /// The model ended its turn.
    #[serde(rename = "_Stop")]
    Stop,
    /// A summary is about to replace the history.
    #[serde(rename = "_PostCompact")]
    PostCompact,
}

impl Hook {
    /// The bare tool name.
    pub fn as_str(self) -> &'static str {
        match self {
            Hook::Stop => "_Stop",
            Hook::PostCompact => "_PostCompact",
        }
    }
}

/// What came of one server's hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookOutcome {
    /// It answered; its line has so many bytes of the record's raw part.
    Returned {
        /// Length of the line.
        bytes: usize,
    },
    /// It was too slow. It may still be running.
    TimedOut,
    /// It could not be called.
    Failed {
        /// Why.
        text: String,
    },
}

/// One objection to the end of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objection {
    /// Who objects.
    pub server: String,
    /// The words.
    pub text: String,
    /// Its number within the session, from 0; part of the call id that it gets.
    pub ordinal: u64,
}

/// How a started call ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// The server answered; the line is the record's raw part.
    Returned,
    /// The server went away while the call was in flight.
    TransportFailed {
        /// What was seen.
        text: String,
    },
    /// It took too long, and its server was killed.
    TimedOut {
        /// The limit in seconds.
        after_secs: u64,
    },
    /// It was cancelled.
    Cancelled,
    /// It was never sent: the server is recovering, given up, or lacks the tool now.
    Unavailable {
        /// Which of these.
        text: String,
    },
    /// The agent was stopped while it ran, or before it could start.
    Interrupted,
}

/// What the client said to the question whether a call may run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionAnswer {
    /// Yes, this time.
    AllowOnce,
    /// Yes, and the same tool for the rest of the session.
    AllowAlways,
    /// No, this time.
    RejectOnce,
    /// No, nor the same tool for the rest of the session.
    RejectAlways,
    /// The turn was taken back before anybody answered.
    Cancelled,
    /// An error, or nothing that means one of the above: no permission.
    Unusable {
        /// What is wrong with it.
        text: String,
    },
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// With a stop reason.
    Stopped(StopReason),
    /// With an error.
    Failed {
        /// The error code in the harness's numbers.
        code: i64,
        /// The text told.
        message: String,
    },
}

/// The stop reasons of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model was done.
    EndTurn,
    /// It hit its output limit.
    MaxTokens,
    /// It refused.
    Refusal,
    /// The round cap was reached.
    MaxTurnRequests,
    /// The client cancelled.
    Cancelled,
}

impl StopReason {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            StopReason::EndTurn => "end_turn",
            StopReason::MaxTokens => "max_tokens",
            StopReason::Refusal => "refusal",
            StopReason::MaxTurnRequests => "max_turn_requests",
            StopReason::Cancelled => "cancelled",
        }
    }
}
