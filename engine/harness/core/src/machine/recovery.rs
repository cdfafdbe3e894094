//! After a kill, of the harness or of an agent: what ran is settled. What a turn has cost is published, what it
//! was asked is asked again unless it was answered, and nobody is answered twice.

use serde_json::{json, Value};
use waxlog_nostr::kind;

use super::outcome::Outcome;
use super::queries::{Answer, Purpose};
use super::turn::Turn;
use super::view::TurnView;
use super::Machine;
use crate::effect::{Effect, Level};
use crate::queue::Batch;
use crate::step::Step;
use crate::usage::Usage;

/// How many of its own messages the harness looks through for answers.
const OWN_MESSAGES_MAX: usize = 500;

/// A turn that a kill has ended.
#[derive(Clone, Debug)]
pub(super) struct Interrupted {
    turn: String,
    channel: Option<String>,
    started_ms: u64,
    /// The last record before the kill.
    ended_ms: u64,
    session: Option<String>,
    /// The last report that the harness has seen.
    pending: Option<Usage>,
    /// Whether what it has cost is settled.
    is_billed: bool,
    /// What it was asked, until it is known whether that was answered.
    batch: Option<Batch>,
    /// What is to be done with what was not.
    then: Then,
}

/// What is done with what a turn has left without an answer.
#[derive(Clone, Debug)]
enum Then {
    /// The process ended: it is asked again at once.
    AtOnce,
    /// The turn failed: it is asked again after a wait, or given up for this reason.
    Later(Outcome, String),
}

impl Machine {
    /// A new process: takes over what ran in the one before.
    pub(super) fn take_over_interrupted(&mut self, step: &mut Step, ended_ms: u64) {
        let mut flights = self.tracker.take_interrupted();
        let mut batches = self.queue.take_interrupted();
        for (at, turn) in std::mem::take(&mut self.turns) {
            let child = self.pool.slots.get(at).and_then(|slot| slot.child()).map_or(0, |child| child.number);
            let pending = flights.remove(&child).and_then(|(_, pending)| pending);
            let taken = batches.iter().position(|batch| Some(&batch.channel) == turn.channel.as_ref());
            self.remember(TurnView::ended(&turn, ended_ms, "interrupted", "the process ended"));
            let session = turn.session.clone();
            self.interrupted.push(Interrupted {
                turn: turn.id.clone(),
                channel: turn.channel.clone(),
                started_ms: turn.started_ms,
                ended_ms,
                session: session.clone(),
                pending,
                is_billed: session.is_none(),
                batch: taken.map(|taken| batches.remove(taken)),
                then: Then::AtOnce,
            });
            if let Some(session) = session {
                step.act(Effect::FindUsage { turn: turn.id, session, slot: at });
            }
        }
        for batch in batches {
            self.queue.requeue_unasked(batch);
        }
        for one in &mut self.interrupted {
            one.then = Then::AtOnce;
        }
        self.find_unbilled(step);
    }

    /// What an earlier process took over and did not come to settle.
    fn find_unbilled(&mut self, step: &mut Step) {
        for one in self.interrupted.iter().filter(|one| !one.is_billed) {
            if let Some(session) = one.session.clone() {
                let slot = self
                    .pool
                    .slots
                    .iter()
                    .position(|slot| slot.sessions.values().any(|held| held.id == session));
                step.act(Effect::FindUsage { turn: one.turn.clone(), session, slot: slot.unwrap_or(0) });
            }
        }
    }

    /// Our own agent's log was looked into. What it says is newer than what the harness has heard.
    pub(super) fn usage_found(&mut self, step: &mut Step, turn: &str, is_known: bool, raw: &[u8]) {
        let Some(at) = self.interrupted.iter().position(|one| one.turn == turn && !one.is_billed) else {
            return;
        };
        let found = is_known.then(|| serde_json::from_slice::<Value>(raw).ok()).flatten();
        let found = found.and_then(|params| Usage::read(&params)).map(|(_, usage)| usage);
        let one = &mut self.interrupted[at];
        one.is_billed = true;
        let usage = found.or_else(|| one.pending.take());
        if let (Some(session), Some(usage)) = (one.session.clone(), usage) {
            let (turn, channel, ended_ms) = (one.turn.clone(), one.channel.clone(), one.ended_ms);
            if let Some(metric) = self.tracker.settle_new(session, usage) {
                self.owe_metric(step, &turn, channel, metric, "error", ended_ms);
            }
        }
        self.forget_settled();
    }

