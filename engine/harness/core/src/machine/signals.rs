//! Signals to a running turn: each ends it early, and says what becomes of what it was asked.

use serde_json::json;

use super::turn::{Cancelling, CANCEL_MS};
use super::Machine;
use crate::queue::Why;
use crate::step::Step;

/// What ends a turn early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// It is not wanted any more.
    Cancel,
    /// Its session is to begin anew.
    Rotate,
    /// A message came that belongs to it.
    Steer,
    /// A message came that takes its place.
    Interrupt,
    /// Its session gets another model.
    SwitchModel,
}

impl Signal {
    /// How what was asked is asked again, if it is.
    pub(super) fn asks_again(self) -> Option<Why> {
        match self {
            Self::Cancel | Self::Rotate => None,
            Self::Steer => Some(Why::Steer),
            Self::Interrupt | Self::SwitchModel => Some(Why::Interrupt),
        }
    }
}

impl Machine {
    /// The slot in which a channel's turn runs.
    pub(super) fn slot_of_channel(&self, channel: &str) -> Option<usize> {
        self.turns.iter().find(|(_, turn)| turn.channel.as_deref() == Some(channel)).map(|(at, _)| *at)
    }

    /// Signals a channel's turn. Whether one runs; the first signal of a turn counts.
    pub(super) fn signal_channel(&mut self, step: &mut Step, channel: &str, signal: Signal) -> bool {
        let Some(at) = self.slot_of_channel(channel) else { return false };
        self.signal_slot(step, at, signal);
        true
    }

    /// Signals the turn of a slot. Whether the signal is the turn's first.
    pub(super) fn signal_slot(&mut self, step: &mut Step, at: usize, signal: Signal) -> bool {
        let Some(turn) = self.turns.get_mut(&at).filter(|turn| !turn.is_cancelling()) else { return false };
        turn.signal = Some(signal);
        self.cancel_if_signalled(step, at);
        true
    }

    /// Cancels the prompt that a signal has come for. One that came while the turn was made ready is kept
    /// until the prompt was written, so that the agent has seen what it is told to leave.
    pub(super) fn cancel_if_signalled(&mut self, step: &mut Step, at: usize) {
        let Some(turn) = self.turns.get_mut(&at) else { return };
        let (Some(signal), None, true) = (turn.signal, turn.cancelling, turn.is_prompting()) else { return };
        turn.cancelling = Some(Cancelling::Signal { signal, until_ms: step.now_ms + CANCEL_MS });
        self.send_cancel(step, at);
    }

    pub(super) fn send_cancel(&mut self, step: &mut Step, at: usize) {
        if let Some(session) = self.turns.get(&at).and_then(|turn| turn.session.clone()) {
            self.notify(step, at, "session/cancel", &json!({"sessionId": session}));
        }
    }
}
