//! `waxlog log show SESSION`: the records of a session, a line each.

use std::io::Write;

use waxlog_core::dialect::{decode, Answer, Dialect};
use waxlog_core::record::{Head, Record, RecordError};

use super::summary::summary;
use crate::failure::Failure;
use crate::home::HomeOption;
use crate::session::{records, SessionRecord};
use crate::table::{rfc3339, Table};

pub(super) fn show(home: &HomeOption, session: &str, out: &mut dyn Write) -> Result<(), Failure> {
    let log = home.log_of_session(session)?;
    let mut table = Table::new(&["#seq", "time", "kind", "#head", "#raw", "what"]);
    let mut dialect = None;
    for record in records(&log, session)? {
        let record = record?;
        dialect = record.record.as_ref().ok().and_then(asked_in).or(dialect);
        let stored = &record.stored;
        table.row([
            stored.position.sequence.to_string(),
            rfc3339(stored.time_ms),
            stored.kind.clone(),
            stored.head.len().to_string(),
            stored.raw.len().to_string(),
            what(&record, dialect),
        ]);
    }
    table.write(out)?;
    log.expect_whole()
}

/// The wire that an answer to a request comes in.
fn asked_in(record: &Record) -> Option<Dialect> {
    match record.head {
        Head::RoundAsked { dialect, .. } | Head::SummaryAsked { dialect, .. } => Some(dialect),
        _ => None,
    }
}

/// Whether an answer is silence: it neither says anything nor asks for a call.
fn is_silent(record: &Record, dialect: Dialect) -> bool {
    let Head::RoundAnswered { .. } = record.head else { return false };
    let silent = |answer: &Answer| answer.text.trim().is_empty() && answer.calls.is_empty();
    decode(dialect, &record.raw).answer.as_ref().is_ok_and(silent)
}

fn what(record: &SessionRecord, dialect: Option<Dialect>) -> String {
    match &record.record {
        Ok(known) if dialect.is_some_and(|dialect| is_silent(known, dialect)) => {
            format!("{}; no output", summary(known))
        }
        Ok(known) => summary(known),
        Err(RecordError::Unknown { version, .. }) => {
            format!("(a kind of another release, version {version}; kept and passed over)")
        }
        Err(malformed) => format!("(unreadable: {malformed})"),
    }
}
