//! Channels: what each is, and who is in it with which rights.

pub(crate) mod packed;

use std::collections::{BTreeMap, BTreeSet};

pub use waxlog_nostr::channel::ChannelId;
use waxlog_nostr::channel::{ChannelType, Role, Visibility};
use waxlog_nostr::PublicKey;

/// A channel as the relay knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Channel {
    pub(crate) id: ChannelId,
    pub(crate) name: String,
    pub(crate) about: Option<String>,
    pub(crate) kind: ChannelType,
    pub(crate) visibility: Visibility,
    pub(crate) topic: Option<String>,
    pub(crate) purpose: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) ttl_secs: Option<u64>,
    /// When it is archived for want of events, in seconds since 1970.
    pub(crate) ttl_deadline: Option<u64>,
    pub(crate) archived: bool,
    pub(crate) deleted: bool,
    pub(crate) members: BTreeMap<PublicKey, Role>,
    /// The people that a direct conversation was opened for. Members may change, this does not.
    pub(crate) dm_of: Option<BTreeSet<PublicKey>>,
    /// Which members have hidden a direct conversation.
    pub(crate) hidden_by: BTreeSet<PublicKey>,
    /// The time of the relay's last metadata about it, in seconds since 1970.
    pub(crate) announced_at: u64,
}

impl Channel {
    /// A channel without anyone in it.
    pub(crate) fn new(id: ChannelId, name: String, kind: ChannelType, visibility: Visibility) -> Self {
        Self {
            id,
            name,
            about: None,
            kind,
            visibility,
            topic: None,
            purpose: None,
            model: None,
            ttl_secs: None,
            ttl_deadline: None,
            archived: false,
            deleted: false,
            members: BTreeMap::new(),
            dm_of: None,
            hidden_by: BTreeSet::new(),
            announced_at: 0,
        }
    }

    pub(crate) fn role(&self, of: &PublicKey) -> Option<Role> {
        self.members.get(of).copied()
    }

    pub(crate) fn is_member(&self, pubkey: &PublicKey) -> bool {
        self.members.contains_key(pubkey)
    }

    pub(crate) fn is_manager(&self, pubkey: &PublicKey) -> bool {
        self.role(pubkey).is_some_and(is_elevated)
    }

    /// Whether a key may read it, and write to it while it is not archived.
    pub(crate) fn admits(&self, pubkey: &PublicKey) -> bool {
        !self.deleted && (self.visibility == Visibility::Open || self.is_member(pubkey))
    }

    pub(crate) fn is_last_owner(&self, pubkey: &PublicKey) -> bool {
        let owners = || self.members.values().filter(|role| **role == Role::Owner).count();
        self.role(pubkey) == Some(Role::Owner) && owners() == 1
    }

    pub(crate) fn owners(&self) -> impl Iterator<Item = &PublicKey> {
        self.members.iter().filter(|(_, role)| **role == Role::Owner).map(|(key, _)| key)
    }

    /// Moves the deadline to a full time to live from `now`.
    pub(crate) fn renew(&mut self, now: u64) {
        self.ttl_deadline = self.ttl_secs.map(|ttl| now.saturating_add(ttl));
    }
}

/// Whether a role manages its channel.
pub(crate) fn is_elevated(role: Role) -> bool {
    matches!(role, Role::Owner | Role::Admin)
}
