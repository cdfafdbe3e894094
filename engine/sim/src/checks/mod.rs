//! The invariants. They see what a run leaves outside of the driver: the records as they become durable,
//! and the effects as they are performed. Nothing here trusts the session that is being driven.

mod money;
mod past;
mod steers;
mod wire;
mod witness;

use std::collections::BTreeMap;

use waxlog_core::record::{Head, Record};
use waxlog_core::session::Effect;
use waxlog_core::usage::Usage;

use self::money::Money;
use self::past::Past;
use self::steers::Steers;
use self::witness::Witness;
use crate::log::{Stored, Stream};
use crate::violation::{Invariant, Violation};

pub use wire::check_request;

/// What the checks must know of the world to judge a record.
#[derive(Clone, Copy, Debug)]
pub struct Truth<'a> {
    /// What the model's endpoint means the record's body to cost.
    pub bill: Usage,
    /// The words of each steer that was sent, by the id of its request.
    pub steers: &'a BTreeMap<String, String>,
}

/// All checks that run beside a run.
#[derive(Debug, Default)]
pub struct Checks {
    witness: Witness,
    past: Past,
    money: Money,
    steers: Steers,
    rounds: u64,
}

impl Checks {
    /// Requests asked so far.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// A record has become durable.
    pub fn durable(&mut self, row: &Stored, truth: Truth<'_>) -> Result<(), Violation> {
        if row.stream != Stream::Session {
            return Ok(());
        }
        let record = row.decode().map_err(|e| Violation::new(Invariant::Replay, e.to_string()))?;
        if let Some(request) = self.past.step(&record)? {
            let dialect = dialect(&record);
            check_request(dialect, &request)
                .map_err(|why| Violation::new(Invariant::Requests, describe(&why, &request)))?;
            self.rounds += 1;
            self.steers.asked(&record, &request)?;
        }
        self.steers.before_fold(&record, self.witness.session(), truth.steers);
        self.witness.fold(&record);
        self.money.count(&record, truth.bill, self.witness.session())
    }

    /// An effect is about to be performed.
    pub fn acts(&mut self, effect: &Effect) -> Result<(), Violation> {
        self.witness.acts(effect)?;
        match effect {
            Effect::Ask { asked, body, .. } => self.past.sent(*asked, &body.to_vec()),
            _ => Ok(()),
        }
    }

    /// The process has died: what it had still to do is not done.
    pub fn killed(&mut self) {
        self.witness.forget();
    }

    /// The run is over: the sums over the whole log, and a replay of it from its bytes.
    pub fn finish(&self, rows: &[Stored]) -> Result<(), Violation> {
        let own = rows.iter().filter(|row| row.stream == Stream::Session).map(Stored::decode);
        let records: Vec<Record> =
            own.collect::<Result<_, _>>().map_err(|e| Violation::new(Invariant::Replay, e.to_string()))?;
        past::replay(&records)?;
        self.money.finish(&records)
    }
}

fn dialect(record: &Record) -> waxlog_core::dialect::Dialect {
    match &record.head {
        Head::RoundAsked { dialect, .. } | Head::SummaryAsked { dialect, .. } => *dialect,
        _ => waxlog_core::dialect::Dialect::Chat,
    }
}

fn describe(why: &str, request: &[u8]) -> String {
    format!("{why} in {}", String::from_utf8_lossy(request))
}
