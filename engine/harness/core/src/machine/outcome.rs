//! The end of a turn: what came of it, and what that does to the batch, the session, the agent and the bill.

use serde_json::{json, Value};
use waxlog_nostr::thread::Thread;
use waxlog_nostr::{kind, Event};

use super::pool::Ask;
use super::signals::Signal;
use super::turn::{Cancelling, Phase, Turn};
use super::view::TurnView;
use super::Machine;
use crate::acp::{self, AgentError};
use crate::effect::Level;
use crate::queue::{Batch, Requeued};
use crate::step::Step;
use crate::usage;

/// How long publishing a notice may take.
const NOTICE_MS: u64 = 5_000;

/// What came of a turn.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    /// The agent has ended it, with this stop reason.
    Done(&'static str),
    /// It was cancelled by a signal and the agent has ended it.
    Cancelled(Signal),
    /// It was cancelled by a signal and the agent did not end it in time.
    CancelLate(Signal),
    /// The agent fell silent; whether it ended the turn when that was cancelled.
    Idle { has_ended: bool },
    /// It took too long; whether the agent was still at it.
    TooLong { was_recent: bool },
    /// The agent's process has ended.
    Exited,
    /// The agent cannot be spoken with any more.
    Broken(String),
    /// The agent has answered with an error.
    Refused(AgentError),
}

/// What becomes of the batch.
enum Fate {
    Answered,
    Dropped,
    AskedAgain,
    Retried,
    GivenUp,
}

impl Outcome {
    /// The label of its error frame, if it is one.
    fn label(&self) -> Option<&'static str> {
        match self {
            Self::Done(_) | Self::Cancelled(_) => None,
            Self::CancelLate(_) => Some("cancel_drain_timeout"),
            Self::Idle { .. } => Some("idle_timeout"),
            Self::TooLong { .. } => Some("hard_timeout"),
            Self::Exited => Some("exited"),
            Self::Broken(_) | Self::Refused(_) => Some("error"),
        }
    }

    /// The stop reason of its usage event.
    fn stop_reason(&self) -> &'static str {
        match self {
            Self::Done(answered) => usage::stop_reason(answered),
            Self::Cancelled(_) | Self::Idle { has_ended: true } => "cancelled",
            _ => "error",
        }
    }

    fn keeps_agent(&self) -> bool {
        matches!(self, Self::Done(_) | Self::Cancelled(_) | Self::Refused(_))
    }

    fn fate(&self) -> Fate {
        match self {
            Self::Done(_) => Fate::Answered,
            Self::Cancelled(signal) | Self::CancelLate(signal) => match signal.asks_again() {
                Some(_) => Fate::AskedAgain,
                None => Fate::Dropped,
            },
            Self::TooLong { was_recent: false } => Fate::GivenUp,
            Self::Refused(error) if error.is_login() => Fate::GivenUp,
            _ => Fate::Retried,
        }
    }

    fn text(&self, max_turn_ms: u64) -> String {
        match self {
            Self::Done(reason) => format!("ended: {reason}"),
            Self::Cancelled(_) => "cancelled".to_owned(),
            Self::CancelLate(_) => "the agent did not stop in 5 s and is being replaced".to_owned(),
            Self::Idle { .. } => "timed out by inactivity".to_owned(),
            Self::TooLong { .. } => format!("exceeded the maximum duration ({} s)", max_turn_ms / 1000),
            Self::Exited => "the agent process exited unexpectedly".to_owned(),
            Self::Broken(reason) => reason.clone(),
            Self::Refused(error) => error.message.clone(),
        }
    }
}

impl Machine {
    /// The agent has answered a prompt.
    pub(super) fn prompt_answered(
        &mut self,
        step: &mut Step,
        at: usize,
        what: Ask,
        result: Result<Value, AgentError>,
    ) {
        let Some(turn) = self.turns.get(&at) else { return };
        match turn.cancelling {
            Some(Cancelling::Signal { signal, .. }) => {
                return self.end_turn(step, at, Outcome::Cancelled(signal));
            }
            Some(Cancelling::Idle { .. }) => {
                return self.end_turn(step, at, Outcome::Idle { has_ended: true });
            }
            None => {}
        }
        let outcome = match result {
            Err(error) => Outcome::Refused(error),
            Ok(result) => match acp::stop_reason(&result) {
                Some(reason) => Outcome::Done(reason),
                None => Outcome::Broken(format!(
                    "a prompt was answered with the stop reason {}",
                    result["stopReason"]
                )),
            },
        };
        match (what, &outcome, turn.session.clone()) {
            (Ask::InitialPrompt, Outcome::Done(_), Some(session)) => self.session_ready(step, at, &session),
            _ => self.end_turn(step, at, outcome),
        }
    }

