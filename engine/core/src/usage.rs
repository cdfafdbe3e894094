//! Token accounting: what one response reported, and the sums over a turn and a session.
//!
//! Categories saturate; the total is only ever what providers said, and one response without it makes
//! the sum unknown for good. Nothing is derived: an unknown number stays unknown, it does not become 0.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What one model response said about its tokens. `None` is "not reported", which differs from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input tokens, cached ones included.
    pub input: Option<u64>,
    /// Output tokens.
    pub output: Option<u64>,
    /// The part of `input` that came from the provider's cache.
    pub cached: Option<u64>,
    /// The provider's own total.
    pub total: Option<u64>,
}

impl Usage {
    /// Whether the response counts: it reported input or output.
    pub fn is_reported(&self) -> bool {
        self.input.is_some() || self.output.is_some()
    }
}

/// A non-negative JSON integer, or nothing: strings, floats, negative and null count as absent.
pub fn count(value: Option<&Value>) -> Option<u64> {
    value.and_then(Value::as_u64)
}

/// A sum of provider totals in three states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Total {
    /// No usage-bearing response so far.
    #[default]
    Unseen,
    /// Every usage-bearing response carried a total.
    Exact(u64),
    /// One lacked it, or the sum overflowed. Permanent.
    Unknown,
}

impl Total {
    /// The state after one more usage-bearing response.
    pub fn fold(self, total: Option<u64>) -> Total {
        match (self, total) {
            (Total::Unknown, _) | (_, None) => Total::Unknown,
            (Total::Unseen, Some(n)) => Total::Exact(n),
            (Total::Exact(a), Some(n)) => a.checked_add(n).map_or(Total::Unknown, Total::Exact),
        }
    }

    /// The state of two spans, one after the other.
    pub fn merge(self, later: Total) -> Total {
        match later {
            Total::Unseen => self,
            Total::Exact(n) => self.fold(Some(n)),
            Total::Unknown => Total::Unknown,
        }
    }

    /// The number, while it is known.
    pub fn exact(self) -> Option<u64> {
        match self {
            Total::Exact(n) => Some(n),
            Total::Unseen | Total::Unknown => None,
        }
    }
}

/// The sums over a span of responses (a turn, a session).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Input tokens, unset until a response reports them.
    pub input: Option<u64>,
    /// Output tokens, likewise.
    pub output: Option<u64>,
    /// Cached input tokens, likewise; a subset of `input`.
    pub cached: Option<u64>,
    /// The providers' totals.
    pub total: Total,
}

impl Tally {
    /// Counts one response in.
    pub fn add(&mut self, usage: &Usage) {
        saturating(&mut self.input, usage.input);
        saturating(&mut self.output, usage.output);
        saturating(&mut self.cached, usage.cached);
        if usage.is_reported() {
            self.total = self.total.fold(usage.total);
        }
    }

    /// Counts a later span in.
    pub fn append(&mut self, later: &Tally) {
        saturating(&mut self.input, later.input);
        saturating(&mut self.output, later.output);
        saturating(&mut self.cached, later.cached);
        self.total = self.total.merge(later.total);
    }

    /// Whether any response reported input or output.
    pub fn is_reported(&self) -> bool {
        self.input.is_some() || self.output.is_some()
    }
}

fn saturating(sum: &mut Option<u64>, more: Option<u64>) {
    if let Some(n) = more {
        *sum = Some(sum.unwrap_or(0).saturating_add(n));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(input: u64, total: Option<u64>) -> Usage {
        Usage { input: Some(input), total, ..Usage::default() }
    }

    #[test]
    fn the_fold_table_of_the_total() {
        assert_eq!(Total::default(), Total::Unseen);
        assert_eq!(Total::Unseen.fold(Some(5)), Total::Exact(5));
        assert_eq!(Total::Exact(5).fold(Some(7)), Total::Exact(12));
        assert_eq!(Total::Exact(u64::MAX).fold(Some(1)), Total::Unknown);
        assert_eq!(Total::Exact(5).fold(None), Total::Unknown);
        assert_eq!(Total::Unseen.fold(None), Total::Unknown);
        assert_eq!(Total::Unknown.fold(Some(1)), Total::Unknown);
    }

    #[test]
    fn the_merge_table_of_the_total() {
        assert_eq!(Total::Exact(1).merge(Total::Unseen), Total::Exact(1));
        assert_eq!(Total::Unseen.merge(Total::Exact(2)), Total::Exact(2));
        assert_eq!(Total::Exact(1).merge(Total::Exact(2)), Total::Exact(3));
        assert_eq!(Total::Exact(u64::MAX).merge(Total::Exact(2)), Total::Unknown);
        assert_eq!(Total::Unknown.merge(Total::Exact(2)), Total::Unknown);
        assert_eq!(Total::Exact(1).merge(Total::Unknown), Total::Unknown);
    }

    #[test]
    fn c28_a_missing_total_makes_the_sum_unknown_for_good() {
        let mut tally = Tally::default();
        tally.add(&reported(10, Some(12)));
        tally.add(&reported(10, None));
        tally.add(&reported(10, Some(7)));
        assert_eq!(tally.total, Total::Unknown);
        assert_eq!(tally.input, Some(30));
    }

    #[test]
    fn a_response_without_input_and_output_leaves_the_total_alone() {
        let mut tally = Tally::default();
        tally.add(&Usage { total: Some(10), ..Usage::default() });
        assert_eq!(tally, Tally::default());
    }

    #[test]
    fn c25_odd_numbers_count_as_not_reported() {
        for odd in ["\"12\"", "1.5", "-1", "1e30", "null"] {
            let value: Value = serde_json::from_str(odd).expect("json");
            assert_eq!(count(Some(&value)), None, "{odd}");
        }
        assert_eq!(count(None), None);
    }

    #[test]
    fn categories_saturate() {
        let mut tally = Tally::default();
        tally.add(&reported(u64::MAX, None));
        tally.add(&reported(1, None));
        assert_eq!(tally.input, Some(u64::MAX));
    }
}
