//! A turn: what one agent is doing for one channel, or for nobody, and its times.

use waxlog_nostr::{Event, EventId};

use super::signals::Signal;
use crate::prompt::context::Context;
use crate::prompt::People;

/// How long an agent has to end a turn that is cancelled by a signal.
pub(super) const CANCEL_MS: u64 = 5_000;
/// How long an agent that fell silent has to end its turn once that is cancelled.
pub(super) const IDLE_CANCEL_MS: u64 = 30_000;
/// A turn over its longest time counts as alive if something came within this.
pub(super) const RECENT_MS: u64 = 60_000;
/// How many times the longest time a turn may take at all, however often a steer renews it.
pub(super) const RENEWALS_MAX: u64 = 3;

/// How far a turn has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Memory and canvas are being fetched for a new session.
    Gathering,
    /// The session is being made ready.
    Opening,
    /// What was said before is being fetched.
    Context,
    /// The agent works on the message that begins each session.
    Initial,
    /// The agent works on the prompt.
    Prompting,
}

/// The times of a prompt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// Until when it must have ended.
    pub(super) hard_until_ms: u64,
    /// Until when at the very latest.
    cap_until_ms: u64,
    /// When the agent was last heard.
    pub(super) heard_ms: u64,
}

impl Clock {
    pub(super) fn new(now_ms: u64, max_turn_ms: u64) -> Self {
        Self {
            hard_until_ms: now_ms + max_turn_ms,
            cap_until_ms: now_ms + max_turn_ms * RENEWALS_MAX,
            heard_ms: now_ms,
        }
    }

    /// A message was taken into the turn: it may take as long again, but not for ever.
    pub(super) fn renew(&mut self, now_ms: u64, max_turn_ms: u64) {
        self.hard_until_ms = (now_ms + max_turn_ms).max(self.hard_until_ms).min(self.cap_until_ms);
    }
}

/// Why a prompt is being cancelled, and until when the agent may take to end it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cancelling {
    Signal { signal: Signal, until_ms: u64 },
    Idle { since_ms: u64, until_ms: u64 },
}

/// A message on its way into the turn.
#[derive(Clone, Debug)]
pub(super) struct Steering {
    pub(super) request: u64,
    pub(super) event: EventId,
    /// Whether it goes by the run that the agent has named.
    pub(super) by_run: bool,
}

/// A running turn.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) id: String,
    /// Where; none for a heartbeat.
    pub(super) channel: Option<String>,
    pub(super) started_ms: u64,
    pub(super) phase: Phase,
    pub(super) session: Option<String>,
    pub(super) is_new_session: bool,
    /// How many answers the phase waits for.
    pub(super) waiting: u32,
    pub(super) core: Option<String>,
    pub(super) canvas: Option<String>,
    pub(super) context: Option<Context>,
    pub(super) people: People,
    pub(super) clock: Option<Clock>,
    pub(super) run: Option<String>,
    pub(super) signal: Option<Signal>,
    pub(super) cancelling: Option<Cancelling>,
    pub(super) steering: Option<Steering>,
    /// The event that decides on where typing is shown.
    pub(super) last: Option<Event>,
    pub(super) next_typing_ms: u64,
    pub(super) next_liveness_ms: u64,
    /// Which reactions stand: the events, in hex.
    pub(super) marked: Vec<EventId>,
}

impl Turn {
    pub(super) fn new(id: String, channel: Option<String>, now_ms: u64) -> Self {
        Self {
            id,
            channel,
            started_ms: now_ms,
            phase: Phase::Gathering,
            session: None,
            is_new_session: false,
            waiting: 0,
            core: None,
            canvas: None,
            context: None,
            people: People::default(),
            clock: None,
            run: None,
            signal: None,
            cancelling: None,
            steering: None,
            last: None,
            next_typing_ms: u64::MAX,
            next_liveness_ms: u64::MAX,
            marked: Vec::new(),
        }
    }

    /// The name of its session among those of its slot.
    pub(super) fn session_key(&self) -> String {
        self.channel.clone().unwrap_or_default()
    }

    /// The agent has said something.
    pub(super) fn heard(&mut self, now_ms: u64) {
        if let Some(clock) = &mut self.clock {
            clock.heard_ms = now_ms;
        }
    }

    /// Whether the answer with this id is that of a steer.
    pub(super) fn is_steer(&self, id: u64) -> bool {
        self.steering.as_ref().is_some_and(|steering| steering.request == id)
    }

    pub(super) fn is_cancelling(&self) -> bool {
        self.cancelling.is_some() || self.signal.is_some()
    }

    /// Whether the agent works on something that can be cancelled.
    pub(super) fn is_prompting(&self) -> bool {
        matches!(self.phase, Phase::Initial | Phase::Prompting)
    }

    /// When something of it is due. `idle_ms` is how long it may be silent.
    pub(super) fn wake_at_ms(&self, idle_ms: u64) -> u64 {
        let cancel_ms = self.cancelling.map(|cancelling| match cancelling {
            Cancelling::Signal { until_ms, .. } => until_ms,
            Cancelling::Idle { since_ms, until_ms } => {
                let heard_ms = self.clock.map_or(since_ms, |clock| clock.heard_ms).max(since_ms);
                until_ms.min(heard_ms + IDLE_CANCEL_MS)
            }
        });
        let clock_ms = match (self.cancelling, self.clock, self.is_prompting()) {
            (None, Some(clock), true) => Some(clock.hard_until_ms.min(clock.heard_ms + idle_ms)),
            _ => None,
        };
        let dues = [Some(self.next_typing_ms), Some(self.next_liveness_ms), cancel_ms, clock_ms];
        dues.into_iter().flatten().min().unwrap_or(u64::MAX)
    }
}
