//! The one writer: it turns a verdict into changes that go in together, and into what the relay says of it.

pub(crate) mod index;
mod said;
pub(crate) mod summary;

use std::sync::Arc;

use waxlog_nostr::kind::{class, Class};
use waxlog_nostr::{Draft, EventId, Keys};

use crate::channel::{Channel, ChannelId};
use crate::index::Index;
use crate::live::{Live, LiveEvent};
use crate::reply::Checked;
use crate::rules::{author, find, Effect, Facts};
use crate::state::{Changes, State};
use crate::store::record::{Record, Stored, Stub, Thread};
use crate::store::{key, Batch, Store, StoreError};

/// What one submission changes. Nothing of it is seen before [`Transaction::finish`] is applied.
pub(crate) struct Transaction<'a> {
    store: &'a Store,
    index: &'a Index,
    state: &'a State,
    keys: &'a Keys,
    now: u64,
    batch: Batch,
    next_seq: u64,
    changes: Changes,
    live: Vec<Live>,
    added: Vec<Vec<u8>>,
    removed: Vec<Vec<u8>>,
}

/// A transaction that is ready to be applied.
pub(crate) struct Finished {
    pub(crate) batch: Batch,
    pub(crate) changes: Changes,
    pub(crate) live: Vec<Live>,
    pub(crate) next_seq: u64,
    /// Keys that the index gets.
    pub(crate) added: Vec<Vec<u8>>,
    /// Keys that the index loses.
    pub(crate) removed: Vec<Vec<u8>>,
}

/// What became of an event that was to be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It is stored.
    Stored,
    /// A newer one of its key is there.
    Older,
}

impl<'a> Transaction<'a> {
    pub(crate) fn new(facts: &Facts<'a>, keys: &'a Keys, next_seq: u64) -> Self {
        let Facts { store, index, state, now, .. } = *facts;
        let (batch, changes, live) = (Batch::default(), Changes::default(), Vec::new());
        let (added, removed) = (Vec::new(), Vec::new());
        Self { store, index, state, keys, now, batch, next_seq, changes, live, added, removed }
    }

    /// Stores an event and passes it on.
    pub(crate) fn keep_and_pass(
        &mut self,
        checked: Checked,
        channel: Option<ChannelId>,
        thread: Option<Thread>,
    ) -> Result<Kept, StoreError> {
        let record = Record { event: checked.event, channel, thread };
        if self.keep(&record)? == Kept::Older {
            return Ok(Kept::Older);
        }
        self.renew(channel);
        let (event, json) = (Arc::new(record.event), checked.json);
        self.live.push(Live::Event(LiveEvent { event, json, channel }));
        Ok(Kept::Stored)
    }

    /// Passes an event on that is not stored.
    pub(crate) fn pass_on(&mut self, checked: Checked, channel: Option<ChannelId>) {
        let Checked { event, json } = checked;
        self.live.push(Live::Event(LiveEvent { event: Arc::new(event), json, channel }));
    }

    /// Keeps that a command was carried out.
    pub(crate) fn mark_done(&mut self, command: &EventId) {
        self.batch.put(key::command(command), Vec::new());
    }

    pub(crate) fn follow(&mut self, effects: Vec<Effect>) -> Result<(), StoreError> {
        effects.into_iter().try_for_each(|effect| self.happen(effect))
    }

    pub(crate) fn finish(mut self) -> Result<Finished, StoreError> {
        for (id, channel) in &self.changes.channels {
            self.batch.put(key::channel(id), channel.to_bytes()?);
        }
        for (of, policy) in &self.changes.policies {
            self.batch.put(key::policy(of), policy.as_str().as_bytes().to_vec());
        }
        let Self { batch, changes, live, next_seq, added, removed, .. } = self;
        Ok(Finished { batch, changes, live, next_seq, added, removed })
    }

