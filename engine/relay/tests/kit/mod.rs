//! A relay without its network, and people who use it.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used, clippy::new_without_default)]

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{json, Value};
use tempfile::TempDir;
use waxlog_nostr::nip44::ConversationKey;
use waxlog_nostr::owner::OwnerTag;
use waxlog_nostr::{Draft, Event, EventId, Filter, Keys, PublicKey};
use waxlog_relay::{Asker, ChannelId, Desk, Live, LiveEvent, Refusal, Reply, Settings, Submission, Via};

/// The time of all tests, in seconds since 1970.
pub const NOW: u64 = 1_800_000_000;

pub struct Relay {
    pub desk: Option<Desk>,
    pub folder: TempDir,
    pub keys: Keys,
    clock: AtomicU64,
}

/// Someone with a key, and perhaps an owner.
#[derive(Clone)]
pub struct Person {
    pub keys: Keys,
    pub owner: Option<PublicKey>,
}

impl Person {
    pub fn new() -> Self {
        Self { keys: Keys::generate(), owner: None }
    }

    pub fn key(&self) -> PublicKey {
        self.keys.public_key()
    }

    pub fn hex(&self) -> String {
        self.key().to_hex()
    }

    pub fn on(&self, via: Via) -> Asker {
        Asker { pubkey: self.key(), owner: self.owner, via }
    }

    pub fn sign(&self, kind: u16, content: &str, tags: Value, at: u64) -> Event {
        self.keys.sign(Draft {
            kind,
            tags: serde_json::from_value(tags).unwrap(),
            content: content.to_owned(),
            created_at: at,
        })
    }

    /// A text that only `to` reads.
    pub fn seal(&self, to: &PublicKey, text: &str) -> String {
        ConversationKey::new(&self.keys, to).unwrap().encrypt(text).unwrap()
    }
}

impl Relay {
    pub fn new() -> Self {
        Self::with(Settings::default())
    }

    pub fn with(settings: Settings) -> Self {
        let (folder, keys) = (tempfile::tempdir().unwrap(), Keys::generate());
        let desk = Desk::open(folder.path(), settings, keys.clone()).unwrap();
        Self { desk: Some(desk), folder, keys, clock: AtomicU64::new(NOW) }
    }

    pub fn desk(&self) -> &Desk {
        self.desk.as_ref().unwrap()
    }

    pub fn reopen(&mut self) {
        drop(self.desk.take());
        self.desk = Some(Desk::open(self.folder.path(), Settings::default(), self.keys.clone()).unwrap());
    }

    /// A new second begins.
    pub fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub fn now(&self) -> u64 {
        self.clock.load(Ordering::Relaxed)
    }

    pub fn submit(&self, who: &Person, event: &Event) -> Submission {
        self.desk().submit(event.clone(), &who.on(Via::Socket), self.now())
    }

    /// Sends an event of now and gives what came of it.
    pub fn try_send(&self, who: &Person, kind: u16, content: &str, tags: Value) -> (Event, Submission) {
        let event = who.sign(kind, content, tags, self.tick());
        let submission = self.submit(who, &event);
        (event, submission)
    }

    /// Sends an event that is taken.
    pub fn send(&self, who: &Person, kind: u16, content: &str, tags: Value) -> Event {
        let (event, submission) = self.try_send(who, kind, content, tags);
        assert!(submission.reply.accepted, "{:?}", submission.reply);
        event
    }

    /// Sends an event that is not taken and gives the text.
    pub fn refuse(&self, who: &Person, kind: u16, content: &str, tags: Value) -> String {
        let (_, submission) = self.try_send(who, kind, content, tags);
        assert!(!submission.reply.accepted, "taken: {:?}", submission.reply);
        assert_eq!(submission.live, [], "a refused event is passed on");
        submission.reply.message.into_owned()
    }

    pub fn channel(&self, owner: &Person, visibility: &str) -> String {
        let id = ChannelId::from_random(*b"0123456789abcdef").to_string();
        let id = format!("{:08x}{}", self.tick() as u32, &id[8..]);
        self.send(owner, 9007, "", json!([["h", id], ["name", "general"], ["visibility", visibility]]));
        id
    }

    pub fn add(&self, actor: &Person, channel: &str, target: &Person, role: &str) {
        self.send(actor, 9000, "", json!([["h", channel], ["p", target.hex()], ["role", role]]));
    }

    pub fn say(&self, who: &Person, channel: &str, text: &str) -> Event {
        self.send(who, 9, text, json!([["h", channel]]))
    }

    pub fn ask(&self, who: &Person, via: Via, filters: Value) -> Result<Vec<Event>, Refusal> {
        let filters = filters_of(&filters);
        let rows = self.desk().query(&filters, &who.on(via), self.now())?;
        Ok(rows.into_iter().map(|row| row.event).collect())
    }

    /// What a socket gets for one filter.
    pub fn get(&self, who: &Person, filter: Value) -> Vec<Event> {
        self.ask(who, Via::Socket, json!([filter])).unwrap()
    }

    /// What the bridge gives for one filter.
    pub fn fetch(&self, who: &Person, filter: Value) -> Vec<Event> {
        self.ask(who, Via::Http, json!([filter])).unwrap()
    }

    pub fn count(&self, who: &Person, filter: Value) -> Result<u64, Refusal> {
        self.desk().count(&filters_of(&json!([filter])), &who.on(Via::Socket))
    }

    /// Makes `agent` the agent of `owner`, as a login with the owner's tag does.
    pub fn attest(&self, agent: &mut Person, owner: &Person) {
        let tag = OwnerTag::issue(&owner.keys, &agent.key(), "").unwrap();
        let proved = self.desk().attest(&agent.key(), &tag, self.now()).unwrap();
        assert_eq!(proved, Some(owner.key()));
        agent.owner = proved;
    }

    /// The roles in the relay's last list of members, by key.
    pub fn roles(&self, reader: &Person, channel: &str) -> Vec<(String, String)> {
        let [list] = &self.get(reader, json!({"kinds": [39002], "#d": [channel]}))[..] else {
            panic!("no list of members")
        };
        let mut roles: Vec<_> = list.tags_named("p").map(|tag| (tag[1].clone(), tag[3].clone())).collect();
        roles.sort();
        roles
    }

    pub fn told(&self, reader: &Person, channel: &str) -> Vec<Value> {
        let events = self.get(reader, json!({"kinds": [40099], "#h": [channel]}));
        let mut told: Vec<Value> =
            events.iter().map(|event| serde_json::from_str(&event.content).unwrap()).collect();
        told.reverse();
        told
    }
}

pub fn filters_of(filters: &Value) -> Vec<Filter> {
    filters.as_array().unwrap().iter().map(|filter| Filter::from_json(filter).unwrap()).collect()
}

pub fn ids(events: &[Event]) -> Vec<EventId> {
    events.iter().map(|event| event.id).collect()
}

pub fn contents(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| &*event.content).collect()
}

/// The events that a submission passes on.
pub fn passed(submission: &Submission) -> Vec<&LiveEvent> {
    submission
        .live
        .iter()
        .filter_map(|live| match live {
            Live::Event(event) => Some(event),
            Live::Revoked { .. } => None,
        })
        .collect()
}

pub fn kinds_passed(submission: &Submission) -> Vec<u16> {
    passed(submission).iter().map(|live| live.event.kind).collect()
}

pub fn accepted(reply: &Reply) -> (bool, &str) {
    (reply.accepted, &reply.message)
}
