//! A call: what is asked, what comes of it, and what may end the wait for it.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures_lite::future::or;
use serde_json::Value;
use waxlog_core::mcp::ServerEvent;

use super::cancel::CancelSignal;

/// A call to make.
#[derive(Debug)]
pub struct CallRequest {
    /// The tool's name towards the server.
    pub tool: String,
    /// An object, or null for none.
    pub arguments: Value,
    /// Says when the client takes the call back.
    pub cancel: CancelSignal,
    /// How long the whole call may take, a restart of the server included.
    pub timeout: Duration,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// The server answered; what it means is for [`waxlog_core::mcp::shape_result`] to say.
    Returned {
        /// The answer, byte for byte, without its line feed.
        raw_line: Vec<u8>,
    },
    /// The server went away with the call; its effects are unknown.
    TransportFailed {
        /// How that showed.
        reason: String,
    },
    /// It took too long. If it was running, the server is killed.
    TimedOut {
        /// The limit, in seconds.
        after_secs: u64,
    },
    /// The client took it back. The server lives on.
    Cancelled,
    /// It was not sent.
    Unavailable {
        /// Why, for the model to read.
        text: String,
    },
}

/// A call's outcome and what happened to the server on the way, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallReport {
    /// What came of the call.
    pub outcome: CallOutcome,
    /// To be recorded before the outcome.
    pub events: Vec<ServerEvent>,
}

/// What ends the wait for an answer from our side.
pub(super) enum Stop {
    Cancelled,
    TimedOut,
}

/// Runs `work` until it is done, the call is cancelled or its time is up. A cancel wins over whatever comes
/// at the same moment; the timer loses to it.
pub(super) async fn guard<T>(
    request: &CallRequest,
    timer: Pin<&mut impl Future<Output = ()>>,
    work: impl Future<Output = T>,
) -> Result<T, Stop> {
    let cancelled = async {
        request.cancel.cancelled().await;
        Err(Stop::Cancelled)
    };
    let done = async { Ok(work.await) };
    let late = async {
        timer.await;
        Err(if request.cancel.is_cancelled() { Stop::Cancelled } else { Stop::TimedOut })
    };
    or(or(cancelled, done), late).await
}

/// The outcome of a call that was stopped before it was sent.
pub(super) fn stopped(stop: Stop, request: &CallRequest) -> CallOutcome {
    match stop {
        Stop::Cancelled => CallOutcome::Cancelled,
        Stop::TimedOut => CallOutcome::TimedOut { after_secs: request.timeout.as_secs() },
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::pin::pin;

    use async_std::task;

    use super::super::cancel::cancel_pair;
    use super::*;

    /// Which of answer, cancel and timer counts, of those that are there.
    fn first(answered: bool, cancelled: bool, late: bool) -> &'static str {
        let (source, cancel) = cancel_pair();
        if cancelled {
            source.cancel();
        }
        let request =
            CallRequest { tool: "t".to_owned(), arguments: Value::Null, cancel, timeout: Duration::ZERO };
        let when = |there: bool| async move {
            if there {
                ready(()).await
            } else {
                pending().await
            }
        };
        match task::block_on(guard(&request, pin!(when(late)), when(answered))) {
            Ok(()) => "answered",
            Err(Stop::Cancelled) => "cancelled",
            Err(Stop::TimedOut) => "timed out",
        }
    }

    #[test]
    fn a_cancel_wins_over_an_answer_and_an_answer_over_the_timer() {
        assert_eq!(first(true, true, true), "cancelled");
        assert_eq!(first(false, true, true), "cancelled");
        assert_eq!(first(true, true, false), "cancelled");
        assert_eq!(first(true, false, true), "answered");
        assert_eq!(first(false, false, true), "timed out");
    }
}
