//! What is known of channels: which the agent is in, what they are called, what kind they are.

use std::collections::{BTreeMap, BTreeSet};

use waxlog_nostr::channel::{ChannelType, Metadata, Visibility};
use waxlog_nostr::{kind, Event};

use crate::prompt::{ChannelKind, Place};

/// One channel as the relay describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) name: String,
    pub(super) kind: ChannelKind,
    pub(super) model: Option<String>,
}

/// All channels.
#[derive(Clone, Debug, Default)]
pub(super) struct Channels {
    facts: BTreeMap<String, Facts>,
    /// Those that are subscribed to.
    joined: BTreeSet<String>,
    /// Those the agent was removed from since.
    removed: BTreeSet<String>,
    /// The time of the newest membership event of each.
    newest: BTreeMap<String, u64>,
}

/// Reads a channel's description: its id, what it says, and whether nothing can be written there.
pub(super) fn read(event: &Event) -> Option<(String, Facts, bool)> {
    if event.kind != kind::CHANNEL_METADATA {
        return None;
    }
    let metadata = Metadata::of(event)?;
    let is_named_private = event.tag_value("t") == Some("private");
    let kind = match (metadata.is_hidden, metadata.channel_type, metadata.visibility) {
        (true, ..) | (_, Some(ChannelType::Dm), _) => ChannelKind::Dm,
        (.., Some(Visibility::Private)) => ChannelKind::Private,
        _ if is_named_private => ChannelKind::Private,
        _ => ChannelKind::Stream,
    };
    let facts = Facts { name: metadata.name, kind, model: metadata.model };
    Some((metadata.id, facts, metadata.is_archived))
}

impl Channels {
    /// A new process looks at all channels again.
    pub(super) fn restart(&mut self) {
        *self = Self::default();
    }

    pub(super) fn learn(&mut self, channel: String, facts: Facts) {
        self.facts.insert(channel, facts);
    }

    /// What kind a channel is; absent while that is not known.
    pub(super) fn kind(&self, channel: &str) -> Option<ChannelKind> {
        self.facts.get(channel).map(|facts| facts.kind)
    }

    pub(super) fn model(&self, channel: &str) -> Option<String> {
        self.facts.get(channel)?.model.clone()
    }

    pub(super) fn name(&self, channel: &str) -> Option<&str> {
        self.facts.get(channel).map(|facts| facts.name.as_str())
    }

    pub(super) fn place<'a>(&'a self, channel: &'a str) -> Place<'a> {
        let kind = self.kind(channel).unwrap_or(ChannelKind::Unknown);
        Place { id: channel, name: self.name(channel), kind }
    }

    /// Takes a membership event unless a newer one of the channel was taken.
    pub(super) fn is_news(&mut self, channel: &str, created_at: u64) -> bool {
        let newest = self.newest.entry(channel.to_owned()).or_default();
        let is_news = created_at >= *newest;
        *newest = created_at.max(*newest);
        is_news
    }

    /// The agent is in the channel. Whether it was not before.
    pub(super) fn join(&mut self, channel: &str) -> bool {
        self.removed.remove(channel);
        self.joined.insert(channel.to_owned())
    }

    /// The relay does not give the channel any more; being added to it makes a new subscription.
    pub(super) fn deny(&mut self, channel: &str) {
        self.joined.remove(channel);
    }

    /// The agent is out of the channel.
    pub(super) fn remove(&mut self, channel: &str) {
        self.joined.remove(channel);
        self.removed.insert(channel.to_owned());
    }

    pub(super) fn is_removed(&self, channel: &str) -> bool {
        self.removed.contains(channel)
    }
}
