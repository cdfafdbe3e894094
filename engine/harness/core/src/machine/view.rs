//! The owner's view: frames that show what the harness and its agents do, and what became of each turn.

use serde_json::{json, Value};
use waxlog_nostr::observer::{Merger, Pacer, TelemetryFrame};

use super::turn::Turn;
use super::Machine;
use crate::prompt::time_ms_text;
use crate::step::Step;

/// How many ended turns are remembered.
const HISTORY_MAX: usize = 10_000;
/// How many frames wait for their time; the oldest gives way.
const WAITING_MAX: usize = 1_000;

/// What became of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnView {
    /// The turn.
    pub turn: String,
    /// Where; none for a heartbeat.
    pub channel: Option<String>,
    /// The agent's session.
    pub session: Option<String>,
    /// When it began, in milliseconds since 1970.
    pub started_ms: u64,
    /// When it ended, in milliseconds since 1970.
    pub ended_ms: u64,
    /// `ok`, or what went wrong.
    pub outcome: String,
    /// In words.
    pub text: String,
}

impl TurnView {
    pub(super) fn ended(turn: &Turn, ended_ms: u64, outcome: &str, text: &str) -> Self {
        Self {
            turn: turn.id.clone(),
            channel: turn.channel.clone(),
            session: turn.session.clone(),
            started_ms: turn.started_ms,
            ended_ms,
            outcome: outcome.to_owned(),
            text: text.to_owned(),
        }
    }
}

/// The frames on their way.
#[derive(Debug, Default)]
pub(super) struct View {
    seq: u64,
    merger: Merger,
    pacer: Option<Pacer>,
    waiting: std::collections::VecDeque<TelemetryFrame>,
}

impl View {
    pub(super) fn wake_at_ms(&self) -> Option<u64> {
        let paced = self.pacer.as_ref().filter(|_| !self.waiting.is_empty()).map(Pacer::ready_at_ms);
        paced.into_iter().chain(self.merger.due_at_ms()).min()
    }

    fn hold(&mut self, frames: Vec<TelemetryFrame>) {
        for frame in frames {
            if self.waiting.len() >= WAITING_MAX {
                self.waiting.pop_front();
            }
            self.waiting.push_back(frame);
        }
    }
}

/// What a frame is about.
#[derive(Default)]
struct About {
    agent: Option<u64>,
    channel: Option<String>,
    session: Option<String>,
    turn: Option<String>,
    started_ms: Option<u64>,
}

impl Machine {
    fn is_viewed(&self) -> bool {
        self.set().observer && self.set().owner.is_some()
    }

    /// A new process: the owner is told of it.
    pub(super) fn start_view(&mut self, step: &mut Step) {
        self.view = View { pacer: Some(Pacer::new(step.now_ms)), ..View::default() };
        let settings = self.set();
        let payload = json!({
            "relayUrl": settings.relay_url,
            "agentCommand": settings.agent_command.program,
            "agentArgs": settings.agent_command.args,
            "parallelism": settings.agents,
            "relayObserver": settings.observer,
        });
        self.show(step, "harness_started", payload, About::default());
    }

    fn show(&mut self, step: &Step, kind: &str, payload: Value, about: About) {
        if !self.is_viewed() {
            return;
        }
        self.view.seq += 1;
        let frame = TelemetryFrame {
            agent_index: about.agent,
            channel_id: about.channel,
            session_id: about.session,
            turn_id: about.turn,
            started_at: about.started_ms.map(time_ms_text),
            ..TelemetryFrame::new(self.view.seq, time_ms_text(step.now_ms), kind, payload)
        };
        let ready = self.view.merger.push(frame, step.now_ms);
        self.view.hold(ready);
    }

    /// A frame about what a slot does.
    pub(super) fn show_of_slot(&mut self, step: &Step, at: usize, kind: &str, payload: Value) {
        let agent = u64::try_from(at).ok();
        let about = match self.turns.get(&at) {
            None => About { agent, ..About::default() },
            Some(turn) => About {
                agent,
                channel: turn.channel.clone(),
                session: turn.session.clone().filter(|_| !matches!(kind, "turn_started" | "turn_completed")),
                turn: Some(turn.id.clone()),
                started_ms: Some(turn.started_ms),
            },
        };
        self.show(step, kind, payload, about);
    }

