//! Steers: what a client was told is queued must stand in the next request, as the client wrote it.
//!
//! A cancel (also as the answer to a question), or the closing of the session, takes back what its turn had queued; and a history over its
//! budget or its window may lose a steer before it was ever sent, which the log shows. Nothing else excuses.

use std::collections::BTreeMap;

use waxlog_core::history::Item;
use waxlog_core::record::{Head, PermissionAnswer, Record};
use waxlog_core::session::Session;

use crate::violation::{Invariant, Violation};

/// The steers that the model has not seen.
#[derive(Debug, Default)]
pub(super) struct Steers {
    waiting: Vec<String>,
    cancelled: bool,
}

impl Steers {
    /// Takes a record in, before the session `before` does.
    pub(super) fn before_fold(
        &mut self,
        record: &Record,
        before: Option<&Session>,
        sent: &BTreeMap<String, String>,
    ) {
        match &record.head {
            Head::TurnPrompted { .. } => self.cancelled = false,
            Head::SteerAccepted { id, .. } if !self.cancelled => {
                self.waiting.extend(sent.get(id.as_json()).cloned());
            }
            Head::CancelRequested { .. }
            | Head::CloseRequested { .. }
            | Head::DeleteRequested { .. }
            | Head::PermissionAnswered { answer: PermissionAnswer::Cancelled, .. }
                if before.is_some_and(Session::is_busy) =>
            {
                self.cancelled = true;
                self.waiting.clear();
            }
            Head::HistoryTruncated { items, .. } => self.lost(before, *items),
            // What the summary was not shown is gone, but for the last words.
            Head::HandoffDone { .. } => self.lost(before, usize::MAX),
            _ => {}
        }
    }

    /// The oldest `count` items leave the history; the last thing said stays in any case.
    fn lost(&mut self, before: Option<&Session>, count: usize) {
        let Some(history) = before.map(Session::history) else { return };
        let gone = &history.items()[..count.min(history.items().len())];
        let last = history.last_user().map(Item::user_text).unwrap_or_default();
        self.waiting
            .retain(|words| last.contains(words.as_str()) || !gone.iter().any(|item| is(item, words)));
    }

    /// A request is asked: the steers that wait must stand in it.
    pub(super) fn asked(&mut self, record: &Record, request: &[u8]) -> Result<(), Violation> {
        let request = String::from_utf8_lossy(request);
        let is_summary = matches!(record.head, Head::SummaryAsked { .. });
        self.waiting.retain(|words| !request.contains(words.as_str()));
        match self.waiting.first() {
            // A summary shows what fits; what it does not show must come with the round after it.
            Some(words) if !is_summary => {
                let detail = format!("{words} is not in the request after it was accepted: {request}");
                Err(Violation::new(Invariant::Steers, detail))
            }
            _ => Ok(()),
        }
    }
}

fn is(item: &Item, words: &str) -> bool {
    item.user_text().contains(words)
}
