//! Live subscriptions, found by what an event has: its channel, or one of its id, tags, author and kind.
//!
//! An event costs what it is delivered to, not how many subscriptions there are.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use serde_json::Value;
use waxlog_nostr::{EventId, Filter, PublicKey};

use super::connection::Connection;
use super::outbox::Outgoing;
use super::{lock, read, write};
use crate::channel::ChannelId;
use crate::desk::{Desk, Scope};
use crate::live::{Live, LiveEvent, Whom};
use crate::reply::ACCESS_REVOKED;

/// How many live events may wait for the stored ones of their subscription.
const MAX_WAITING: usize = 1_000;

/// What a subscription is found by. Each filter stands under one sort of key only.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Place {
    Channel(ChannelId),
    Id(EventId),
    Tag(char, String),
    Author(PublicKey),
    Kind(u16),
    Any,
}

/// Which live events a subscription takes.
enum Phase {
    /// Stored events are still being sent; live ones wait.
    Stored(Vec<LiveEvent>),
    /// Live. `sent` are stored events that the fan-out of events up to `until` may bring once more.
    Live {
        /// Ids that were sent as stored events.
        sent: HashSet<EventId>,
        /// The number of the last event that may be among them.
        until: u64,
    },
    /// Ended.
    Closed,
}

/// A live subscription.
pub(crate) struct Subscription {
    pub(crate) id: String,
    number: u64,
    head: Arc<str>,
    filters: Vec<Filter>,
    scope: Scope,
    reader: PublicKey,
    connection: Arc<Connection>,
    phase: Mutex<Phase>,
}

impl Subscription {
    /// How much memory its filters take, in bytes of their JSON.
    pub(crate) fn filter_bytes(filters: &[Filter]) -> usize {
        filters.iter().map(|filter| filter.to_json().to_string().len()).sum()
    }

    /// One stored event as a frame.
    pub(crate) fn frame(&self, json: Arc<str>) -> Outgoing {
        Outgoing::Event { head: self.head.clone(), json }
    }

    /// Takes no more events. After this none is put into the line.
    pub(crate) fn end(&self) {
        *lock(&self.phase) = Phase::Closed;
    }

    fn deliver(&self, number: u64, live: &LiveEvent) {
        let mut phase = lock(&self.phase);
        match &mut *phase {
            Phase::Closed => {}
            Phase::Stored(waiting) if waiting.len() < MAX_WAITING => waiting.push(live.clone()),
            // A reader so far behind counts as one with a full line.
            Phase::Stored(_) => self.connection.outbox.kill(),
            Phase::Live { sent, until } => {
                if number > *until && !sent.is_empty() {
                    *sent = HashSet::new();
                }
                if !sent.contains(&live.event.id) {
                    self.connection.outbox.deliver(self.frame(live.json.clone()));
                }
            }
        }
    }

    /// The stored events, those with these ids, have been sent: passes on what came meanwhile.
    /// `until` is the number of the last event of them that is yet to be passed on, if any is.
    fn go_live(&self, sent: HashSet<EventId>, until: Option<u64>) {
        let mut phase = lock(&self.phase);
        if let Phase::Stored(waiting) = &mut *phase {
            for live in waiting.drain(..).filter(|live| !sent.contains(&live.event.id)) {
                self.connection.outbox.deliver(self.frame(live.json));
            }
            *phase = match until {
                Some(until) => Phase::Live { sent, until },
                None => Phase::Live { sent: HashSet::new(), until: 0 },
            };
        }
    }

    fn places(&self) -> HashSet<Place> {
        match self.scope {
            Scope::Channel(channel) => HashSet::from([Place::Channel(channel)]),
            Scope::Global => self.filters.iter().flat_map(places).collect(),
        }
    }
}

/// Where a filter is found: under the field that few events share.
fn places(filter: &Filter) -> Vec<Place> {
    if let Some(ids) = &filter.ids {
        return ids.iter().map(|id| Place::Id(*id)).collect();
    }
    // A stored channel stands for `h`, so that tag is no sure key.
    if let Some((letter, values)) = filter.tags.iter().find(|(letter, _)| **letter != 'h') {
        return values.iter().map(|value| Place::Tag(*letter, value.clone())).collect();
    }
    if let Some(authors) = &filter.authors {
        return authors.iter().map(|author| Place::Author(*author)).collect();
    }
    match &filter.kinds {
        Some(kinds) => kinds.iter().map(|kind| Place::Kind(*kind)).collect(),
        None => vec![Place::Any],
    }
}

