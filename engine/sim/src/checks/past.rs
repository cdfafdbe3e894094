//! The log as evidence: it replays without a difference, and gives back the exact bytes of each request.

use std::collections::BTreeMap;

use waxlog_core::evidence;
use waxlog_core::ledger::Ledger;
use waxlog_core::record::{Head, Record};
use waxlog_core::replay::Replay;
use waxlog_core::usage::{Tally, Total};

use crate::violation::{Invariant, Violation};

/// A replay that keeps up with the durable records.
#[derive(Debug, Default)]
pub(super) struct Past {
    replay: Replay,
    /// The bytes of the last round's request, from the evidence alone.
    previous: Vec<u8>,
    /// The bytes of the requests that may still be sent, by number.
    recorded: BTreeMap<u64, Vec<u8>>,
}

impl Past {
    /// Takes a record in; gives back the request that it records, if it does.
    pub(super) fn step(&mut self, record: &Record) -> Result<Option<Vec<u8>>, Violation> {
        self.replay.step(record);
        let latest = self.replay.turns().last().and_then(|turn| turn.difference.as_ref());
        if let Some(difference) = latest {
            return Err(differs(difference));
        }
        let (asked, evidence, previous) = match &record.head {
            Head::RoundAsked { asked, evidence, .. } => (*asked, evidence, self.previous.as_slice()),
            Head::SummaryAsked { asked, evidence, .. } => (*asked, evidence, &[][..]),
            _ => return Ok(None),
        };
        let request = evidence::rebuild(previous, evidence, &record.raw)
            .map_err(|e| Violation::new(Invariant::Evidence, e.to_string()))?;
        if matches!(record.head, Head::RoundAsked { .. }) {
            self.previous.clone_from(&request);
        }
        self.recorded.insert(asked, request.clone());
        Ok(Some(request))
    }

    /// A request leaves the process.
    pub(super) fn sent(&mut self, asked: u64, body: &[u8]) -> Result<(), Violation> {
        self.recorded = self.recorded.split_off(&asked);
        match self.recorded.get(&asked) {
            Some(bytes) if bytes == body => Ok(()),
            _ => {
                let sent = String::from_utf8_lossy(body);
                let detail = format!("request {asked} has other bytes than its evidence: {sent}");
                Err(Violation::new(Invariant::Evidence, detail))
            }
        }
    }
}

/// Replays a whole session.
pub(super) fn replay(records: &[Record]) -> Result<(), Violation> {
    let mut replay = Replay::default();
    records.iter().for_each(|record| replay.step(record));
    match replay.turns().iter().find_map(|turn| turn.difference.as_ref()) {
        Some(difference) => Err(differs(difference)),
        None => Ok(()),
    }
}

/// The sum over the turns of a session's ledger.
pub(super) fn ledger_sum(records: &[Record]) -> Tally {
    let mut ledger = Ledger::default();
    records.iter().for_each(|record| ledger.fold(record));
    let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (one, other) => one.or(other),
    };
    ledger.turns().iter().map(|turn| turn.tally).fold(Tally::default(), |a, b| Tally {
        input: sum(a.input, b.input),
        output: sum(a.output, b.output),
        cached: sum(a.cached, b.cached),
        total: Total::merge(a.total, b.total),
    })
}

fn differs(difference: &waxlog_core::replay::Difference) -> Violation {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (recorded, rebuilt) = (text(&difference.recorded), text(&difference.rebuilt));
    let detail = format!("{} differs\n  recorded {recorded}\n  rebuilt  {rebuilt}", difference.what);
    Violation::new(Invariant::Replay, detail)
}
