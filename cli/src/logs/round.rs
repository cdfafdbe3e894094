//! `waxlog log show SESSION --round N`: what one round asked, got and did.
//!
//! The request comes from the evidence records alone: no encoder and no fold has a part in it, so what is
//! shown is what was sent, whatever this version would send today.

use std::io::Write;

use waxlog_core::evidence::{self, Evidence};
use waxlog_core::record::{Head, Record};

use super::summary;
use crate::failure::Failure;
use crate::home::{HomeOption, OpenLog};
use crate::readable::pretty;
use crate::session::records;

/// A round with all that belongs to it.
struct Round {
    /// The exact bytes of its request.
    request: Vec<u8>,
    /// Its records, in order; the first is the question.
    records: Vec<Record>,
}

/// The exact bytes of the session's request `number`.
pub(crate) fn request_bytes(log: &OpenLog, session: &str, number: u64) -> Result<Vec<u8>, Failure> {
    find(log, session, number).map(|round| round.request)
}

pub(super) fn request(
    home: &HomeOption,
    session: &str,
    number: u64,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let request = request_bytes(&home.log_of_session(session)?, session, number)?;
    Ok(out.write_all(&request)?)
}

pub(super) fn show(
    home: &HomeOption,
    session: &str,
    number: u64,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let round = find(&home.log_of_session(session)?, session, number)?;
    for record in &round.records {
        write_record(record, &round.request, out)?;
    }
    Ok(())
}

/// Reads the session up to the round after `number`, with one request in memory at a time.
fn find(log: &OpenLog, session: &str, number: u64) -> Result<Round, Failure> {
    let mut previous = Vec::new();
    let mut found: Option<Round> = None;
    let mut rounds = 0;
    for record in records(log, session)? {
        let record = record?;
        let Some(known) = record.known()? else { continue };
        if let Some((asked, evidence, alone)) = question(&known.head) {
            if found.is_some() {
                break;
            }
            rounds = asked;
            let past = if alone { &[][..] } else { &previous };
            let request = evidence::rebuild(past, evidence, &known.raw)
                .map_err(|error| Failure::Check(format!("round {asked} of {session}: {error}")))?;
            if asked == number {
                found = Some(Round { request, records: vec![known.clone()] });
            } else if !alone {
                previous = request;
            }
        } else if let Some(round) = &mut found {
            if matches!(known.head, Head::TurnPrompted { .. }) {
                break;
            }
            round.records.push(known.clone());
        }
    }
    found.ok_or_else(|| {
        Failure::Check(format!("session {session} has no round {number}: its log holds rounds 1 to {rounds}"))
    })
}

/// The number and evidence of a request, and whether it stands alone.
fn question(head: &Head) -> Option<(u64, &Evidence, bool)> {
    match head {
        Head::RoundAsked { asked, evidence, .. } => Some((*asked, evidence, false)),
        Head::SummaryAsked { asked, evidence, .. } => Some((*asked, evidence, true)),
        _ => None,
    }
}

fn write_record(record: &Record, request: &[u8], out: &mut dyn Write) -> Result<(), Failure> {
    let is_question = question(&record.head).is_some();
    let body = if is_question { request } else { record.raw.as_slice() };
    writeln!(out, "{}: {}", record.encode_head().0, summary::summary(record))?;
    if let Some((_, evidence, _)) = question(&record.head) {
        writeln!(out, "sha256 {}", evidence.sha256)?;
    }
    if !body.is_empty() {
        writeln!(out, "{}", pretty(body))?;
    }
    Ok(writeln!(out)?)
}