    /// A line of ACP. The secret key is not in what the fold writes, so it cannot be in here.
    pub(super) fn show_line(&mut self, step: &Step, at: usize, kind: &str, line: &str) {
        if self.is_viewed() {
            let message = serde_json::from_str(line).unwrap_or_else(|_| json!(line));
            self.show_of_slot(step, at, kind, message);
        }
    }

    pub(super) fn show_invalid(&mut self, step: &Step, at: usize, raw: &[u8], reason: &str) {
        let line = String::from_utf8_lossy(raw);
        self.show_of_slot(step, at, "acp_parse_error", json!({"line": line, "error": reason}));
    }

    pub(super) fn show_resolved(&mut self, step: &Step, at: usize, session: &str) {
        let is_new = self.turns.get(&at).is_some_and(|turn| turn.is_new_session);
        self.show_of_slot(
            step,
            at,
            "session_resolved",
            json!({"sessionId": session, "isNewSession": is_new}),
        );
    }

    pub(super) fn show_config(&mut self, step: &Step, at: usize, session: &Value) {
        let is_overridden = self.pool.slots[at].overridden.is_some();
        let payload = json!({
            "configOptions": session["configOptions"],
            "modes": session["modes"],
            "models": session["models"],
            "modelOverridden": is_overridden,
            "relayUrl": self.set().relay_url,
        });
        self.show_of_slot(step, at, "session_config_captured", payload);
    }

    pub(super) fn show_lifecycle(&mut self, step: &Step, lifecycle: &str, error: Option<&str>) {
        if !self.set().lazy_pool {
            return;
        }
        let payload = json!({
            "pubkey": self.set().agent,
            "relayUrl": self.set().relay_url,
            "startNonce": self.set().start_nonce,
            "error": error,
            "lifecycle": lifecycle,
        });
        self.show(step, "managed_agent_runtime_lifecycle", payload, About::default());
    }

    /// The answer to an order of the owner.
    pub(super) fn show_control(&mut self, step: &Step, channel: &str, payload: Value) {
        let about = About { channel: Some(channel.to_owned()), ..About::default() };
        self.show(step, "control_result", payload, about);
    }

    /// Sends what is due. Frames wait until the channels are subscribed to.
    pub(super) fn show_view(&mut self, step: &mut Step) {
        if !self.beats.is_ready {
            return;
        }
        let View { pacer: Some(pacer), waiting, .. } = &mut self.view else { return };
        while pacer.ready_at_ms() <= step.now_ms {
            let Some(frame) = waiting.pop_front() else { return };
            pacer.sent(step.now_ms);
            self.link.observe(step, frame.to_fitting_json());
        }
    }

    pub(super) fn tick_view(&mut self, step: &mut Step) {
        let due = self.view.merger.flush_due(step.now_ms);
        self.view.hold(due);
        let liveness_ms = self.set().liveness_ms;
        for at in self.turns.keys().copied().collect::<Vec<_>>() {
            let is_due = self.turns.get_mut(&at).is_some_and(|turn| {
                let is_due = turn.next_liveness_ms <= step.now_ms;
                if is_due {
                    turn.next_liveness_ms = step.now_ms + liveness_ms;
                }
                is_due
            });
            if is_due {
                self.show_of_slot(step, at, "turn_liveness", json!({}));
            }
        }
    }

    /// All that waits goes now, as the process is about to end.
    pub(super) fn flush_view(&mut self, step: &mut Step) {
        let rest = self.view.merger.flush();
        self.view.hold(rest);
        self.show_view(step);
    }

    pub(super) fn remember(&mut self, view: TurnView) {
        if self.history.len() >= HISTORY_MAX {
            self.history.remove(0);
        }
        self.history.push(view);
    }
}
