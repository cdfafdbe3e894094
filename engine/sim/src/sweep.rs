//! Many seeds, side by side.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;

use crate::life::{run, Report};
use crate::trace::Trace;
use crate::violation::Violation;
use crate::world::Sabotage;

/// Failing seeds that a sweep looks into; the rest are only counted.
const SHOWN_MAX: usize = 5;

/// A seed that broke a rule.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// The rule.
    pub violation: Violation,
}

/// What came of a sweep.
#[derive(Clone, Debug, Default)]
pub struct Swept {
    /// Seeds without a violation.
    pub passed: u64,
    /// Seeds with one.
    pub failed: u64,
    /// The first failures by seed, few of them.
    pub failures: Vec<Failure>,
    /// What the runs that passed were made of, together.
    pub sum: Report,
}

/// Runs `count` seeds from `from` on, on all processors.
pub fn sweep(from: u64, count: u64, sabotage: Sabotage) -> Swept {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicU64::new(0);
    let swept = Mutex::new(Swept::default());
    let work = || loop {
        let offset = next.fetch_add(1, Ordering::Relaxed);
        if offset >= count {
            return;
        }
        let seed = from.wrapping_add(offset);
        let result = run(seed, sabotage, &mut Trace::off());
        let mut swept = swept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        swept.add(seed, result);
    };
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    swept.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Swept {
    fn add(&mut self, seed: u64, result: Result<Report, Violation>) {
        match result {
            Ok(report) => {
                self.passed += 1;
                for (kind, count) in report.records {
                    *self.sum.records.entry(kind).or_default() += count;
                }
                self.sum.requests += report.requests;
                self.sum.kills += report.kills;
            }
            Err(violation) => {
                self.failed += 1;
                self.failures.push(Failure { seed, violation });
                self.failures.sort_by_key(|failure| failure.seed);
                self.failures.truncate(SHOWN_MAX);
            }
        }
    }
}
