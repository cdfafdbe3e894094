//! Deletions: an author's own (kind 5), and those in a channel (kind 9005).

use serde_json::{json, Map, Value};
use waxlog_nostr::kind::{class, Class, PUSH_LEASE, WORKFLOW};
use waxlog_nostr::{Event, EventId, PublicKey};

use super::{invalid, last_target, Effect, Facts, Judged};
use crate::channel::{Channel, ChannelId};
use crate::store::key;
use crate::store::record::{Stored, Stub};

/// The tags that make a deletion a moderator's.
const MODERATION_TAGS: [&str; 3] = ["action_id", "reason_code", "public_reason"];

/// The channel of what an `e` tag names, deleted or not.
pub(crate) fn channel_of(target: &EventId, facts: &Facts<'_>) -> Judged<Option<ChannelId>> {
    Ok(stub_of(target, facts)?.0.channel)
}

/// Kind 5: by the author of the target, or by the owner of the agent that wrote it.
pub(crate) fn by_author(event: &Event, facts: &Facts<'_>) -> Judged<Vec<Effect>> {
    has_one_target(event)?;
    if event.tags_named("e").next().is_some() {
        let Some(target) = last_target(event) else { return Ok(Vec::new()) };
        let (stub, is_here) = stub_of(&target, facts)?;
        if !facts.is_author_or_owner(&event.pubkey, &stub.author) {
            return Err(invalid("must be event author"));
        }
        let erased = is_here && stub.kind != WORKFLOW && stub.kind != PUSH_LEASE;
        return Ok(erased.then_some(Effect::Erase(target)).into_iter().collect());
    }
    by_address(event, facts)
}

/// The head of a coordinate, if it is not newer than its deletion.
fn by_address(event: &Event, facts: &Facts<'_>) -> Judged<Vec<Effect>> {
    let address = event.tag_value("a").unwrap_or_default();
    let malformed = || invalid(format!("an a tag must be kind:pubkey:d, got {address:?}"));
    let (kind, rest) = address.split_once(':').ok_or_else(malformed)?;
    let (author, identifier) = rest.split_once(':').ok_or_else(malformed)?;
    let kind: u16 = kind.parse().map_err(|_| malformed())?;
    let author: PublicKey = author.parse().map_err(|_| malformed())?;
    if !facts.is_author_or_owner(&event.pubkey, &author) {
        return Err(invalid("must be event author"));
    }
    if class(kind) != Class::Addressable || matches!(kind, WORKFLOW | PUSH_LEASE) {
        return Ok(Vec::new());
    }
    let head = facts.store.get(&key::head(kind, &author, None, identifier))?;
    let Some(seq) = head.as_deref().and_then(key::number) else { return Ok(Vec::new()) };
    let head = facts.store.read(&key::body(seq), Stored::from_bytes)?.and_then(Stored::here);
    let reached = head.filter(|head| head.event.created_at <= event.created_at);
    Ok(reached.map(|head| Effect::Erase(head.event.id)).into_iter().collect())
}

/// 9005: by the author while in the channel, by its managers, or by the owner of the agent that wrote it.
pub(crate) fn in_channel(event: &Event, channel: &Channel, facts: &Facts<'_>) -> Judged<Vec<Effect>> {
    has_one_target(event)?;
    let target = last_target(event).ok_or_else(|| invalid("an e tag with the target's id is required"))?;
    let (stub, is_here) = stub_of(&target, facts)?;
    if stub.channel != Some(channel.id) {
        return Err(invalid("the target is not in this channel"));
    }
    let is_moderation = MODERATION_TAGS.iter().any(|name| event.tags_named(name).next().is_some());
    if event.tag_value("action_id").is_some_and(|id| id.parse::<ChannelId>().is_err()) {
        return Err(invalid("action_id must be a UUID"));
    }
    let actor = event.pubkey;
    let is_own = !is_moderation && actor == stub.author && channel.admits(&actor);
    if !is_own && !channel.is_manager(&actor) && !facts.state.owns(&actor, &stub.author) {
        return Err(invalid("must be event author or an owner or admin of the channel"));
    }
    if !is_here {
        return Ok(Vec::new());
    }
    let mut said = Map::new();
    for name in MODERATION_TAGS {
        said.extend(event.tag_value(name).map(|value| (name.to_owned(), Value::from(value))));
    }
    said.extend([
        ("type".to_owned(), json!("message_deleted")),
        ("actor".to_owned(), json!(actor)),
        ("target_event_id".to_owned(), json!(target)),
    ]);
    Ok(vec![Effect::Erase(target), Effect::Tell(channel.id, said.into())])
}

fn has_one_target(event: &Event) -> Judged<()> {
    let (e, a) = (event.tags_named("e").count(), event.tags_named("a").count());
    match e + a {
        1 => Ok(()),
        _ => Err(invalid(format!(
            "deletion events must reference exactly one target via e or a tag (got e={e}, a={a})"
        ))),
    }
}

/// Whose the target is and where, and whether it is still there.
fn stub_of(target: &EventId, facts: &Facts<'_>) -> Judged<(Stub, bool)> {
    match facts.find(target)? {
        None => Err(invalid("target event not found")),
        Some((_, Stored::Gone(stub))) => Ok((stub, false)),
        Some((_, Stored::Here(record))) => {
            let author = facts.author(&record.event);
            Ok((Stub { author, kind: record.event.kind, channel: record.channel }, true))
        }
    }
}
