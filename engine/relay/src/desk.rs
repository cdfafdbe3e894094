//! The relay without its network: it takes events in, answers filters and says who hears what.

use std::path::Path;
use std::sync::Arc;

use waxlog_nostr::owner::OwnerTag;
use waxlog_nostr::{Event, Filter, Keys, PublicKey};

use crate::asker::Asker;
use crate::channel::ChannelId;
use crate::live::{Live, LiveEvent, Row};
use crate::reply::{Checked, Refusal, Reply, Submission, Ticket};

/// What the relay holds of blobs, as rules on `imeta` tags need to know it.
pub trait Blobs: Send + Sync {
    /// Whether this is the address of a blob with this SHA-256 (in hex) that the relay holds.
    fn holds(&self, url: &str, sha256: &str) -> bool;
}

/// What a relay is opened with.
#[derive(Clone)]
pub struct Settings {
    /// How much of the store is kept in memory, in bytes.
    pub cache_bytes: u64,
    /// The relay's blobs; without any, an event that names one is refused.
    pub blobs: Option<Arc<dyn Blobs>>,
    /// A key that counts as a member of every channel.
    pub trusted: Option<PublicKey>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { cache_bytes: 8 << 20, blobs: None, trusted: None }
    }
}

/// Why the relay's store cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the relay's store in {folder:?} cannot be used: {reason}")]
pub struct DeskError {
    /// The folder of the store.
    pub folder: String,
    /// What happened, and what to do.
    pub reason: String,
}

/// Which events a subscription hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Those of one channel.
    Channel(ChannelId),
    /// Those of no channel.
    Global,
}

/// The relay. All its methods may be called from any thread; they block on the disk, so keep them off async
/// threads.
pub struct Desk {}

impl Desk {
    /// Opens or creates the store in `folder`. `relay_keys` sign what the relay says itself.
    pub fn open(folder: &Path, settings: Settings, relay_keys: Keys) -> Result<Self, DeskError> {
        let _ = (folder, settings, relay_keys);
        unimplemented!()
    }

    /// Whether the event is what it says it is and of the sender: all that needs no state, signature
    /// included. This is the costly part of a submission and takes no lock: run it in parallel.
    pub fn check(event: Event, asker: &Asker, now: u64) -> Result<Checked, Reply> {
        let _ = (event, asker, now);
        unimplemented!()
    }

    /// Takes a checked event in, or says why not. Submissions queue here for the one writer.
    pub fn admit(&self, checked: Checked, asker: &Asker, now: u64) -> Submission {
        let _ = (checked, asker, now);
        unimplemented!()
    }

    /// [`Desk::check`] and [`Desk::admit`] in one.
    pub fn submit(&self, event: Event, asker: &Asker, now: u64) -> Submission {
        match Self::check(event, asker, now) {
            Ok(checked) => self.admit(checked, asker, now),
            Err(reply) => Submission::just(reply),
        }
    }

    /// Waits until all up to `ticket` survives a kill. One flush serves all who wait at the time; a ticket
    /// that an earlier flush has covered costs nothing.
    pub fn settle(&self, ticket: Ticket) -> Result<(), DeskError> {
        let _ = ticket;
        unimplemented!()
    }

    /// The stored events that answer the filters, in the order of the answer.
    pub fn query(&self, filters: &[Filter], asker: &Asker, now: u64) -> Result<Vec<Row>, Refusal> {
        let _ = (filters, asker, now);
        unimplemented!()
    }

    /// How many stored events answer the filters.
    pub fn count(&self, filters: &[Filter], asker: &Asker) -> Result<u64, Refusal> {
        let _ = (filters, asker);
        unimplemented!()
    }

    /// Which live events a subscription with these filters hears, if the asker may have it at all.
    pub fn scope(&self, filters: &[Filter], asker: &Asker) -> Result<Scope, Refusal> {
        let _ = (filters, asker);
        unimplemented!()
    }

    /// Whether the asker may be shown a live event; to be asked at each delivery.
    pub fn may_see(&self, live: &LiveEvent, reader: &PublicKey) -> bool {
        let _ = (live, reader);
        unimplemented!()
    }

    /// Whether a key is a member of a channel now.
    pub fn is_member(&self, channel: &ChannelId, pubkey: &PublicKey) -> bool {
        let _ = (channel, pubkey);
        unimplemented!()
    }

    /// Keeps that `agent` is its owner's, by a tag that verifies and whose time conditions hold at
    /// `created_at` (that of the proof that carried it). The first owner stays. Returns the owner that the
    /// tag proves for this session.
    pub fn attest(
        &self,
        agent: &PublicKey,
        tag: &OwnerTag,
        created_at: u64,
    ) -> Result<Option<PublicKey>, DeskError> {
        let _ = (agent, tag, created_at);
        unimplemented!()
    }

    /// A connection of this key is open.
    pub fn connected(&self, pubkey: &PublicKey) {
        let _ = pubkey;
        unimplemented!()
    }

    /// A connection of this key has ended. With the last one its presence goes.
    pub fn disconnected(&self, pubkey: &PublicKey) {
        let _ = pubkey;
        unimplemented!()
    }

    /// Archives channels whose time to live has passed. To be called about once a minute.
    pub fn reap(&self, now: u64) -> (Vec<Live>, Option<Ticket>) {
        let _ = now;
        unimplemented!()
    }
}
