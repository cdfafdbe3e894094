//! Signs of life: reactions on what is worked on, typing, presence, and the heartbeat.

use waxlog_nostr::thread::Shown;
use waxlog_nostr::{kind, Event, EventId};

use super::turn::Turn;
use super::Machine;
use crate::effect::Effect;
use crate::step::Step;

/// On what waits.
const EYES: &str = "\u{1f440}";
/// On what is worked on.
const BALLOON: &str = "\u{1f4ac}";
/// How long marking may take.
const MARK_MS: u64 = 500;
/// How long each request of taking a mark back may take.
const UNMARK_MS: u64 = 1_000;
const TYPING_MS: u64 = 3_000;
const PRESENCE_MS: u64 = 60_000;
/// How often what has passed is thrown out of the queue.
const COMPACT_MS: u64 = 30_000;

/// What is done again and again.
#[derive(Clone, Debug, Default)]
pub(super) struct Beats {
    pub(super) started_ms: u64,
    /// The relay has known us since the start.
    pub(super) is_joined: bool,
    /// Channels are found: turns may begin.
    pub(super) is_ready: bool,
    next_presence_ms: Option<u64>,
    next_heartbeat_ms: Option<u64>,
    next_compact_ms: Option<u64>,
}

impl Beats {
    pub(super) fn restart(&mut self, now_ms: u64) {
        *self = Self { started_ms: now_ms, ..Self::default() };
    }

    pub(super) fn wake_at_ms(&self) -> Option<u64> {
        [self.next_presence_ms, self.next_heartbeat_ms, self.next_compact_ms].into_iter().flatten().min()
    }
}

impl Machine {
    /// The harness listens: this is what callers take as the sign that it does.
    pub(super) fn announce(&mut self, step: &mut Step) {
        let heartbeat_ms = self.set().heartbeat_ms;
        self.beats.next_heartbeat_ms = (heartbeat_ms > 0).then(|| step.now_ms + heartbeat_ms);
        self.beats.next_compact_ms = Some(step.now_ms + COMPACT_MS);
        if self.set().presence {
            self.beats.next_presence_ms = Some(step.now_ms + PRESENCE_MS);
            self.publish_presence(step, "online");
        }
    }

    pub(super) fn publish_presence(&mut self, step: &mut Step, status: &str) {
        if self.set().presence {
            let draft = step.draft(kind::PRESENCE, status);
            self.link.publish(step, draft);
        }
    }

    pub(super) fn beat(&mut self, step: &mut Step) {
        let now_ms = step.now_ms;
        let is_due = |due_ms: Option<u64>| due_ms.is_some_and(|due_ms| due_ms <= now_ms);
        if is_due(self.beats.next_presence_ms) {
            self.beats.next_presence_ms = Some(now_ms + PRESENCE_MS);
            self.publish_presence(step, "online");
        }
        if is_due(self.beats.next_compact_ms) {
            self.beats.next_compact_ms = Some(now_ms + COMPACT_MS);
            self.queue.compact(now_ms);
        }
        if is_due(self.beats.next_heartbeat_ms) {
            self.beats.next_heartbeat_ms = Some(now_ms + self.set().heartbeat_ms);
            self.heartbeat(step);
        }
        self.show_typing(step);
    }

    /// Wakes an agent without a message, if nothing else is to be done.
    fn heartbeat(&mut self, step: &mut Step) {
        let is_busy =
            self.queue.has_work(step.now_ms) || self.turns.values().any(|turn| turn.channel.is_none());
        if is_busy || self.queue.is_any_in_flight() || self.stopping.is_some() {
            return;
        }
        if let Some(at) = self.pool.claim("") {
            self.begin_turn(step, at, None);
        }
    }

    /// A turn begins: from when on it shows that it is at work.
    pub(super) fn start_signs(&mut self, step: &Step, turn: &mut Turn) {
        if self.set().typing && turn.channel.is_some() {
            turn.next_typing_ms = step.now_ms;
        }
        let liveness_ms = self.set().liveness_ms;
        if liveness_ms > 0 && self.set().observer {
            turn.next_liveness_ms = step.now_ms + liveness_ms;
        }
    }

    fn show_typing(&mut self, step: &mut Step) {
        let due = self.turns.values_mut().filter(|turn| turn.next_typing_ms <= step.now_ms);
        let mut drafts = Vec::new();
        for turn in due {
            turn.next_typing_ms = step.now_ms + TYPING_MS;
            let Some(channel) = &turn.channel else { continue };
            let mut draft = step.draft(kind::TYPING, "").tag(["h", channel.as_str()]);
            for tag in turn.last.iter().flat_map(thread_tags) {
                draft = draft.tag(tag);
            }
            drafts.push(draft);
        }
        for draft in drafts {
            self.link.publish(step, draft);
        }
    }

    /// An event waits for an agent.
    pub(super) fn mark_waiting(&self, step: &mut Step, event: &EventId) {
        mark(step, event, EYES);
    }

    /// An event does not wait any more, without having been answered.
    pub(super) fn unmark_waiting(&self, step: &mut Step, event: &EventId) {
        unmark(step, event, EYES);
    }

    /// The agent begins to work on what the turn of a slot was asked.
    pub(super) fn mark_working(&self, step: &mut Step, at: usize) {
        for event in self.turns.get(&at).iter().flat_map(|turn| &turn.marked) {
            mark(step, event, BALLOON);
        }
    }

    /// A turn is over: its marks go, whatever came of it.
    pub(super) fn unmark(&self, step: &mut Step, turn: &Turn) {
        for event in &turn.marked {
            unmark(step, event, EYES);
            unmark(step, event, BALLOON);
        }
    }
}

fn mark(step: &mut Step, event: &EventId, content: &str) {
    let draft = step.draft(kind::REACTION, content).tag(["e", &event.to_hex()]);
    step.submit(draft, MARK_MS);
}

fn unmark(step: &mut Step, event: &EventId, content: &str) {
    let (event, content) = (event.to_hex(), content.to_owned());
    step.act(Effect::Unreact { event, content, budget_ms: UNMARK_MS });
}

/// The tags that show typing in the thread of an event.
fn thread_tags(event: &Event) -> Vec<Vec<String>> {
    let tag = |id: &str, marker: &str| vec!["e".to_owned(), id.to_owned(), String::new(), marker.to_owned()];
    match Shown::of(event) {
        None => Vec::new(),
        Some(thread) if thread.root == thread.parent => vec![tag(thread.parent, "reply")],
        Some(thread) => vec![tag(thread.root, "root"), tag(thread.parent, "reply")],
    }
}
