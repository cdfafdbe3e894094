//! Questions to the relay over HTTP: what each is for, and what its answer does.

use std::collections::BTreeMap;

use serde_json::{json, Value};
use waxlog_nostr::{kind, Event, PublicKey};

use super::{channels, Machine};
use crate::effect::{Effect, Level};
use crate::gate;
use crate::prompt::context;
use crate::record::{HttpOutcome, MemoryFound};
use crate::step::Step;

/// How long one attempt of a discovery may take.
const DISCOVERY_MS: u64 = 10_000;
/// How long one attempt to look a channel, a profile, a canvas or a memory up may take.
const LOOKUP_MS: u64 = 3_000;
const LOOKUP_WAIT_MS: u64 = 500;
/// How many events one discovery takes.
const DISCOVERY_MAX: usize = 1_000;

/// What a question is for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Purpose {
    /// The channels that the agent is in.
    Memberships,
    /// What these channels are.
    Descriptions(Vec<String>),
    /// What one channel is.
    Channel(String),
    /// Whose agent an author is; the channel whose event waits for it.
    Author(PublicKey),
    /// Whether a batch was answered before its turn ended; after a restart the relay may need some time.
    Answered { turn: String, is_patient: bool },
    /// The agent's memory, for the turn of a slot.
    Memory(usize),
    /// The channel's canvas, for the turn of a slot.
    Canvas(usize),
    /// What was said before, for the turn of a slot.
    Context(usize),
    /// How many replies there are, for the turn of a slot.
    Count(usize),
    /// Who is who, for the turn of a slot.
    People(usize),
}

/// The questions that are open.
#[derive(Clone, Debug, Default)]
pub(super) struct Queries {
    open: BTreeMap<u64, Purpose>,
    last: u64,
}

impl Queries {
    /// A new process asks anew; numbers go on.
    pub(super) fn restart(&mut self) {
        self.open.clear();
    }

    pub(super) fn is_open(&self, purpose: &Purpose) -> bool {
        self.open.values().any(|open| open == purpose)
    }

    /// Takes down a question; gives its number.
    pub(super) fn ask(&mut self, purpose: Purpose) -> u64 {
        self.last += 1;
        self.open.insert(self.last, purpose);
        self.last
    }

    /// Forgets what a turn has asked, so that late answers mean nothing.
    pub(super) fn forget_slot(&mut self, slot: usize) {
        self.open.retain(|_, purpose| match purpose {
            Purpose::Memory(of)
            | Purpose::Canvas(of)
            | Purpose::Context(of)
            | Purpose::Count(of)
            | Purpose::People(of) => *of != slot,
            _ => true,
        });
    }
}

/// How a question is asked.
struct Manner {
    path: &'static str,
    timeout_ms: u64,
    retries: u32,
    wait_ms: u64,
}

impl Purpose {
    fn manner(&self) -> Manner {
        let query = |timeout_ms, retries, wait_ms| Manner { path: "/query", timeout_ms, retries, wait_ms };
        match self {
            Self::Memberships | Self::Descriptions(_) => query(DISCOVERY_MS, 3, LOOKUP_WAIT_MS),
            Self::Answered { is_patient: true, .. } => query(DISCOVERY_MS, 3, LOOKUP_WAIT_MS),
            Self::Answered { is_patient: false, .. } => query(LOOKUP_MS, 0, 0),
            Self::Author(_) => query(gate::LOOKUP_MS, 0, 0),
            Self::Channel(_) => query(LOOKUP_MS, 1, LOOKUP_WAIT_MS),
            Self::Memory(_) | Self::Canvas(_) => query(LOOKUP_MS, 0, 0),
            Self::Context(_) | Self::People(_) => {
                query(context::FETCH_MS, context::FETCH_RETRIES, context::FETCH_WAIT_MS)
            }
            Self::Count(_) => {
                Manner { path: "/count", timeout_ms: context::COUNT_MS, retries: 0, wait_ms: 0 }
            }
        }
    }
}

impl Machine {
    pub(super) fn query(&mut self, step: &mut Step, purpose: Purpose, filters: Vec<Value>) {
        let Manner { path, timeout_ms, retries, wait_ms } = purpose.manner();
        let query = self.queries.ask(purpose);
        step.act(Effect::Query { query, path, filters, timeout_ms, retries, wait_ms });
    }

    /// Asks for the agent's memory, which the driver opens.
    pub(super) fn query_memory(&mut self, step: &mut Step, slot: usize, owner: PublicKey) {
        let query = self.queries.ask(Purpose::Memory(slot));
        step.act(Effect::ReadMemory { query, owner, timeout_ms: LOOKUP_MS });
    }

