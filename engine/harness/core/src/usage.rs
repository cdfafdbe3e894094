//! Usage: what agents report about themselves, and what of it each turn has cost.
//!
//! An agent reports sums over its session. A turn's cost is the difference to a baseline, which is frozen
//! while the turn runs and moves only when the turn's figures are taken.

use std::collections::BTreeMap;

use serde_json::Value;

/// The method of a usage report.
pub const UPDATE_METHOD: &str = "_goose/unstable/session/update";

/// Sums over a session, as the agent reports them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// Input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Total tokens, if reported.
    pub total: Option<u64>,
    /// Cost in USD, if reported.
    pub cost: Option<f64>,
    /// Input tokens that came from a cache, if reported.
    pub cached: Option<u64>,
    /// The model.
    pub model: Option<String>,
}

/// Counters of which any may be unknown. Unknown is not zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Input tokens.
    pub input: Option<u64>,
    /// Output tokens.
    pub output: Option<u64>,
    /// Total tokens.
    pub total: Option<u64>,
    /// Cost in USD.
    pub cost: Option<f64>,
    /// Input tokens that came from a cache.
    pub cached: Option<u64>,
}

/// What one turn has cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// The agent's session.
    pub session: String,
    /// Counts the session's metrics from 1.
    pub seq: u64,
    /// The turn's own counters; none if they cannot be told from what was before.
    pub turn: Option<Counts>,
    /// The session's sums at the end of the turn.
    pub cumulative: Counts,
    /// The model of the last report.
    pub model: Option<String>,
}

impl Usage {
    /// Reads a report: which session it is of, and its sums. `None` if it is none or lacks what it must have.
    pub fn read(params: &Value) -> Option<(String, Self)> {
        let update = &params["update"];
        if update["sessionUpdate"] != "usage_update" {
            return None;
        }
        let count = |key: &str| update[key].as_u64();
        let usage = Self {
            input: count("accumulatedInputTokens")?,
            output: count("accumulatedOutputTokens")?,
            total: count("accumulatedTotalTokens"),
            cost: update["accumulatedCost"].as_f64().filter(|cost| *cost >= 0.0),
            cached: count("accumulatedCachedInputTokens"),
            model: update["model"].as_str().map(str::to_owned),
        };
        Some((params["sessionId"].as_str()?.to_owned(), usage))
    }