    /// Ends a turn. Everything that belongs to it is settled here, once.
    pub(super) fn end_turn(&mut self, step: &mut Step, at: usize, outcome: Outcome) {
        let Some(turn) = self.turns.get(&at).cloned() else { return };
        self.queries.forget_slot(at);
        if let (Some(steering), Some(channel)) = (&turn.steering, &turn.channel) {
            self.queue.release(channel, &steering.event);
        }
        let text = outcome.text(self.set().max_turn_ms);
        if outcome.label().is_some() {
            step.tell(Level::Warn, format!("the turn of agent {at} failed: {text}"));
        }
        self.bill(step, at, &turn, &outcome);
        self.show_error(step, at, &outcome, &text);
        self.settle_sessions(&turn, at, &outcome);
        self.settle_batch(step, &turn, &outcome, &text);
        self.unmark(step, &turn);
        self.show_of_slot(step, at, "turn_completed", json!({}));
        self.turns.remove(&at);
        self.remember(TurnView::ended(&turn, step.now_ms, outcome.label().unwrap_or("ok"), &text));
        self.settle_agent(step, at, &outcome);
    }

    fn bill(&mut self, step: &mut Step, at: usize, turn: &Turn, outcome: &Outcome) {
        let Some(child) = self.pool.slots[at].child().map(|child| child.number) else { return };
        if let Some(metric) = self.tracker.take(child) {
            let (channel, stop) = (turn.channel.clone(), outcome.stop_reason());
            self.owe_metric(step, &turn.id, channel, metric, stop, step.now_ms);
        }
    }

    fn show_error(&mut self, step: &mut Step, at: usize, outcome: &Outcome, text: &str) {
        let Some(label) = outcome.label() else { return };
        let mut payload = json!({"outcome": label, "error": text});
        if let Outcome::Refused(error) = outcome {
            payload["code"] = json!(error.code);
        }
        self.show_of_slot(step, at, "turn_error", payload);
    }

    /// Sessions that cannot go on are dropped; an agent that can load them finds them again after a crash.
    fn settle_sessions(&mut self, turn: &Turn, at: usize, outcome: &Outcome) {
        let max_turns = self.set().max_turns_per_session;
        let can_load = self.pool.slots[at].child().is_some_and(|child| child.can_load);
        let key = turn.session_key();
        let slot = &mut self.pool.slots[at];
        match outcome {
            Outcome::Done(reason) => {
                let Some(session) = slot.sessions.get_mut(&key) else { return };
                session.turns += 1;
                let is_full = matches!(*reason, "max_tokens" | "max_turn_requests");
                if is_full || (max_turns > 0 && session.turns >= max_turns) {
                    slot.sessions.remove(&key);
                }
            }
            Outcome::Refused(_) => {}
            Outcome::Exited if can_load => {}
            Outcome::Exited | Outcome::TooLong { .. } => slot.sessions.clear(),
            _ => {
                slot.sessions.remove(&key);
            }
        }
        slot.sessions.retain(|channel, _| !self.channels.is_removed(channel));
    }

    fn settle_batch(&mut self, step: &mut Step, turn: &Turn, outcome: &Outcome, text: &str) {
        let Some(channel) = &turn.channel else { return };
        let Some(batch) = self.queue.in_flight(channel).cloned() else { return };
        let is_dropped = self.channels.is_removed(channel) || self.set().drop_busy;
        match outcome.fate() {
            Fate::Answered | Fate::Dropped => {}
            _ if is_dropped => {
                step.tell(Level::Warn, format!("what was asked in {channel} is not asked again"))
            }
            Fate::GivenUp => self.give_up(step, &batch, outcome, text),
            Fate::AskedAgain => {
                if let Outcome::Cancelled(signal) | Outcome::CancelLate(signal) = outcome {
                    let why = signal.asks_again().unwrap_or(crate::queue::Why::Steer);
                    self.queue.requeue_cancelled(batch, why);
                }
            }
            Fate::Retried => return self.look_for_answers(step, turn, batch, outcome, text),
        }
        self.queue.complete(channel, step.now_ms);
    }

