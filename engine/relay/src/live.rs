//! What goes out: stored rows of an answer, and what live subscriptions are told.

use std::sync::Arc;

use waxlog_nostr::{Event, PublicKey};

use crate::channel::ChannelId;

/// A stored event as an answer holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The event.
    pub event: Event,
    /// Where it is stored; none for a global event.
    pub channel: Option<ChannelId>,
}

/// An event on its way to live subscriptions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveEvent {
    /// The event, for filters.
    pub event: Arc<Event>,
    /// The event as JSON, made once for all subscriptions.
    pub json: Arc<str>,
    /// The channel whose subscriptions get it; none goes to global subscriptions.
    pub channel: Option<ChannelId>,
}

impl LiveEvent {
    /// An event with its JSON.
    pub fn new(event: Event, channel: Option<ChannelId>) -> Self {
        let json = event.to_json().into();
        Self { event: Arc::new(event), json, channel }
    }
}

/// Whose subscriptions of a channel end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whom {
    /// Those of one key.
    One(PublicKey),
    /// Those of all who are not members now.
    NonMembers,
    /// All.
    Everyone,
}

/// Something that live subscriptions are told. In this order, after the flush that covers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Live {
    /// An event to deliver where [`crate::Desk::may_see`] allows it.
    Event(LiveEvent),
    /// Subscriptions to end with `CLOSED` [`crate::reply::ACCESS_REVOKED`].
    Revoked {
        /// The channel that they are of.
        channel: ChannelId,
        /// Whose they are.
        whom: Whom,
    },
}
