//! One socket as the rest of the server sees it: its line out and its subscriptions.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use waxlog_nostr::frame::RelayFrame;

use super::gauge::Gauge;
use super::hub::{Hub, Subscription};
use super::limits::Limits;
use super::lock;
use super::outbox::{Bounds, Outbox, Outgoing};

/// Why a subscription was not opened.
const TOO_MANY: &str = "error: too many subscriptions";

struct Held {
    subscription: Arc<Subscription>,
    bytes: usize,
}

/// A socket.
pub(crate) struct Connection {
    pub(crate) outbox: Outbox,
    /// The connection's own events that are not answered yet.
    pub(crate) unanswered: Arc<Gauge>,
    unanswered_pings: AtomicU32,
    max_subscriptions: usize,
    max_bytes: usize,
    held: Mutex<HashMap<String, Held>>,
}

impl Connection {
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        let bounds = Bounds {
            frames: limits.queue_frames,
            bytes: limits.queue_bytes,
            full_hits: limits.full_queue_hits,
        };
        Arc::new(Self {
            outbox: Outbox::new(bounds),
            unanswered: Gauge::new(usize::MAX),
            unanswered_pings: AtomicU32::new(0),
            max_subscriptions: limits.subscriptions,
            max_bytes: limits.subscription_bytes,
            held: Mutex::default(),
        })
    }

    /// Puts an answer into the line.
    pub(crate) fn say(&self, frame: &RelayFrame) {
        self.outbox.answer(Outgoing::Text(frame.to_json()));
    }

    /// Counts one more ping and gives how many are unanswered with it.
    pub(crate) fn count_ping(&self) -> u32 {
        self.unanswered_pings.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The client has answered.
    pub(crate) fn forget_pings(&self) {
        self.unanswered_pings.store(0, Ordering::Relaxed);
    }

    /// Whether one more subscription fits, in number and in bytes.
    pub(crate) fn check_room(&self, bytes: usize) -> Result<(), &'static str> {
        let held = lock(&self.held);
        let used: usize = held.values().map(|held| held.bytes).sum();
        match held.len() < self.max_subscriptions && used + bytes <= self.max_bytes {
            true => Ok(()),
            false => Err(TOO_MANY),
        }
    }

    /// Keeps an open subscription.
    pub(crate) fn keep(&self, subscription: Arc<Subscription>, bytes: usize) {
        lock(&self.held).insert(subscription.id.clone(), Held { subscription, bytes });
    }

    /// Ends the subscription with this id, if there is one.
    pub(crate) fn end_subscription(&self, hub: &Hub, id: &str) {
        let held = lock(&self.held).remove(id);
        if let Some(held) = held {
            hub.close(&held.subscription);
        }
    }

    /// Ends all subscriptions.
    pub(crate) fn end_all(&self, hub: &Hub) {
        let held: Vec<Held> = lock(&self.held).drain().map(|(_, held)| held).collect();
        for held in held {
            hub.close(&held.subscription);
        }
    }

    /// Tells that the relay has ended a subscription, unless the client was faster.
    pub(crate) fn revoked(&self, subscription: &Arc<Subscription>, why: &str) {
        let mut held = lock(&self.held);
        let is_held =
            held.get(&subscription.id).is_some_and(|held| Arc::ptr_eq(&held.subscription, subscription));
        if is_held {
            held.remove(&subscription.id);
            self.say(&RelayFrame::Closed(subscription.id.clone(), why.to_owned()));
        }
    }
}
