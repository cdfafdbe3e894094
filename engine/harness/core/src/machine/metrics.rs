//! Usage events: each is made once, sealed once, and from then on sent as it was sealed until it is taken.

use std::collections::BTreeMap;

use waxlog_nostr::turn_metric::{Payload, StopReason, TokenCounts};

use super::Machine;
use crate::effect::{Effect, Level};
use crate::record::HttpOutcome;
use crate::step::Step;
use crate::usage::{Counts, Metric};

/// How long one attempt to send may take.
const SEND_MS: u64 = 3_000;
/// How far an event's time may be from the relay's.
const WINDOW_SECS: u64 = 900;
/// An event's time is that of its turn's end if this is no longer ago.
const HONEST_SECS: u64 = 600;
const RETRY_BASE_MS: u64 = 2_000;
const RETRY_CAP_MS: u64 = 60_000;

/// A usage event on its way.
#[derive(Clone, Debug)]
struct Owed {
    payload: Payload,
    /// The end of the turn, in seconds.
    ended_secs: u64,
    /// The event as it was sealed: the only form that is ever sent.
    sealed: Option<String>,
    created_at: u64,
    attempts: u32,
    is_sending: bool,
    next_ms: u64,
}

/// The usage events that are not settled.
#[derive(Clone, Debug, Default)]
pub(super) struct Metrics {
    owed: BTreeMap<String, Owed>,
}

impl Metrics {
    pub(super) fn wake_at_ms(&self) -> Option<u64> {
        let waits = |owed: &&Owed| owed.sealed.is_some() && !owed.is_sending;
        self.owed.values().filter(waits).map(|owed| owed.next_ms).min()
    }

    /// Whether something is on its way right now.
    pub(super) fn is_busy(&self) -> bool {
        self.owed.values().any(|owed| owed.sealed.is_none() || owed.is_sending || owed.attempts == 0)
    }
}

impl Machine {
    /// A turn has cost something: makes its usage event, if there is somebody to tell.
    pub(super) fn owe_metric(
        &mut self,
        step: &mut Step,
        turn: &str,
        channel: Option<String>,
        metric: Metric,
        stop: &str,
        ended_ms: u64,
    ) {
        if self.set().owner.is_none() || self.metrics.owed.contains_key(turn) {
            return;
        }
        let timestamp = crate::prompt::time_ms_text(ended_ms);
        let mut payload = Payload::new(self.set().agent_command.identity.clone(), timestamp);
        payload.model = metric.model;
        payload.channel_id = channel;
        payload.session_id = Some(metric.session);
        payload.turn_id = Some(turn.to_owned());
        payload.turn_seq = Some(metric.seq);
        payload.delta_reliable = metric.turn.is_some();
        payload.turn = metric.turn.as_ref().map(tokens);
        payload.cumulative = Some(tokens(&metric.cumulative));
        payload.stop_reason = Some(StopReason::read(stop));
        let owed = Owed {
            payload,
            ended_secs: ended_ms / 1000,
            sealed: None,
            created_at: 0,
            attempts: 0,
            is_sending: false,
            next_ms: 0,
        };
        self.metrics.owed.insert(turn.to_owned(), owed);
        self.seal(step, turn);
    }

    fn seal(&mut self, step: &mut Step, turn: &str) {
        let (Some(owner), Some(owed)) = (self.set().owner, self.metrics.owed.get_mut(turn)) else { return };
        let now_secs = step.now_secs();
        let is_fresh = now_secs.abs_diff(owed.ended_secs) <= HONEST_SECS;
        owed.created_at = if is_fresh { owed.ended_secs } else { now_secs };
        match owed.payload.to_json() {
            Ok(payload) => {
                let (turn, created_at) = (turn.to_owned(), owed.created_at);
                step.act(Effect::SealMetric { turn, payload, owner, created_at });
            }
            Err(error) => {
                step.tell(Level::Error, format!("the usage of turn {turn} cannot be published: {error}"));
                self.metrics.owed.remove(turn);
            }
        }
    }

    pub(super) fn metric_sealed(&mut self, step: &mut Step, turn: &str, event: &str) {
        let Some(owed) = self.metrics.owed.get_mut(turn).filter(|owed| owed.sealed.is_none()) else { return };
        owed.sealed = Some(event.to_owned());
        self.send_metric(step, turn);
    }

