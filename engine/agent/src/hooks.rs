//! Hooks: tools of a server that are called for it to have a say, with little time and no right to fail a
//! turn.

use std::sync::Arc;
use std::time::Duration;

use futures_lite::future::or;
use serde_json::json;
use waxlog_core::mcp::ServerEvent;
use waxlog_core::record::{Hook, HookOutcome};

use crate::mcp::{cancel_pair, CallOutcome, CallRequest, Server};
use crate::scrub::Scrubber;

/// A bound on what is left behind by a hook that was too slow: its late answer is waited for by nobody.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3600);

/// What came of one hook.
#[derive(Debug)]
pub struct Ran {
    outcome: Option<CallOutcome>,
    /// What happened to the server on the way.
    pub events: Vec<ServerEvent>,
}

/// Runs `hook` on `server`. A hook over its time goes on in the server, and only our wait for it ends.
pub async fn run(server: Arc<Server>, hook: Hook, timeout: Duration) -> Ran {
    // The source must outlive the call: dropping it would take the call back.
    let (_source, cancel) = cancel_pair();
    let request = CallRequest {
        tool: hook.as_str().to_owned(),
        arguments: json!({}),
        cancel,
        timeout: FORGOTTEN_AFTER,
    };
    let call = async {
        let report = server.call(request).await;
        Ran { outcome: Some(report.outcome), events: report.events }
    };
    let late = async {
        async_std::task::sleep(timeout).await;
        Ran { outcome: None, events: Vec::new() }
    };
    or(call, late).await
}

impl Ran {
    /// The form in which it is recorded; an answer's line goes to the end of `lines`.
    pub fn record(self, scrubber: &Scrubber, lines: &mut Vec<u8>) -> HookOutcome {
        let failed = |text: &str| HookOutcome::Failed { text: text.to_owned() };
        match self.outcome {
            None | Some(CallOutcome::TimedOut { .. }) => HookOutcome::TimedOut,
            Some(CallOutcome::Returned { raw_line }) => {
                let line = scrubber.scrub(raw_line);
                lines.extend_from_slice(&line);
                HookOutcome::Returned { bytes: line.len() }
            }
            Some(CallOutcome::TransportFailed { reason: text } | CallOutcome::Unavailable { text }) => {
                failed(&scrubber.scrub_text(text))
            }
            Some(CallOutcome::Cancelled) => failed("cancelled"),
        }
    }
}
