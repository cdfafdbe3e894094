//! What becomes of an event: whether it is answered, by which rule, and what it does to a turn that runs.

use std::collections::{BTreeMap, VecDeque};

use waxlog_nostr::{Event, PublicKey};

use super::signals::Signal;
use super::Machine;
use crate::effect::Level;
use crate::gate::{self, Command, Verdict};
use crate::prompt::ChannelKind;
use crate::queue::{Pushed, Queued};
use crate::rules;
use crate::settings::Handling;
use crate::step::Step;

/// How many undecided events are kept per channel; the oldest gives way.
const UNDECIDED_MAX: usize = 500;

/// Events that wait for a verdict, channel by channel in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Inbox {
    undecided: BTreeMap<String, VecDeque<Undecided>>,
}

#[derive(Clone, Debug)]
struct Undecided {
    event: Event,
    received_ms: u64,
    /// The channel was looked up for it, without success.
    has_asked_channel: bool,
    /// The author was looked up for it, without success.
    has_asked_author: bool,
}

impl Inbox {
    /// A new process asks again what it needs to know.
    pub(super) fn restart(&mut self) {
        for undecided in self.undecided.values_mut().flatten() {
            (undecided.has_asked_channel, undecided.has_asked_author) = (false, false);
        }
    }

    fn push(&mut self, channel: &str, event: Event, received_ms: u64) -> Option<Event> {
        let lane = self.undecided.entry(channel.to_owned()).or_default();
        lane.push_back(Undecided { event, received_ms, has_asked_channel: false, has_asked_author: false });
        let is_over = lane.len() > UNDECIDED_MAX;
        is_over.then(|| lane.pop_front()).flatten().map(|oldest| oldest.event)
    }

    pub(super) fn drain(&mut self, channel: &str) {
        self.undecided.remove(channel);
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.undecided.values().map(VecDeque::len).sum()
    }

    fn channels(&self) -> Vec<String> {
        self.undecided.keys().cloned().collect()
    }
}

/// What the head of a channel's line needs.
enum Need {
    Verdict(bool),
    Channel,
    Author(PublicKey),
}

impl Machine {
    /// A new event of a channel that is subscribed to.
    pub(super) fn channel_event(&mut self, step: &mut Step, channel: &str, event: Event) {
        if event.pubkey == self.set().agent && !self.set().answer_self {
            return;
        }
        if let Some(command) = gate::command(self.set(), &event) {
            return self.obey(step, channel, command);
        }
        if let Some(lost) = self.inbox.push(channel, event, step.now_ms) {
            let text =
                format!("event {} was given up: more than {UNDECIDED_MAX} wait in its channel", lost.id);
            step.tell(Level::Error, text);
        }
        self.decide_channel(step, channel);
    }

    fn obey(&mut self, step: &mut Step, channel: &str, command: Command) {
        match command {
            Command::Shutdown => self.stop_asked(step, "!shutdown"),
            Command::Cancel => {
                self.signal_channel(step, channel, Signal::Cancel);
            }
            Command::Rotate => {
                if !self.signal_channel(step, channel, Signal::Rotate) {
                    self.pool.forget_idle_sessions(channel);
                }
            }
        }
    }

    /// Decides on what waits in all channels.
    pub(super) fn decide_inbox(&mut self, step: &mut Step) {
        for channel in self.inbox.channels() {
            self.decide_channel(step, &channel);
        }
    }

    /// Decides on what waits in a channel, up to the first event that something must be found out for.
    fn decide_channel(&mut self, step: &mut Step, channel: &str) {
        loop {
            let lane = self.inbox.undecided.get(channel);
            let Some(head) = lane.and_then(VecDeque::front) else {
                self.inbox.undecided.remove(channel);
                return;
            };
            match self.need(channel, head) {
                Need::Channel => return self.query_channel(step, channel),
                Need::Author(author) => return self.query_author(step, author),
                Need::Verdict(is_answered) => {
                    let head = self.inbox.undecided.get_mut(channel).and_then(VecDeque::pop_front);
                    if let (Some(head), true) = (head, is_answered) {
                        self.accept(step, channel, head);
                    }
                }
            }
        }
    }

    fn need(&self, channel: &str, head: &Undecided) -> Need {
        let known = self.channels.kind(channel);
        let kind = known.or(head.has_asked_channel.then_some(ChannelKind::Unknown));
        match self.gate.verdict(self.set(), &head.event.pubkey, kind) {
            Verdict::Pass => Need::Verdict(true),
            Verdict::Stop => Need::Verdict(false),
            Verdict::NeedsChannel => Need::Channel,
            Verdict::NeedsAuthor if head.has_asked_author => Need::Verdict(false),
            Verdict::NeedsAuthor => Need::Author(head.event.pubkey),
        }
    }

    /// A channel was looked up, with or without success.
    pub(super) fn channel_resolved(&mut self, step: &mut Step, channel: &str) {
        if let Some(head) = self.inbox.undecided.get_mut(channel).and_then(VecDeque::front_mut) {
            head.has_asked_channel = true;
        }
        self.decide_channel(step, channel);
    }

    /// An author was looked up, with or without success.
    pub(super) fn author_resolved(&mut self, step: &mut Step, author: &PublicKey, is_unknown: bool) {
        let heads = self.inbox.undecided.values_mut().filter_map(VecDeque::front_mut);
        for head in heads.filter(|head| head.event.pubkey == *author) {
            head.has_asked_author = is_unknown;
        }
        self.decide_inbox(step);
    }

    /// The author is answered: the rules say whether the event is.
    fn accept(&mut self, step: &mut Step, channel: &str, undecided: Undecided) {
        let Undecided { event, received_ms, .. } = undecided;
        let tag = match self.rules.verdict(&event, channel, &self.set().agent) {
            rules::Verdict::Prompt(tag) => tag,
            rules::Verdict::Nothing => return,
            rules::Verdict::Failed { rule, reason } => {
                let text = format!(
                    "event {} is not answered: the filter of rule {rule:?} failed: {reason}",
                    event.id
                );
                return step.tell(Level::Warn, text);
            }
        };
        let (id, author) = (event.id, event.pubkey);
        match self.queue.push(channel, Queued { event, tag, received_ms }) {
            Pushed::Refused => return,
            Pushed::Taken => {}
            Pushed::TakenFor(oldest) => {
                step.tell(Level::Error, format!("event {oldest} was given up: too many wait in its channel"));
                self.unmark_waiting(step, &oldest);
            }
        }
        self.mark_waiting(step, &id);
        if self.queue.is_in_flight(channel) {
            self.interject(step, channel, &author);
        }
    }

    /// An event came for a channel whose turn runs.
    fn interject(&mut self, step: &mut Step, channel: &str, author: &PublicKey) {
        let is_owner = self.set().owner.as_ref() == Some(author);
        match self.set().handling {
            Handling::Queue => {}
            Handling::Steer => self.steer_channel(step, channel),
            Handling::OwnerInterrupt if !is_owner => {}
            Handling::Interrupt | Handling::OwnerInterrupt => {
                self.signal_channel(step, channel, Signal::Interrupt);
            }
        }
    }
}