    fn send_metric(&mut self, step: &mut Step, turn: &str) {
        let Some(owed) = self.metrics.owed.get_mut(turn) else { return };
        let Some(event) = owed.sealed.clone() else { return };
        let is_late = step.now_secs().abs_diff(owed.created_at) >= WINDOW_SECS;
        match (is_late, owed.attempts) {
            (true, 0) => {
                // It was never sent, so nobody can have it: the same figures may be sealed anew.
                owed.sealed = None;
                return self.seal(step, turn);
            }
            (true, _) => {
                // It may have arrived. At most once is better than a double bill; the next sums hold it.
                let text =
                    format!("the usage of turn {turn} may not have arrived; its tokens are in the next sums");
                step.tell(Level::Error, text);
                self.metrics.owed.remove(turn);
                return;
            }
            (false, _) => {}
        }
        owed.attempts += 1;
        owed.is_sending = true;
        step.act(Effect::SendMetric { turn: turn.to_owned(), event, budget_ms: SEND_MS });
    }

    pub(super) fn metric_sent(&mut self, step: &mut Step, turn: &str, outcome: &HttpOutcome, body: &str) {
        let Some(owed) = self.metrics.owed.get_mut(turn) else { return };
        owed.is_sending = false;
        let doublings = owed.attempts.saturating_sub(1).min(5);
        owed.next_ms = step.now_ms + (RETRY_BASE_MS << doublings).min(RETRY_CAP_MS);
        match settled(outcome, body) {
            Settled::Taken => {
                self.metrics.owed.remove(turn);
            }
            Settled::Refused(why) => {
                step.tell(Level::Error, format!("the relay does not take the usage of turn {turn}: {why}"));
                self.metrics.owed.remove(turn);
            }
            Settled::Open(why) => {
                step.tell(Level::Warn, format!("the usage of turn {turn} could not be sent yet: {why}"));
            }
        }
    }

    pub(super) fn tick_metrics(&mut self, step: &mut Step) {
        let due = |owed: &Owed| owed.sealed.is_some() && !owed.is_sending && owed.next_ms <= step.now_ms;
        let turns: Vec<String> =
            self.metrics.owed.iter().filter(|(_, owed)| due(owed)).map(|(turn, _)| turn.clone()).collect();
        for turn in turns {
            self.send_metric(step, &turn);
        }
    }

    /// A new process: what was sealed is sent, what was not is sealed.
    pub(super) fn resume_metrics(&mut self, step: &mut Step) {
        for turn in self.metrics.owed.keys().cloned().collect::<Vec<_>>() {
            let Some(owed) = self.metrics.owed.get_mut(&turn) else { continue };
            owed.is_sending = false;
            match owed.sealed.is_some() {
                true => self.send_metric(step, &turn),
                false => self.seal(step, &turn),
            }
        }
    }
}

fn tokens(counts: &Counts) -> TokenCounts {
    TokenCounts {
        input_tokens: counts.input,
        output_tokens: counts.output,
        total_tokens: counts.total,
        cost_usd: counts.cost,
        cache_read_tokens: counts.cached,
        cache_write_tokens: None,
    }
}

enum Settled {
    Taken,
    Refused(String),
    Open(String),
}

/// What an attempt has come to. A refusal for the event's time is not final: see [`Machine::send_metric`].
fn settled(outcome: &HttpOutcome, body: &str) -> Settled {
    let answer: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    let text = ["message", "error"].iter().find_map(|key| answer[*key].as_str()).unwrap_or(body).to_owned();
    match outcome {
        HttpOutcome::Failed { reason } => Settled::Open(reason.clone()),
        HttpOutcome::TimedOut => Settled::Open("no answer in time".to_owned()),
        HttpOutcome::Answered { status: 200 } if answer["accepted"] != false => Settled::Taken,
        HttpOutcome::Answered { .. } if text.starts_with("duplicate:") => Settled::Taken,
        HttpOutcome::Answered { .. } if text.contains("timestamp too far") => Settled::Open(text),
        HttpOutcome::Answered { status }
            if *status == 429 || *status >= 500 || text.starts_with("error:") =>
        {
            Settled::Open(format!("status {status}: {text}"))
        }
        HttpOutcome::Answered { status } => Settled::Refused(format!("status {status}: {text}")),
    }
}
