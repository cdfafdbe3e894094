//! Threads' summaries (39005): how many replies there are, by whom and since when.

use serde::{Deserialize, Serialize};
use serde_json::json;
use waxlog_nostr::channel::ChannelId;
use waxlog_nostr::kind::THREAD_SUMMARY;
use waxlog_nostr::{Draft, EventId, PublicKey};

use super::Transaction;
use crate::live::{Live, LiveEvent};
use crate::store::key::{self, Place};
use crate::store::record::{pack, unpack, Stored};
use crate::store::{Store, StoreError};

/// How many names a thread's summary holds.
const MAX_PARTICIPANTS: usize = 100;

/// A count of the replies under a root, and the first who wrote them.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Replies {
    direct: u64,
    all: u64,
    last_at: Option<u64>,
    participants: Vec<[u8; 32]>,
}

/// A reply that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) author: PublicKey,
    pub(crate) created_at: u64,
    pub(crate) is_direct: bool,
}

impl Replies {
    /// What the store has counted under a root.
    pub(crate) fn load(store: &Store, root: &EventId) -> Result<Self, StoreError> {
        Ok(store.read(&key::summary(root), |bytes| unpack(bytes))?.unwrap_or_default())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all == 0
    }

    fn add(&mut self, reply: Reply) {
        self.all += 1;
        self.direct += u64::from(reply.is_direct);
        self.last_at = self.last_at.max(Some(reply.created_at));
        let author = *reply.author.as_bytes();
        if !self.participants.contains(&author) && self.participants.len() < MAX_PARTICIPANTS {
            self.participants.push(author);
        }
    }

    /// The summary as an event to sign.
    pub(crate) fn draft(&self, channel: &ChannelId, root: &EventId, now: u64) -> Draft {
        let participants = self.participants.iter().copied().map(PublicKey::from_bytes).collect::<Vec<_>>();
        let content = json!({
            "reply_count": self.direct,
            "descendant_count": self.all,
            "last_reply_at": self.last_at,
            "participants": participants,
        });
        let root = root.to_hex();
        let draft = Draft::new(THREAD_SUMMARY, content.to_string(), now);
        draft.tag(["e", &root]).tag(["d", &root]).tag(["h", &channel.to_string()])
    }
}

impl Transaction<'_> {
    /// Counts one more reply and tells the channel.
    pub(super) fn count_reply(
        &mut self,
        channel: ChannelId,
        root: EventId,
        reply: Reply,
    ) -> Result<(), StoreError> {
        let mut replies = Replies::load(self.store, &root)?;
        replies.add(reply);
        self.summarize(channel, root, &replies)
    }

    /// Counts a thread anew that loses a reply, and tells the channel.
    pub(super) fn recount_replies(
        &mut self,
        channel: ChannelId,
        root: EventId,
        gone: EventId,
    ) -> Result<(), StoreError> {
        let prefix = key::by_thread(&root);
        let mut replies = Replies::default();
        let mut scan = self.index.scan(self.store, &prefix, &prefix)?;
        while let Some(key) = scan.next_key()? {
            let stored = Place::at_end_of(&key)
                .map(|place| self.store.read(&key::body(place.seq), Stored::from_bytes));
            let Some(record) = stored.transpose()?.flatten().and_then(Stored::here) else { continue };
            let is_here = record.event.id != gone;
            if let Some(thread) = record.thread.filter(|thread| is_here && thread.root == root) {
                let (author, created_at) = (record.event.pubkey, record.event.created_at);
                replies.add(Reply { author, created_at, is_direct: thread.depth == 1 });
            }
        }
        self.summarize(channel, root, &replies)
    }

    /// A summary is passed on and made anew when it is asked for; only the count is stored.
    fn summarize(&mut self, channel: ChannelId, root: EventId, replies: &Replies) -> Result<(), StoreError> {
        self.batch.put(key::summary(&root), pack(replies)?);
        let event = self.keys.sign(replies.draft(&channel, &root, self.now));
        self.live.push(Live::Event(LiveEvent::new(event, Some(channel))));
        Ok(())
    }
}
