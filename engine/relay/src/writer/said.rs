//! What the relay says itself: channels and their members, what happened, who was added, what is hidden.

use serde_json::{json, Value};
use waxlog_nostr::channel::{ChannelId, ChannelType, Visibility};
use waxlog_nostr::kind::*;
use waxlog_nostr::{Draft, EventId, PublicKey, Tag};

use super::{Replies, Transaction};
use crate::channel::{is_elevated, Channel};
use crate::live::{Live, LiveEvent};
use crate::store::record::Stored;
use crate::store::{key, StoreError};

/// How many names a thread's summary holds.
const MAX_PARTICIPANTS: usize = 100;

impl Transaction<'_> {
    /// 39000, 39001 and 39002: what a channel is and who is in it, each newer than the one before.
    pub(super) fn describe(&mut self, id: ChannelId) -> Result<(), StoreError> {
        let Some(mut channel) = self.channel(&id).cloned() else { return Ok(()) };
        channel.announced_at = self.now.max(channel.announced_at + 1);
        let at = channel.announced_at;
        let drafts = [(CHANNEL_METADATA, metadata(&channel)), (CHANNEL_ADMINS, admins(&channel)), (CHANNEL_MEMBERS, members(&channel))];
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

    /// 39005: how many replies a thread has, for those who are in the channel now. It is not stored.
    /// `without` is a reply that goes by this transaction.
    pub(super) fn summarize(
        &mut self,
        channel: ChannelId,
        root: EventId,
        without: Option<EventId>,
    ) -> Result<(), StoreError> {
        let mut replies = count_replies(self, root, without)?;
        for live in &self.live {
            // The reply that led here is not in the store yet.
            let Live::Event(live) = live else { continue };
            let thread = waxlog_nostr::thread::Thread::stored(&live.event).ok().flatten();
            if let Some(thread) = thread.filter(|thread| thread.root == root) {
                replies.add(live.event.pubkey, live.event.created_at, thread.parent == root);
            }
        }
        let event = self.keys.sign(summary(channel, root, &replies, self.now));
        self.live.push(Live::Event(LiveEvent::new(event, Some(channel))));
        Ok(())
    }
}

/// The summary of a thread as an event to sign.
pub(crate) fn summary(channel: ChannelId, root: EventId, replies: &Replies, now: u64) -> Draft {
    let participants: Vec<_> = replies.participants.keys().take(MAX_PARTICIPANTS).collect();
    let content = json!({
        "reply_count": replies.direct,
        "descendant_count": replies.all,
        "last_reply_at": replies.last_at,
        "participants": participants,
    });
    let root = root.to_hex();
    Draft::new(THREAD_SUMMARY, content.to_string(), now).tag(["e", &root]).tag(["d", &root]).tag(["h", &channel.to_string()])
}

fn count_replies(
    transaction: &Transaction<'_>,
    root: EventId,
    without: Option<EventId>,
) -> Result<Replies, StoreError> {
    let prefix = key::by_thread(&root);
    let mut replies = Replies::default();
    let mut scan = transaction.store.scan(&prefix, &prefix);
    while let Some(place) = scan.next_with(|key, _| Ok(key::Place::at_end_of(key)))? {
        let Some(place) = place else { continue };
        let stored = transaction.store.read(&key::body(place.seq), Stored::from_bytes)?;
        let Some(record) = stored.and_then(Stored::here) else { continue };
        let Some(thread) = record.thread.filter(|thread| thread.root == root) else { continue };
        if Some(record.event.id) != without {
            replies.add(record.event.pubkey, record.event.created_at, thread.depth == 1);
        }
    }
    Ok(replies)
}

impl Replies {
    fn add(&mut self, author: PublicKey, created_at: u64, is_direct: bool) {
        self.all += 1;
        self.direct += u64::from(is_direct);
        self.last_at = self.last_at.max(Some(created_at));
        self.participants.insert(author, ());
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
    let mut optional = |name: &str, value: Option<String>| tags.extend(value.map(|value| tag([name, &value])));
    optional("topic", channel.topic.clone());
    optional("purpose", channel.purpose.clone());
    optional("archived", channel.archived.then(|| "true".to_owned()));
    optional("ttl", channel.ttl_secs.map(|seconds| seconds.to_string()));
    optional("ttl_deadline", channel.ttl_deadline.map(crate::time::rfc3339));
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
