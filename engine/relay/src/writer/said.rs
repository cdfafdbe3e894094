//! What the relay says itself: channels and their members, what happened, who was added, what is hidden.

use std::time::{Duration, UNIX_EPOCH};

use serde_json::{json, Value};
use waxlog_nostr::channel::{ChannelId, ChannelType, Visibility};
use waxlog_nostr::kind::*;
use waxlog_nostr::{Draft, PublicKey, Tag};

use super::Transaction;
use crate::channel::{is_elevated, Channel};
use crate::store::{key, StoreError};

impl Transaction<'_> {
    /// 39000, 39001 and 39002: what a channel is and who is in it, each newer than the one before.
    pub(super) fn describe(&mut self, id: ChannelId) -> Result<(), StoreError> {
        let Some(mut channel) = self.channel(&id).cloned() else { return Ok(()) };
        channel.announced_at = self.now.max(channel.announced_at + 1);
        let at = channel.announced_at;
        let drafts = [
            (CHANNEL_METADATA, metadata(&channel)),
            (CHANNEL_ADMINS, admins(&channel)),
            (CHANNEL_MEMBERS, members(&channel)),
        ];
        self.changes.channels.insert(id, channel);
        for (kind, tags) in drafts {
            self.say(Draft { kind, tags, content: String::new(), created_at: at }, Some(id))?;
        }
        Ok(())
    }

    /// 40099: what happened in a channel.
    pub(super) fn tell(&mut self, id: ChannelId, said: &Value) -> Result<(), StoreError> {
        let draft = Draft::new(SYSTEM_MESSAGE, said.to_string(), self.now).tag(["h", &id.to_string()]);
        self.say(draft, Some(id))
    }

    /// 44100, for the one who was added.
    pub(super) fn notify_added(
        &mut self,
        channel: ChannelId,
        target: PublicKey,
        actor: PublicKey,
    ) -> Result<(), StoreError> {
        self.notify(MEMBER_ADDED, "member_added", channel, target, actor)
    }

    /// 44101, for the one who was removed.
    pub(super) fn notify_removed(
        &mut self,
        channel: ChannelId,
        target: PublicKey,
        actor: PublicKey,
    ) -> Result<(), StoreError> {
        self.notify(MEMBER_REMOVED, "member_removed", channel, target, actor)
    }

    fn notify(
        &mut self,
        kind: u16,
        what: &str,
        channel: ChannelId,
        target: PublicKey,
        actor: PublicKey,
    ) -> Result<(), StoreError> {
        let channel = channel.to_string();
        let content = json!({"type": what, "channel_id": channel, "actor": actor}).to_string();
        let draft = Draft::new(kind, content, self.now).tag(["p", &target.to_hex()]).tag(["h", &channel]);
        self.say(draft, None)
    }

    /// 30622: which direct conversations a viewer has hidden.
    pub(super) fn list_hidden(&mut self, viewer: PublicKey) -> Result<(), StoreError> {
        let changed = &self.changes.channels;
        let unchanged = self.state.channels().filter(|channel| !changed.contains_key(&channel.id));
        let all = unchanged.map(|channel| &**channel).chain(changed.values());
        let mut hidden: Vec<_> = all
            .filter(|channel| !channel.deleted && channel.hidden_by.contains(&viewer))
            .map(|channel| channel.id.to_string())
            .collect();
        hidden.sort();
        let viewer = viewer.to_hex();
        let slot = key::head(DM_VISIBILITY, &self.keys.public_key(), None, &viewer);
        let at = self.time_after_head(&slot)?;
        let draft = Draft::new(DM_VISIBILITY, "", at).tag(["d", &viewer]).tag(["p", &viewer]);
        let draft = hidden.iter().fold(draft, |draft, channel| draft.tag(["h", channel]));
        self.say(draft, None)
    }

    /// 41001: a direct conversation is there, for those who look for theirs.
    pub(super) fn announce_direct(&mut self, id: ChannelId) -> Result<(), StoreError> {
        let Some(channel) = self.channel(&id) else { return Ok(()) };
        let draft = Draft::new(DM_CREATED, "", self.now).tag(["d", &id.to_string()]);
        let draft = channel.members.keys().fold(draft, |draft, key| draft.tag(["p", &key.to_hex()]));
        self.say(draft, Some(id))
    }
}

fn tag<const N: usize>(values: [&str; N]) -> Tag {
    values.map(str::to_owned).to_vec()
}

fn metadata(channel: &Channel) -> Vec<Tag> {
    let mut tags = vec![tag(["d", &channel.id.to_string()]), tag(["name", &channel.name])];
    let mut optional = |name: &str, value: &Option<String>| {
        tags.extend(value.as_ref().map(|value| tag([name, value])));
    };
    optional("about", &channel.about);
    tags.push(tag([match channel.visibility {
        Visibility::Open => "public",
        Visibility::Private => "private",
    }]));
    if channel.kind == ChannelType::Dm {
        tags.push(tag(["hidden"]));
        tags.extend(channel.members.keys().map(|key| tag(["p", &key.to_hex()])));
    }
    tags.push(tag(["closed"]));
    tags.push(tag(["t", channel.kind.as_str()]));
    let mut optional =
        |name: &str, value: Option<String>| tags.extend(value.map(|value| tag([name, &value])));
    optional("topic", channel.topic.clone());
    optional("purpose", channel.purpose.clone());
    optional("archived", channel.archived.then(|| "true".to_owned()));
    optional("ttl", channel.ttl_secs.map(|seconds| seconds.to_string()));
    optional("ttl_deadline", channel.ttl_deadline.map(rfc3339));
    optional("model", channel.model.clone());
    tags
}

fn admins(channel: &Channel) -> Vec<Tag> {
    let managers = channel.members.iter().filter(|(_, role)| is_elevated(**role));
    let tags = managers.map(|(key, role)| tag(["p", &key.to_hex(), role.as_str()]));
    std::iter::once(tag(["d", &channel.id.to_string()])).chain(tags).collect()
}

fn members(channel: &Channel) -> Vec<Tag> {
    let tags = channel.members.iter().map(|(key, role)| tag(["p", &key.to_hex(), "", role.as_str()]));
    std::iter::once(tag(["d", &channel.id.to_string()])).chain(tags).collect()
}

fn rfc3339(seconds: u64) -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds)).to_string()
}
