//! The rules: what follows from an event, given what the relay knows. They read and never write; a
//! [`Verdict`] says what to write.

pub(crate) mod channel;
pub(crate) mod check;
pub(crate) mod deletion;
pub(crate) mod dm;
pub(crate) mod envelope;
pub(crate) mod ephemeral;
pub(crate) mod ingest;
pub(crate) mod membership;
pub(crate) mod message;
pub(crate) mod project;
pub(crate) mod reaction;
pub(crate) mod thread;
pub(crate) mod workflow;

use std::borrow::Cow;
use std::fmt::Display;

use serde_json::Value;
use waxlog_nostr::channel::AddPolicy;
use waxlog_nostr::{Event, EventId, PublicKey};

use crate::channel::{Channel, ChannelId};
use crate::desk::Blobs;
use crate::index::Index;
use crate::live::Whom;
use crate::reply::Reply;
use crate::state::State;
use crate::store::record::{Record, Stored, Thread};
use crate::store::{key, Store, StoreError};
use crate::writer::summary;

/// What the rules may ask.
pub(crate) struct Facts<'a> {
    pub(crate) store: &'a Store,
    pub(crate) index: &'a Index,
    pub(crate) state: &'a State,
    pub(crate) relay: PublicKey,
    pub(crate) blobs: Option<&'a dyn Blobs>,
    /// Seconds since 1970.
    pub(crate) now: u64,
}

/// Why there is no verdict.
#[derive(Debug)]
pub(crate) enum Fault {
    Refused(Reply),
    Store(StoreError),
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

pub(crate) type Judged<T> = Result<T, Fault>;

/// What becomes of the event itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// It is stored and passed on.
    Stored,
    /// It is passed on only: it was deleted, and stays so.
    PassedOn,
    /// It is a command, of which only that it was carried out is kept.
    Done,
}

/// What an event leads to.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) keep: Keep,
    pub(crate) channel: Option<ChannelId>,
    pub(crate) thread: Option<Thread>,
    /// In the order in which they happen, after the event is stored.
    pub(crate) effects: Vec<Effect>,
    pub(crate) reply: Reply,
}

impl Verdict {
    /// The event is stored in a channel, or as a global one.
    pub(crate) fn keep(channel: Option<ChannelId>) -> Self {
        Self { keep: Keep::Stored, channel, thread: None, effects: Vec::new(), reply: Reply::ok() }
    }

    pub(crate) fn with(mut self, effects: impl IntoIterator<Item = Effect>) -> Self {
        self.effects.extend(effects);
        self
    }
}

/// Something that happens besides the storing of the event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// A channel is new or changed.
    Channel(Box<Channel>),
    /// The relay says anew what a channel is and who is in it.
    Describe(ChannelId),
    /// The relay says in a channel what happened.
    Tell(ChannelId, Value),
    /// A member is told of being in a channel.
    Added { channel: ChannelId, target: PublicKey, actor: PublicKey },
    /// A key is told of being out of a channel.
    Removed { channel: ChannelId, target: PublicKey, actor: PublicKey },
    /// Live subscriptions end.
    Revoke(ChannelId, Whom),
    /// An event is deleted.
    Erase(EventId),
    /// A key's policy is this now.
    Policy(PublicKey, AddPolicy),
    /// The relay says anew which direct conversations a viewer has hidden.
    Hidden(PublicKey),
    /// The people of a direct conversation are told that it is there.
    DirectOpened(ChannelId),
    /// A thread has one more reply.
    Replied { channel: ChannelId, root: EventId, reply: summary::Reply },
}

/// A refusal with the prefix `invalid:`.
pub(crate) fn invalid(text: impl Display) -> Fault {
    Fault::Refused(Reply::refused(format!("invalid: {text}")))
}

/// A refusal with this whole text.
pub(crate) fn refused(text: impl Into<Cow<'static, str>>) -> Fault {
    Fault::Refused(Reply::refused(text))
}

impl Facts<'_> {
    /// The number and the content of a stored event, or what is left of it.
    pub(crate) fn find(&self, id: &EventId) -> Result<Option<(u64, Stored)>, StoreError> {
        find(self.store, id)
    }

    /// A stored event that was not deleted.
    pub(crate) fn record(&self, id: &EventId) -> Result<Option<Record>, StoreError> {
        Ok(self.find(id)?.and_then(|(_, stored)| stored.here()))
    }

    /// A channel that a command names, or the refusal that says it is not there.
    pub(crate) fn channel(&self, id: &ChannelId) -> Judged<&Channel> {
        self.state.channel(id).map(|channel| &**channel).ok_or_else(|| invalid("channel not found"))
    }

    /// Who counts as the author of an event: for what the relay says, who made it say so.
    pub(crate) fn author(&self, event: &Event) -> PublicKey {
        author(event, &self.relay)
    }

    /// Whether `actor` wrote the event or owns the agent that did.
    pub(crate) fn is_author_or_owner(&self, actor: &PublicKey, author: &PublicKey) -> bool {
        actor == author || self.state.owns(actor, author)
    }
}

/// See [`Facts::find`].
pub(crate) fn find(store: &Store, id: &EventId) -> Result<Option<(u64, Stored)>, StoreError> {
    let seq = store.read(&key::id(id), |value| {
        key::number(value).ok_or_else(|| StoreError("an id leads to no number".into()))
    })?;
    let Some(seq) = seq else { return Ok(None) };
    Ok(store.read(&key::body(seq), Stored::from_bytes)?.map(|stored| (seq, stored)))
}

/// See [`Facts::author`].
pub(crate) fn author(event: &Event, relay: &PublicKey) -> PublicKey {
    let named = |tag| event.tag_value(tag).and_then(|value| value.parse().ok());
    match event.pubkey == *relay {
        true => named("actor").or_else(|| named("p")).unwrap_or(event.pubkey),
        false => event.pubkey,
    }
}

/// The last `e` tag that holds an id.
pub(crate) fn last_target(event: &Event) -> Option<EventId> {
    event.tag_values("e").filter_map(|value| value.parse().ok()).last()
}
