//! The machine: all of the harness's state, and what each record does to it.

mod agents;
mod channels;
mod control;
mod events;
mod metrics;
mod opening;
mod outcome;
mod pool;
mod publish;
mod queries;
mod recovery;
mod signals;
mod start;
mod steer;
mod stop;
mod ticks;
mod turn;
mod view;

use std::collections::BTreeMap;

use crate::effect::Effect;
use crate::gate::Gate;
use crate::link::{Link, News};
use crate::queue::Queue;
use crate::record::{Happened, Head, Record};
use crate::rules::Rules;
use crate::settings::Settings;
use crate::step::{Effects, Step};
use crate::usage::Tracker;

use channels::Channels;
use events::Inbox;
use metrics::Metrics;
use pool::Pool;
use publish::Beats;
use queries::Queries;
use recovery::Interrupted;
use stop::Stopping;
use turn::Turn;
use view::View;

pub use view::TurnView;

/// The harness as a fold over its records.
pub struct Machine {
    settings: Option<Settings>,
    rules: Rules,
    effects: Effects,
    /// The newest record's time.
    last_ms: u64,
    link: Link,
    channels: Channels,
    gate: Gate,
    inbox: Inbox,
    queue: Queue,
    pool: Pool,
    /// The running turns by their slots.
    turns: BTreeMap<usize, Turn>,
    queries: Queries,
    tracker: Tracker,
    metrics: Metrics,
    interrupted: Vec<Interrupted>,
    beats: Beats,
    view: View,
    stopping: Option<Stopping>,
    /// What became of turns, for who looks at the log.
    history: Vec<TurnView>,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            settings: None,
            rules: Rules::default(),
            effects: Effects::default(),
            last_ms: 0,
            link: Link::default(),
            channels: Channels::default(),
            gate: Gate::default(),
            inbox: Inbox::default(),
            queue: Queue::new(0, false),
            pool: Pool::default(),
            turns: BTreeMap::new(),
            queries: Queries::default(),
            tracker: Tracker::default(),
            metrics: Metrics::default(),
            interrupted: Vec::new(),
            beats: Beats::default(),
            view: View::default(),
            stopping: None,
            history: Vec::new(),
        }
    }
}

impl Machine {
    /// A machine to which nothing has happened.
    pub fn new() -> Self {
        Self::default()
    }

    /// The record that an occurrence is, if it means anything now. The driver gives the time and a random
    /// seed.
    pub fn admit(&self, happened: Happened, raw: Vec<u8>, at_ms: u64, seed: u64) -> Option<Record> {
        let at_ms = at_ms.max(self.last_ms);
        let is_due = || self.wake_at_ms().is_some_and(|due_ms| due_ms <= at_ms);
        match happened {
            Happened::TimePassed if !is_due() => None,
            happened => {
                let head = Head { seed, trail: self.effects.trail(), happened };
                Some(Record { at_ms, head, raw })
            }
        }
    }

    /// Takes one record. Total: whatever the record says, this ends and nothing panics.
    pub fn fold(&mut self, record: &Record) {
        let before_ms = self.last_ms;
        self.last_ms = record.at_ms.max(self.last_ms);
        let mut effects = std::mem::take(&mut self.effects);
        let mut step = Step::new(self.last_ms, record.head.seed, &mut effects);
        match &record.head.happened {
            Happened::ProcessStarted { settings, .. } => self.process_started(&mut step, settings, before_ms),
            happened if self.settings.is_some() => self.take(&mut step, happened, &record.raw),
            _ => {}
        }
        if self.settings.is_some() {
            self.settle(&mut step);
        }
        self.effects = effects;
    }

    fn take(&mut self, step: &mut Step, happened: &Happened, raw: &[u8]) {
        let text = || String::from_utf8_lossy(raw);
        match happened {
            Happened::ProcessStarted { .. } => {}
            Happened::RelayOpened => self.link.opened(step),
            Happened::RelayRefused { class, reason } => {
                let news = self.link.refused(step, *class, reason);
                self.hear(step, news);
            }
            Happened::RelayFrame { link, forged } => {
                let news = self.link.frame(step, *link, &text(), forged.as_deref());
                self.hear(step, news);
            }
            Happened::RelayLost { link, reason } => {
                let news = self.link.lost(step, *link, reason);
                self.hear(step, news);
            }
            Happened::RelayPonged { link } => self.link.ponged(*link),
            Happened::QueryAnswered { query, outcome, forged } => {
                self.query_answered(step, *query, outcome, forged, raw);
            }
            Happened::MemoryRead { query, found } => self.memory_read(step, *query, *found, &text()),
            Happened::AgentSpawned { child, pid } => self.agent_spawned(step, *child, *pid),
            Happened::AgentNotSpawned { child, reason } => self.agent_not_spawned(step, *child, reason),
            Happened::AgentLine { child } => self.agent_line(step, *child, raw),
            Happened::AgentEnded { child, how } => self.agent_ended(step, *child, how),
            Happened::TimePassed => self.time_passed(step),
            Happened::MetricSealed { turn } => self.metric_sealed(step, turn, &text()),
            Happened::MetricSent { turn, outcome } => self.metric_sent(step, turn, outcome, &text()),
            Happened::UsageFound { turn, is_known } => self.usage_found(step, turn, *is_known, raw),
            Happened::ControlOpened => self.control_opened(step, &text()),
            Happened::StopAsked { by } => self.stop_asked(step, by),
        }
    }

    fn hear(&mut self, step: &mut Step, news: Vec<News>) {
        for one in news {
            match one {
                News::Up => self.link_up(step),
                News::Lost => {}
                News::Channel { channel, event } => self.channel_event(step, &channel, event),
                News::Membership(event) => self.membership_event(step, &event),
                News::Control(event) => step.act(Effect::OpenControl { event: event.to_json() }),
                News::Denied { channel, why } => self.channel_denied(step, &channel, &why),
                News::Unusable { reason } => self.unusable(step, &reason),
            }
        }
    }

    /// What follows from the state, whatever the record was: turns are begun while there is work and an agent.
    fn settle(&mut self, step: &mut Step) {
        self.dispatch(step);
        self.show_view(step);
        self.end_if_stopped(step);
    }

    /// Takes the effects that wait.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        self.effects.take()
    }

    /// The digest of all effects so far.
    pub fn trail(&self) -> String {
        self.effects.trail()
    }

    /// The settings of the newest process.
    pub fn settings(&self) -> Option<&Settings> {
        self.settings.as_ref()
    }

    /// How many events wait or are being answered.
    pub fn pending(&self) -> usize {
        self.queue.pending() + self.inbox.len()
    }

    /// What became of the turns so far, oldest first.
    pub fn turns(&self) -> &[TurnView] {
        &self.history
    }

    /// The settings. Nothing but a process's start is folded without any.
    fn set(&self) -> &Settings {
        self.settings
            .as_ref()
            .unwrap_or_else(|| unreachable!("records before a process's start are passed over"))
    }
}