    pub(super) fn query_memberships(&mut self, step: &mut Step) {
        let filter =
            json!({"kinds": [kind::CHANNEL_MEMBERS], "#p": [self.set().agent], "limit": DISCOVERY_MAX});
        self.query(step, Purpose::Memberships, vec![filter]);
    }

    pub(super) fn query_channel(&mut self, step: &mut Step, channel: &str) {
        let purpose = Purpose::Channel(channel.to_owned());
        if !self.queries.is_open(&purpose) {
            let filter = json!({"kinds": [kind::CHANNEL_METADATA], "#d": [channel], "limit": 1});
            self.query(step, purpose, vec![filter]);
        }
    }

    pub(super) fn query_author(&mut self, step: &mut Step, author: PublicKey) {
        let purpose = Purpose::Author(author);
        if !self.queries.is_open(&purpose) {
            let filter = json!({"kinds": [kind::PROFILE], "authors": [author], "limit": 1});
            self.query(step, purpose, vec![filter]);
        }
    }

    pub(super) fn query_answered(
        &mut self,
        step: &mut Step,
        query: u64,
        outcome: &HttpOutcome,
        forged: &[String],
        raw: &[u8],
    ) {
        let Some(purpose) = self.queries.open.remove(&query) else { return };
        let answer = Answer::read(outcome, forged, raw);
        match purpose {
            Purpose::Memberships => self.memberships_found(step, answer),
            Purpose::Descriptions(channels) => self.descriptions_found(step, channels, answer),
            Purpose::Channel(channel) => {
                self.learn_channels(answer.events());
                self.channel_resolved(step, &channel);
            }
            Purpose::Author(author) => self.author_found(step, author, &answer),
            Purpose::Answered { turn, .. } => self.answered_found(step, &turn, &answer),
            Purpose::Memory(slot) => self.memory_found(step, slot, None),
            Purpose::Canvas(slot) => self.canvas_found(step, slot, answer.events()),
            Purpose::Context(slot) => self.context_found(step, slot, answer.events().to_vec()),
            Purpose::Count(slot) => self.count_found(step, slot, answer.count()),
            Purpose::People(slot) => self.people_found(step, slot, answer.events()),
        }
    }

    pub(super) fn memory_read(&mut self, step: &mut Step, query: u64, found: MemoryFound, text: &str) {
        if let Some(Purpose::Memory(slot)) = self.queries.open.remove(&query) {
            self.memory_found(step, slot, Some((found, text)));
        }
    }

    /// Learns what these events say of channels. Gives those that can be written to.
    pub(super) fn learn_channels(&mut self, events: &[Event]) -> Vec<(String, bool)> {
        let mut described = Vec::new();
        for (channel, facts, is_archived) in events.iter().filter_map(channels::read) {
            self.channels.learn(channel.clone(), facts);
            described.push((channel, is_archived));
        }
        described
    }

    fn author_found(&mut self, step: &mut Step, author: PublicKey, answer: &Answer) {
        let owner = self.set().owner;
        match &answer.failure {
            None => self.gate.looked_up(owner.as_ref(), author, answer.events().first()),
            Some(reason) => {
                step.tell(Level::Warn, format!("the profile of {author} could not be read: {reason}"));
            }
        }
        let is_unknown = self.gate.is_unknown(&author);
        self.author_resolved(step, &author, is_unknown);
    }
}

/// What an answer says.
pub(super) struct Answer {
    /// Why it says nothing.
    pub(super) failure: Option<String>,
    events: Vec<Event>,
    count: Option<u64>,
}

impl Answer {
    fn read(outcome: &HttpOutcome, forged: &[String], raw: &[u8]) -> Self {
        let none = |why: String| Self { failure: Some(why), events: Vec::new(), count: None };
        match outcome {
            HttpOutcome::Failed { reason } => none(reason.clone()),
            HttpOutcome::TimedOut => none("no answer in time".to_owned()),
            HttpOutcome::Answered { status: 200 } => {
                let body: Value = serde_json::from_slice(raw).unwrap_or_default();
                let rows = body.as_array().map(Vec::as_slice).unwrap_or_default();
                let event = |row: &Value| serde_json::from_value::<Event>(row.clone()).ok();
                let is_true = |event: &Event| !forged.contains(&event.id.to_hex());
                let events = rows.iter().filter_map(event).filter(is_true).collect();
                Self { failure: None, events, count: body["count"].as_u64() }
            }
            HttpOutcome::Answered { status } => none(format!("status {status}")),
        }
    }

    /// The events that have passed their checks.
    pub(super) fn events(&self) -> &[Event] {
        &self.events
    }

    pub(super) fn count(&self) -> Option<u64> {
        self.count
    }
}