    /// A batch is asked again after a wait, or given up if that was too often.
    pub(super) fn retry(&mut self, step: &mut Step, batch: Batch, outcome: &Outcome, text: &str) {
        let channel = batch.channel.clone();
        let factor_ms = step.jittered(1_000);
        let jittered = |base_ms: u64| base_ms * factor_ms / 1_000;
        if let Requeued::Dead(batch) = self.queue.requeue(batch, step.now_ms, jittered) {
            self.give_up(step, &batch, outcome, &format!("after multiple retries: {text}"));
        }
        self.queue.complete(&channel, step.now_ms);
    }

    /// A batch is given up, where its people can see it.
    fn give_up(&mut self, step: &mut Step, batch: &Batch, outcome: &Outcome, text: &str) {
        let why = match outcome {
            Outcome::Refused(error) if error.is_login() => {
                "authentication failed; re-authenticate the agent, for example with `claude /login` or `codex login`"
                    .to_owned()
            }
            _ => text.to_owned(),
        };
        step.tell(Level::Error, format!("a request in {} was given up: {why}", batch.channel));
        if let Some(last) = batch.last() {
            self.notify_failure(step, &batch.channel, &last.event, &why);
        }
    }

    /// Says in the channel that a request was given up.
    pub(super) fn notify_failure(&mut self, step: &mut Step, channel: &str, last: &Event, why: &str) {
        let text =
            format!("\u{26a0}\u{fe0f} The last request could not be processed: {why}. Please send it again.");
        let mut draft = step.draft(kind::MESSAGE, text).tag(["h", channel]);
        if let Ok(Some(thread)) = Thread::stored(last) {
            for tag in thread.tags() {
                draft = draft.tag(tag);
            }
        }
        step.submit(draft, NOTICE_MS);
    }

    fn settle_agent(&mut self, step: &mut Step, at: usize, outcome: &Outcome) {
        match outcome.keeps_agent() && self.stopping.is_none() {
            true => self.pool.give_back(at),
            false if self.stopping.is_some() => {
                if let Some(child) = self.pool.slots[at].vacate() {
                    step.act(crate::effect::Effect::Kill { child: child.number });
                }
            }
            false => self.replace_agent(step, at),
        }
        if self.stopping.is_none() && self.pool.is_started && self.pool.is_dead(step.now_ms) {
            step.tell(Level::Error, "no agent is left, and none can be started for now");
            self.stop_asked(step, "no agent is left");
        }
    }

    /// Looks at the times of the turn of a slot.
    pub(super) fn tick_turn(&mut self, step: &mut Step, at: usize) {
        let idle_ms = self.set().idle_timeout_ms;
        let Some(turn) = self.turns.get_mut(&at) else { return };
        let now_ms = step.now_ms;
        match (turn.cancelling, turn.clock) {
            (Some(Cancelling::Signal { signal, until_ms }), _) if until_ms <= now_ms => {
                self.end_turn(step, at, Outcome::CancelLate(signal));
            }
            (Some(Cancelling::Idle { .. }), _) if turn.wake_at_ms(idle_ms) <= now_ms => {
                self.end_turn(step, at, Outcome::Idle { has_ended: false });
            }
            (None, Some(clock)) if turn.is_prompting() => {
                if clock.hard_until_ms <= now_ms {
                    let was_recent = now_ms - clock.heard_ms < super::turn::RECENT_MS;
                    self.end_turn(step, at, Outcome::TooLong { was_recent });
                } else if clock.heard_ms + idle_ms <= now_ms {
                    let until_ms = clock.hard_until_ms.max(now_ms + super::turn::IDLE_CANCEL_MS);
                    turn.cancelling = Some(Cancelling::Idle { since_ms: now_ms, until_ms });
                    self.send_cancel(step, at);
                }
            }
            _ => {}
        }
    }

    /// A request of a turn that was not answered in time.
    pub(super) fn request_late(&mut self, step: &mut Step, at: usize, what: Ask) {
        let text = format!("the agent did not answer in time ({what:?})");
        match self.turns.get(&at).map(|turn| turn.phase) {
            Some(Phase::Opening | Phase::Gathering | Phase::Context | Phase::Initial | Phase::Prompting) => {
                self.end_turn(step, at, Outcome::Broken(text));
            }
            None => {
                let child = self.pool.slots[at].child().map_or(0, |child| child.number);
                self.agent_ended(step, child, &crate::record::AgentEnd::WriteFailed { reason: text });
            }
        }
    }
}
