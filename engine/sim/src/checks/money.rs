//! Tokens: what the session says it has cost, against what the endpoint charged for each answer that the
//! log holds.

use waxlog_core::record::{Head, Record};
use waxlog_core::session::Session;
use waxlog_core::usage::{Tally, Total, Usage};

use super::past::ledger_sum;
use crate::violation::{Invariant, Violation};

/// The bill so far, summed without the core's help.
#[derive(Debug, Default)]
pub(super) struct Money {
    charged: Vec<Usage>,
    before: Tally,
}

impl Money {
    /// Counts a record and compares with what the session says after it.
    pub(super) fn count(
        &mut self,
        record: &Record,
        bill: Usage,
        session: Option<&Session>,
    ) -> Result<(), Violation> {
        if matches!(record.head, Head::RoundAnswered { .. }) {
            self.charged.push(bill);
        }
        let Some(now) = session.map(Session::tally) else { return Ok(()) };
        let charged = self.sum();
        if now != charged {
            return Err(wrong(format!("the session counts {now:?}, charged were {charged:?}")));
        }
        let fell = now.input < self.before.input
            || now.output < self.before.output
            || now.cached < self.before.cached;
        let total_fell = match (self.before.total, now.total) {
            (Total::Exact(before), Total::Exact(now)) => now < before,
            (Total::Unknown, Total::Exact(_)) => true,
            (before, now) => now == Total::Unseen && before != Total::Unseen,
        };
        if fell || total_fell {
            return Err(wrong(format!("usage fell from {:?} to {now:?}", self.before)));
        }
        self.before = now;
        Ok(())
    }

    /// Compares with the ledger of the whole log.
    pub(super) fn finish(&self, records: &[Record]) -> Result<(), Violation> {
        let (ledger, charged) = (ledger_sum(records), self.sum());
        if ledger == charged {
            return Ok(());
        }
        Err(wrong(format!("the ledger counts {ledger:?}, charged were {charged:?}")))
    }

    fn sum(&self) -> Tally {
        let sum = |part: fn(&Usage) -> Option<u64>| {
            self.charged.iter().filter_map(part).reduce(|a, b| a.saturating_add(b))
        };
        let reported = || self.charged.iter().filter(|usage| usage.input.is_some() || usage.output.is_some());
        let totals: Option<u64> = reported().try_fold(0u64, |sum, usage| sum.checked_add(usage.total?));
        Tally {
            input: sum(|usage| usage.input),
            output: sum(|usage| usage.output),
            cached: sum(|usage| usage.cached),
            total: match totals {
                None => Total::Unknown,
                Some(_) if reported().next().is_none() => Total::Unseen,
                Some(sum) => Total::Exact(sum),
            },
        }
    }
}

fn wrong(detail: String) -> Violation {
    Violation::new(Invariant::Usage, detail)
}
