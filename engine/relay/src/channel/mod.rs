//! Channels: what each is, and who is in it with which rights.

mod id;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use waxlog_nostr::PublicKey;

pub use id::{ChannelId, ChannelIdError};

/// What a channel is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ChannelType {
    Stream,
    Forum,
    Dm,
    Workflow,
}

/// Who may read and write without being a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Visibility {
    Open,
    Private,
}

/// A member's role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Role {
    Owner,
    Admin,
    Member,
    Guest,
    Bot,
}

/// Who may put a key into channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum AddPolicy {
    Anyone,
    OwnerOnly,
    Nobody,
}

/// A channel as the relay knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

impl ChannelType {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "stream" => Self::Stream,
            "forum" => Self::Forum,
            "dm" => Self::Dm,
            "workflow" => Self::Workflow,
            _ => return None,
        })
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Forum => "forum",
            Self::Dm => "dm",
            Self::Workflow => "workflow",
        }
    }
}

impl Visibility {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "open" => Self::Open,
            "private" => Self::Private,
            _ => return None,
        })
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Private => "private",
        }
    }
}

impl Role {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "owner" => Self::Owner,
            "admin" => Self::Admin,
            "member" => Self::Member,
            "guest" => Self::Guest,
            "bot" => Self::Bot,
            _ => return None,
        })
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Admin => "admin",
            Self::Member => "member",
            Self::Guest => "guest",
            Self::Bot => "bot",
        }
    }

    /// Whether the role manages the channel.
    pub(crate) fn is_elevated(self) -> bool {
        matches!(self, Self::Owner | Self::Admin)
    }
}

impl AddPolicy {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "anyone" => Self::Anyone,
            "owner_only" => Self::OwnerOnly,
            "nobody" => Self::Nobody,
            _ => return None,
        })
    }
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
        self.role(pubkey).is_some_and(Role::is_elevated)
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