    fn counts(&self) -> Counts {
        Counts {
            input: Some(self.input),
            output: Some(self.output),
            total: self.total,
            cost: self.cost,
            cached: self.cached,
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Session {
    /// The sums at the end of the last turn that was taken, or before the first.
    baseline: Option<Usage>,
    /// How many metrics there were.
    seq: u64,
}

#[derive(Clone, Debug)]
struct Flight {
    session: String,
    pending: Option<Usage>,
}

/// The sessions' baselines, and the turns that run, one for each child.
#[derive(Clone, Debug, Default)]
pub struct Tracker {
    sessions: BTreeMap<String, Session>,
    flights: BTreeMap<u64, Flight>,
}

impl Tracker {
    /// A session begins in which nothing was spent. Without this, the first turn of a session cannot be told
    /// from what the agent may have spent before.
    pub fn began_at_zero(&mut self, session: &str) {
        let zero = Usage { total: Some(0), cached: Some(0), ..Usage::default() };
        self.sessions.entry(session.to_owned()).or_default().baseline = Some(zero);
    }

    /// A turn begins. What the one before has left untaken stays part of the session's sums.
    pub fn begin(&mut self, child: u64, session: &str) {
        self.flights.insert(child, Flight { session: session.to_owned(), pending: None });
    }

    /// A report came. While a turn of another session runs in the child it means nothing.
    pub fn record(&mut self, child: u64, session: &str, usage: Usage) {
        match self.flights.get_mut(&child) {
            Some(flight) if flight.session == session => flight.pending = Some(usage),
            Some(_) => {}
            None => self.sessions.entry(session.to_owned()).or_default().baseline = Some(usage),
        }
    }

    /// The child's turn is over: what it has cost, if anything was reported.
    pub fn take(&mut self, child: u64) -> Option<Metric> {
        let Flight { session, pending } = self.flights.remove(&child)?;
        self.settle(session, pending?)
    }

    /// What a turn has cost whose process is gone: its session's sums are now these.
    pub fn settle(&mut self, session: String, usage: Usage) -> Option<Metric> {
        let held = self.sessions.entry(session.clone()).or_default();
        held.seq += 1;
        let turn = held.baseline.as_ref().and_then(|before| difference(before, &usage));
        let metric =
            Metric { session, seq: held.seq, turn, cumulative: usage.counts(), model: usage.model.clone() };
        held.baseline = Some(usage);
        Some(metric)
    }

    /// As [`Tracker::settle`], but only if something was added: sums that a turn before was billed with are
    /// not billed again.
    pub fn settle_new(&mut self, session: String, usage: Usage) -> Option<Metric> {
        let before = self.sessions.get(&session).and_then(|held| held.baseline.as_ref());
        let is_new = before.is_none_or(|before| (before.input, before.output) != (usage.input, usage.output));
        is_new.then(|| self.settle(session, usage)).flatten()
    }

    /// The turns that ran when the process before ended: which session, and what was last reported.
    pub fn take_interrupted(&mut self) -> BTreeMap<u64, (String, Option<Usage>)> {
        let flights = std::mem::take(&mut self.flights);
        flights.into_iter().map(|(child, flight)| (child, (flight.session, flight.pending))).collect()
    }
}

/// What was added, if the sums can be compared: a sum that fell, or a cost that fell, taints all.
fn difference(before: &Usage, after: &Usage) -> Option<Counts> {
    let cost = match (before.cost, after.cost) {
        (Some(before), Some(after)) if after < before => return None,
        (Some(before), Some(after)) => Some(after - before),
        _ => None,
    };
    let optional = |before: Option<u64>, after: Option<u64>| after?.checked_sub(before?);
    Some(Counts {
        input: Some(after.input.checked_sub(before.input)?),
        output: Some(after.output.checked_sub(before.output)?),
        total: optional(before.total, after.total),
        cost,
        cached: optional(before.cached, after.cached),
    })
}

/// The stop reason of a usage event for one that an agent answered with.
pub fn stop_reason(answered: &str) -> &'static str {
    match answered {
        "end_turn" => "end_turn",
        "cancelled" => "cancelled",
        "max_tokens" => "max_tokens",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn usage(input: u64, output: u64) -> Usage {
        Usage { input, output, ..Usage::default() }
    }

    /// One turn of child 1 that reports these sums.
    fn turn(tracker: &mut Tracker, reported: Usage) -> Metric {
        tracker.begin(1, "s");
        tracker.record(1, "s", reported);
        tracker.take(1).expect("something was reported")
    }

    #[test]
    fn a_first_turn_is_unreliable_and_a_second_is_a_difference() {
        let mut tracker = Tracker::default();
        let first = turn(&mut tracker, usage(1000, 200));
        assert_eq!((first.seq, first.turn), (1, None));
        let second = turn(&mut tracker, usage(1500, 300));
        let added = second.turn.expect("comparable");
        assert_eq!((second.seq, added.input, added.output), (2, Some(500), Some(100)));
    }

    #[test]
    fn a_session_that_began_at_zero_has_a_reliable_first_turn() {
        let mut tracker = Tracker::default();
        tracker.began_at_zero("s");
        let first = turn(&mut tracker, Usage { total: Some(380), ..usage(300, 80) });
        assert_eq!(first.turn.and_then(|turn| turn.total), Some(380));
    }

    #[test]
    fn what_is_reported_before_a_turn_is_the_baseline() {
        let mut tracker = Tracker::default();
        tracker.record(1, "s", usage(500, 100));
        tracker.begin(1, "s");
        assert_eq!(tracker.take(1), None);
        let first = turn(&mut tracker, usage(1200, 300));
        assert_eq!(first.turn.and_then(|turn| turn.input), Some(700));
    }

    #[test]
    fn the_last_report_of_a_turn_counts_and_takes_one_number() {
        let mut tracker = Tracker::default();
        turn(&mut tracker, usage(1, 1));
        tracker.begin(1, "s");
        for input in [10, 20, 31] {
            tracker.record(1, "s", usage(input, 1));
        }
        let metric = tracker.take(1).unwrap();
        assert_eq!((metric.seq, metric.turn.unwrap().input), (2, Some(30)));
        assert_eq!(tracker.take(1), None);
    }

    #[test]
    fn sums_that_fall_make_a_turn_unreliable_and_the_next_starts_there() {
        let mut tracker = Tracker::default();
        turn(&mut tracker, usage(100, 10));
        let fell = turn(&mut tracker, usage(50, 20));
        assert_eq!((fell.seq, fell.turn, fell.cumulative.input), (2, None, Some(50)));
        assert_eq!(turn(&mut tracker, usage(60, 25)).turn.unwrap().input, Some(10));
    }

    #[test]
    fn a_cost_that_falls_taints_the_record_and_a_missing_one_only_itself() {
        let mut tracker = Tracker::default();
        let costing = |input, cost| Usage { cost, ..usage(input, 1) };
        turn(&mut tracker, costing(1, Some(0.5)));
        assert_eq!(turn(&mut tracker, costing(2, Some(0.4))).turn, None);
        let missing = turn(&mut tracker, costing(3, None)).turn.unwrap();
        assert_eq!((missing.input, missing.cost), (Some(1), None));
    }

    #[test]
    fn totals_and_cache_are_each_on_their_own() {
        let mut tracker = Tracker::default();
        let with = |input, total, cached| Usage { total, cached, ..usage(input, 1) };
        turn(&mut tracker, with(1, Some(9), Some(0)));
        let fell = turn(&mut tracker, with(2, Some(8), Some(0))).turn.unwrap();
        assert_eq!((fell.total, fell.cached), (None, Some(0)));
    }

    #[test]
    fn reports_of_other_sessions_and_children_do_not_disturb_a_turn() {
        let mut tracker = Tracker::default();
        tracker.begin(1, "a");
        tracker.begin(2, "b");
        tracker.record(1, "a", usage(5, 5));
        tracker.record(1, "b", usage(7, 7));
        tracker.record(2, "b", usage(9, 9));
        assert_eq!(tracker.take(1).unwrap().cumulative.input, Some(5));
        assert_eq!(tracker.take(2).unwrap().cumulative.input, Some(9));
    }

    #[test]
    fn a_turn_that_is_begun_twice_rolls_into_the_next() {
        let mut tracker = Tracker::default();
        turn(&mut tracker, usage(10, 1));
        tracker.begin(1, "s");
        tracker.record(1, "s", usage(20, 1));
        let next = turn(&mut tracker, usage(35, 1));
        assert_eq!((next.seq, next.turn.unwrap().input), (2, Some(25)));
    }

    #[test]
    fn a_report_needs_its_two_sums_and_nothing_else() {
        let report = |update: Value| Usage::read(&json!({"sessionId": "s", "update": update}));
        let bare = json!({"sessionUpdate": "usage_update", "accumulatedInputTokens": 1, "accumulatedOutputTokens": 2});
        assert_eq!(report(bare), Some(("s".into(), usage(1, 2))));
        assert_eq!(report(json!({"sessionUpdate": "usage_update", "accumulatedOutputTokens": 2})), None);
        assert_eq!(report(json!({"sessionUpdate": "other"})), None);
        assert_eq!(Usage::read(&json!(null)), None);
    }

    #[test]
    fn lossy_stop_reasons_are_unknown() {
        let mapped = ["end_turn", "cancelled", "max_tokens", "max_turn_requests", "refusal"].map(stop_reason);
        assert_eq!(mapped, ["end_turn", "cancelled", "max_tokens", "unknown", "unknown"]);
    }
}