    fn happen(&mut self, effect: Effect) -> Result<(), StoreError> {
        match effect {
            Effect::Channel(channel) => {
                self.changes.channels.insert(channel.id, *channel);
            }
            Effect::Policy(of, policy) => {
                self.changes.policies.insert(of, policy);
            }
            Effect::Revoke(channel, whom) => self.live.push(Live::Revoked { channel, whom }),
            Effect::Erase(id) => {
                if let Some((seq, Stored::Here(record))) = find(self.store, &id)? {
                    self.erase(seq, &record)?;
                    if let (Some(channel), Some(thread)) = (record.channel, record.thread) {
                        self.recount_replies(channel, thread.root, id)?;
                    }
                }
            }
            Effect::Describe(channel) => self.describe(channel)?,
            Effect::Tell(channel, said) => self.tell(channel, &said)?,
            Effect::Added { channel, target, actor } => self.notify_added(channel, target, actor)?,
            Effect::Removed { channel, target, actor } => self.notify_removed(channel, target, actor)?,
            Effect::Hidden(viewer) => self.list_hidden(viewer)?,
            Effect::DirectOpened(channel) => self.announce_direct(channel)?,
            Effect::Replied { channel, root, reply } => self.count_reply(channel, root, reply)?,
        }
        Ok(())
    }

    /// The channel as this transaction has left it.
    fn channel(&self, id: &ChannelId) -> Option<&Channel> {
        self.changes.channels.get(id).or_else(|| self.state.channel(id).map(|channel| &**channel))
    }

    /// Moves the deadline of a channel that lives by its events.
    fn renew(&mut self, id: Option<ChannelId>) {
        let Some(channel) = id.and_then(|id| self.channel(&id)) else { return };
        if channel.ttl_secs.is_some() && !channel.archived {
            let mut renewed = channel.clone();
            renewed.renew(self.now);
            self.changes.channels.insert(renewed.id, renewed);
        }
    }

    /// Signs, stores and passes on what the relay itself says.
    fn say(&mut self, draft: Draft, channel: Option<ChannelId>) -> Result<(), StoreError> {
        let record = Record { event: self.keys.sign(draft), channel, thread: None };
        if self.keep(&record)? == Kept::Stored {
            self.live.push(Live::Event(LiveEvent::new(record.event, channel)));
        }
        Ok(())
    }

    /// Stores an event that is not known yet. An older head of its key goes.
    fn keep(&mut self, record: &Record) -> Result<Kept, StoreError> {
        let slot = index::head_key(record);
        if let Some(slot) = &slot {
            let head = self.store.get(slot)?.as_deref().and_then(key::number);
            let stored = head.map(|seq| self.store.read(&key::body(seq), Stored::from_bytes)).transpose()?;
            if let (Some(seq), Some(Stored::Here(head))) = (head, stored.flatten()) {
                let (old, new) = (&head.event, &record.event);
                if (old.created_at, new.id) > (new.created_at, old.id) {
                    return Ok(Kept::Older);
                }
                self.erase(seq, &head)?;
            }
        }
        let seq = self.next_seq;
        self.next_seq += 1;
        let number = seq.to_be_bytes().to_vec();
        self.batch.put(key::body(seq), record.to_bytes()?);
        self.batch.put(key::id(&record.event.id), number.clone());
        if let Some(slot) = slot {
            self.batch.put(slot, number.clone());
        }
        if let Some(slot) = index::reaction_key(record) {
            self.batch.put(slot, number);
        }
        self.added.extend(index::keys(record, seq));
        self.changes.kinds.insert(record.event.kind);
        Ok(Kept::Stored)
    }

    /// Takes an event out of all answers; that it was there and whose it was stays known.
    fn erase(&mut self, seq: u64, record: &Record) -> Result<(), StoreError> {
        let author = author(&record.event, &self.keys.public_key());
        let stub = Stub { author, kind: record.event.kind, channel: record.channel };
        self.batch.put(key::body(seq), Stored::Gone(stub).to_bytes()?);
        self.removed.extend(index::keys(record, seq));
        for slot in [index::head_key(record), index::reaction_key(record)].into_iter().flatten() {
            if self.store.get(&slot)?.as_deref().and_then(key::number) == Some(seq) {
                self.batch.delete(slot);
            }
        }
        Ok(())
    }

    /// The time of an event that must be newer than the head it replaces.
    fn time_after_head(&self, slot: &[u8]) -> Result<u64, StoreError> {
        let head = self.store.get(slot)?.as_deref().and_then(key::number);
        let stored =
            head.map(|seq| self.store.read(&key::body(seq), Stored::from_bytes)).transpose()?.flatten();
        let last = stored.and_then(Stored::here).map(|record| record.event.created_at);
        Ok(last.map_or(self.now, |last| self.now.max(last + 1)))
    }
}

/// Whether events of this kind have one head for each key.
fn has_head(kind: u16) -> bool {
    matches!(class(kind), Class::Replaceable | Class::Addressable)
}
