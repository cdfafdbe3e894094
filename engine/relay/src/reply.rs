//! What the relay answers, in the exact texts that clients read.

use std::borrow::Cow;
use std::sync::Arc;

use waxlog_nostr::Event;

use crate::live::Live;

/// Why a channel cannot be read or written by the asker. Clients compare the whole text.
pub const NOT_A_MEMBER: &str = "restricted: not a channel member";
/// Why a live subscription ended. Clients compare the whole text.
pub const ACCESS_REVOKED: &str = "restricted: channel access revoked";
/// What a client learns of a failure inside; the log has the rest.
pub const INTERNAL: &str = "error: internal server error";

/// The answer to a submission: the `OK` frame's last two fields, and the status over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Whether the event is taken.
    pub accepted: bool,
    /// The text, with its prefix.
    pub message: Cow<'static, str>,
    /// The HTTP status.
    pub status: u16,
}

impl Reply {
    /// Taken, without a text.
    pub fn ok() -> Self {
        Self::accepted("")
    }

    /// Taken, with a text.
    pub fn accepted(message: impl Into<Cow<'static, str>>) -> Self {
        Self { accepted: true, message: message.into(), status: 200 }
    }

    /// Not taken, for a fault of the event or of the sender's rights.
    pub fn refused(message: impl Into<Cow<'static, str>>) -> Self {
        Self { accepted: false, message: message.into(), status: 400 }
    }

    /// Not taken: the sender is not who may send this.
    pub fn forbidden(message: impl Into<Cow<'static, str>>) -> Self {
        Self { accepted: false, message: message.into(), status: 403 }
    }

    /// Not taken: too many in too short a time.
    pub fn rate_limited(message: impl Into<Cow<'static, str>>) -> Self {
        Self { accepted: false, message: message.into(), status: 429 }
    }

    /// Not taken and known already; over HTTP an answer, no failure.
    pub fn known(message: impl Into<Cow<'static, str>>) -> Self {
        Self { accepted: false, message: message.into(), status: 200 }
    }

    /// Not taken, because of a failure inside.
    pub fn internal() -> Self {
        Self { accepted: false, message: INTERNAL.into(), status: 500 }
    }
}

/// The answer to a read that is not given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The text of `CLOSED`, or of the HTTP error.
    pub message: Cow<'static, str>,
    /// The HTTP status.
    pub status: u16,
}

impl Refusal {
    /// A refusal by a gate.
    pub fn restricted(message: impl Into<Cow<'static, str>>) -> Self {
        Self { message: message.into(), status: 403 }
    }

    /// A request that cannot be answered as it is.
    pub fn bad_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self { message: message.into(), status: 400 }
    }

    /// A failure inside.
    pub fn internal() -> Self {
        Self { message: INTERNAL.into(), status: 500 }
    }
}

/// An event that is what it says it is and may be looked at by the writer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    pub(crate) event: Event,
    /// The event as JSON, for live subscriptions.
    pub(crate) json: Arc<str>,
}

impl Checked {
    /// The event.
    pub fn event(&self) -> &Event {
        &self.event
    }
}

/// A place in the order of writes. Tickets grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub(crate) u64);

/// What came of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// The answer. It may go out only when the ticket is settled.
    pub reply: Reply,
    /// What live subscriptions are told, once the ticket is settled.
    pub live: Vec<Live>,
    /// What [`crate::Desk::settle`] must have covered first; none if nothing was written.
    pub ticket: Option<Ticket>,
}

impl Submission {
    /// An answer that wrote nothing.
    pub(crate) fn just(reply: Reply) -> Self {
        Self { reply, live: Vec::new(), ticket: None }
    }
}