/// Where subscriptions to an event are found.
fn event_places(live: &LiveEvent) -> HashSet<Place> {
    if let Some(channel) = live.channel {
        return HashSet::from([Place::Channel(channel)]);
    }
    let event = &live.event;
    let mut places = HashSet::from([
        Place::Any,
        Place::Id(event.id),
        Place::Author(event.pubkey),
        Place::Kind(event.kind),
    ]);
    for tag in &event.tags {
        if let [name, value, ..] = tag.as_slice() {
            let mut letters = name.chars();
            if let (Some(letter), None) = (letters.next(), letters.next()) {
                places.insert(Place::Tag(letter, value.clone()));
            }
        }
    }
    places
}

/// All live subscriptions.
#[derive(Default)]
pub(crate) struct Hub {
    places: RwLock<HashMap<Place, HashMap<u64, Arc<Subscription>>>>,
    last_number: AtomicU64,
    admitted: AtomicU64,
    passed_on: AtomicU64,
}

impl Hub {
    /// Numbers an event that is about to be admitted. From here on a query may find it.
    pub(crate) fn number(&self) -> u64 {
        self.admitted.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Opens a subscription. Its live events wait until [`Self::go_live`].
    pub(crate) fn open(
        &self,
        connection: Arc<Connection>,
        id: String,
        filters: Vec<Filter>,
        scope: Scope,
        reader: PublicKey,
    ) -> Arc<Subscription> {
        let head = format!("[\"EVENT\",{},", Value::from(id.as_str())).into();
        let number = self.last_number.fetch_add(1, Ordering::Relaxed);
        let phase = Mutex::new(Phase::Stored(Vec::new()));
        let subscription =
            Arc::new(Subscription { id, number, head, filters, scope, reader, connection, phase });
        let mut places = write(&self.places);
        for place in subscription.places() {
            places.entry(place).or_default().insert(number, subscription.clone());
        }
        subscription
    }

    /// The number that [`Self::go_live`] needs: to be read when the query is done.
    pub(crate) fn admitted(&self) -> u64 {
        self.admitted.load(Ordering::SeqCst)
    }

    /// The stored events of a subscription are sent; `until` is what [`Self::admitted`] gave after the query.
    pub(crate) fn go_live(&self, subscription: &Subscription, sent: HashSet<EventId>, until: u64) {
        let is_through = self.passed_on.load(Ordering::SeqCst) >= until;
        subscription.go_live(sent, (!is_through).then_some(until));
    }

    /// Takes a subscription out.
    pub(crate) fn close(&self, subscription: &Subscription) {
        subscription.end();
        let mut places = write(&self.places);
        for place in subscription.places() {
            if let Some(here) = places.get_mut(&place) {
                here.remove(&subscription.number);
                if here.is_empty() {
                    places.remove(&place);
                }
            }
        }
    }

    /// Passes on what live subscriptions are told of the event with this number.
    pub(crate) fn pass_on(&self, desk: &Desk, number: u64, told: &[Live]) {
        for live in told {
            match live {
                Live::Event(live) => self.deliver(desk, number, live),
                Live::Revoked { channel, whom } => self.revoke(desk, channel, *whom),
            }
        }
    }

    /// All events up to this number have been passed on.
    pub(crate) fn passed_on(&self, number: u64) {
        self.passed_on.fetch_max(number, Ordering::SeqCst);
    }

    fn found(&self, wanted: impl IntoIterator<Item = Place>) -> HashMap<u64, Arc<Subscription>> {
        let places = read(&self.places);
        let here = wanted.into_iter().filter_map(|place| places.get(&place)).flatten();
        here.map(|(number, subscription)| (*number, subscription.clone())).collect()
    }

    fn deliver(&self, desk: &Desk, number: u64, live: &LiveEvent) {
        let channel = live.channel.map(|channel| channel.to_string());
        for subscription in self.found(event_places(live)).values() {
            let matches = |filter: &Filter| filter.matches(&live.event, channel.as_deref());
            if subscription.filters.iter().any(matches) && desk.may_see(live, &subscription.reader) {
                subscription.deliver(number, live);
            }
        }
    }

    fn revoke(&self, desk: &Desk, channel: &ChannelId, whom: Whom) {
        for subscription in self.found([Place::Channel(*channel)]).values() {
            let is_meant = match whom {
                Whom::One(key) => subscription.reader == key,
                Whom::NonMembers => !desk.is_member(channel, &subscription.reader),
                Whom::Everyone => true,
            };
            if is_meant {
                self.close(subscription);
                subscription.connection.revoked(subscription, ACCESS_REVOKED);
            }
        }
    }
}
