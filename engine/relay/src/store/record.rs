//! What the store keeps of an event: the whole of it, or, when it is gone, what later events ask about it.

use bincode::Options;
use serde::{Deserialize, Serialize};
use waxlog_nostr::{Event, EventId, PublicKey, Signature};

use super::StoreError;
use crate::channel::ChannelId;

/// Where an event is in a thread. An event without this is at the top.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Thread {
    /// What the thread began with.
    pub(crate) root: EventId,
    /// What is answered.
    pub(crate) parent: EventId,
    /// How far from the root: 1 for a reply to it.
    pub(crate) depth: u8,
    /// Whether it also shows at the top.
    pub(crate) broadcast: bool,
}

/// An event as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) event: Event,
    pub(crate) channel: Option<ChannelId>,
    pub(crate) thread: Option<Thread>,
}

/// What is kept of an event that was deleted or replaced: enough to know it again and to say whose it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stub {
    /// Who counts as its author.
    pub(crate) author: PublicKey,
    pub(crate) kind: u16,
    pub(crate) channel: Option<ChannelId>,
}

/// A stored event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stored {
    Here(Box<Record>),
    Gone(Stub),
}

#[derive(Serialize, Deserialize)]
struct PackedRecord {
    id: [u8; 32],
    pubkey: [u8; 32],
    signature: ([u8; 32], [u8; 32]),
    created_at: u64,
    kind: u16,
    tags: Vec<Vec<String>>,
    content: String,
    channel: Option<[u8; 16]>,
    thread: Option<PackedThread>,
}

#[derive(Serialize, Deserialize)]
struct PackedThread {
    root: [u8; 32],
    parent: [u8; 32],
    depth: u8,
    broadcast: bool,
}

#[derive(Serialize, Deserialize)]
struct PackedStub {
    author: [u8; 32],
    kind: u16,
    channel: Option<[u8; 16]>,
}

#[derive(Serialize, Deserialize)]
enum Packed {
    Here(Box<PackedRecord>),
    Gone(PackedStub),
}

/// Numbers take as many bytes as they need.
fn options() -> impl Options {
    bincode::DefaultOptions::new()
}

/// The compact form of a value of this crate.
pub(crate) fn pack<T: Serialize>(value: &T) -> Result<Vec<u8>, StoreError> {
    options().serialize(value).map_err(|error| StoreError(format!("a value could not be written: {error}")))
}

/// Reads what [`pack`] wrote.
pub(crate) fn unpack<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, StoreError> {
    options().deserialize(bytes).map_err(|error| {
        StoreError(format!("a stored value cannot be read ({error}); the store is damaged, restore a copy"))
    })
}

impl Stored {
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, StoreError> {
        pack(&match self {
            Self::Here(record) => return record.to_bytes(),
            Self::Gone(stub) => {
                let author = *stub.author.as_bytes();
                Packed::Gone(PackedStub {
                    author,
                    kind: stub.kind,
                    channel: stub.channel.map(|id| *id.as_bytes()),
                })
            }
        })
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, StoreError> {
        Ok(match unpack(bytes)? {
            Packed::Here(packed) => Self::Here(Box::new(unpack_record(*packed))),
            Packed::Gone(PackedStub { author, kind, channel }) => Self::Gone(Stub {
                author: PublicKey::from_bytes(author),
                kind,
                channel: channel.map(ChannelId::from_bytes),
            }),
        })
    }

    /// The record, if the event is still there.
    pub(crate) fn here(self) -> Option<Record> {
        match self {
            Self::Here(record) => Some(*record),
            Self::Gone(_) => None,
        }
    }
}

impl Record {
    /// The bytes of [`Stored::Here`] with this record.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, StoreError> {
        pack(&Packed::Here(Box::new(pack_record(self))))
    }
}

fn pack_record(record: &Record) -> PackedRecord {
    let event = &record.event;
    let (mut low, mut high) = ([0; 32], [0; 32]);
    low.copy_from_slice(&event.sig.as_bytes()[..32]);
    high.copy_from_slice(&event.sig.as_bytes()[32..]);
    PackedRecord {
        id: *event.id.as_bytes(),
        pubkey: *event.pubkey.as_bytes(),
        signature: (low, high),
        created_at: event.created_at,
        kind: event.kind,
        tags: event.tags.clone(),
        content: event.content.clone(),
        channel: record.channel.map(|id| *id.as_bytes()),
        thread: record.thread.map(|thread| PackedThread {
            root: *thread.root.as_bytes(),
            parent: *thread.parent.as_bytes(),
            depth: thread.depth,
            broadcast: thread.broadcast,
        }),
    }
}

fn unpack_record(packed: PackedRecord) -> Record {
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(&packed.signature.0);
    signature[32..].copy_from_slice(&packed.signature.1);
    let event = Event {
        id: EventId::from_bytes(packed.id),
        pubkey: PublicKey::from_bytes(packed.pubkey),
        created_at: packed.created_at,
        kind: packed.kind,
        tags: packed.tags,
        content: packed.content,
        sig: Signature::from_bytes(signature),
    };
    let thread = packed.thread.map(|thread| Thread {
        root: EventId::from_bytes(thread.root),
        parent: EventId::from_bytes(thread.parent),
        depth: thread.depth,
        broadcast: thread.broadcast,
    });
    Record { event, channel: packed.channel.map(ChannelId::from_bytes), thread }
}

#[cfg(test)]
mod tests {
    use super::*;
    use waxlog_nostr::{Draft, Keys};

    #[test]
    fn a_record_and_a_stub_survive_their_bytes() {
        let event = Keys::generate().sign(Draft::new(9, "hé", 1_700_000_000).tag(["h", "x"]));
        let channel = Some(ChannelId::from_bytes([7; 16]));
        let thread = Some(Thread { root: event.id, parent: event.id, depth: 3, broadcast: true });
        let author = event.pubkey;
        let here = Stored::Here(Box::new(Record { event, channel, thread }));
        let gone = Stored::Gone(Stub { author, kind: 9, channel });
        for stored in [here, gone] {
            assert_eq!(Stored::from_bytes(&stored.to_bytes().unwrap()), Ok(stored));
        }
        assert!(Stored::from_bytes(&[0, 1, 2]).is_err());
    }
}