    /// The relay is there: asks it what was answered before the kill.
    pub(super) fn recover_interrupted(&mut self, step: &mut Step) {
        let open: Vec<(String, String, u64)> = self
            .interrupted
            .iter()
            .filter_map(|one| {
                Some((one.turn.clone(), one.batch.as_ref()?.channel.clone(), one.started_ms / 1000))
            })
            .collect();
        for (turn, channel, since_secs) in open {
            self.ask_answered(step, turn, &channel, since_secs, true);
        }
    }

    /// A turn failed whose agent may have answered before it did: asks the relay, then decides. The channel
    /// stays busy until then.
    pub(super) fn look_for_answers(
        &mut self,
        step: &mut Step,
        turn: &Turn,
        batch: Batch,
        outcome: &Outcome,
        text: &str,
    ) {
        let (channel, since_secs) = (batch.channel.clone(), turn.started_ms / 1000);
        self.interrupted.push(Interrupted {
            turn: turn.id.clone(),
            channel: turn.channel.clone(),
            started_ms: turn.started_ms,
            ended_ms: step.now_ms,
            session: None,
            pending: None,
            is_billed: true,
            batch: Some(batch),
            then: Then::Later(outcome.clone(), text.to_owned()),
        });
        self.ask_answered(step, turn.id.clone(), &channel, since_secs, false);
    }

    fn ask_answered(
        &mut self,
        step: &mut Step,
        turn: String,
        channel: &str,
        since_secs: u64,
        is_patient: bool,
    ) {
        let filter = json!({
            "kinds": [kind::MESSAGE, kind::MESSAGE_V2, kind::FORUM_COMMENT],
            "authors": [self.set().agent],
            "#h": [channel],
            "since": since_secs,
            "limit": OWN_MESSAGES_MAX,
        });
        self.query(step, Purpose::Answered { turn, is_patient }, vec![filter]);
    }

    /// The relay has said what the agent has sent since the turn began: an event with an answer is not asked
    /// again. If it cannot say, all are asked again: an answer too many is better than none.
    pub(super) fn answered_found(&mut self, step: &mut Step, turn: &str, answer: &Answer) {
        let Some(one) = self.interrupted.iter_mut().find(|one| one.turn == turn) else { return };
        let Some(mut batch) = one.batch.take() else { return };
        let named: Vec<&str> = answer.events().iter().flat_map(|own| own.tag_values("e")).collect();
        let is_bare = |own: &&waxlog_nostr::Event| own.tags_named("e").next().is_none();
        let has_bare = answer.events().iter().any(|own| is_bare(&own));
        let mut is_open = |queued: &crate::queue::Queued| {
            let id = queued.event.id.to_hex();
            let root = waxlog_nostr::thread::Shown::of(&queued.event).map(|thread| thread.root.to_owned());
            let is_named = named.iter().any(|named| *named == id || root.as_deref() == Some(named));
            !is_named && !has_bare
        };
        let before = batch.all().count();
        batch.events.retain(&mut is_open);
        batch.cancelled.retain(&mut is_open);
        let left = batch.all().count();
        if left < before {
            let text =
                format!("{} of {before} events had their answer before their turn ended", before - left);
            step.tell(Level::Info, text);
        }
        let then = one.then.clone();
        match then {
            Then::AtOnce if left > 0 => self.ask_at_once(step, batch),
            Then::Later(outcome, text) if left > 0 => self.retry(step, batch, &outcome, &text),
            Then::AtOnce => {}
            Then::Later(..) => self.queue.complete(&batch.channel, step.now_ms),
        }
        self.forget_settled();
    }

    fn ask_at_once(&mut self, step: &mut Step, batch: Batch) {
        let channel = batch.channel.clone();
        let Some(dead) = self.queue.requeue_interrupted(batch) else { return };
        let why = "the agent's host ended while it was being answered, again and again";
        if let Some(last) = dead.last() {
            self.notify_failure(step, &channel, &last.event, why);
        }
    }

    fn forget_settled(&mut self) {
        self.interrupted.retain(|one| !one.is_billed || one.batch.is_some());
    }
}
