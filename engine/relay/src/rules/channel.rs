//! Channels are made, changed and deleted (kinds 9007, 9002, 9008).

use serde_json::json;
use waxlog_nostr::channel::{self, ChannelType, Role, Visibility, MAX_TTL_SECONDS};
use waxlog_nostr::{Event, PublicKey};

use super::{invalid, refused, Effect, Facts, Fault, Judged, Verdict};
use crate::channel::{Channel, ChannelId};
use crate::live::Whom;
use crate::reply::Reply;

/// What a manager changes by 9002.
const OF_MANAGERS: [&str; 5] = ["name", "about", "archived", "visibility", "ttl"];
/// What any member changes by 9002.
const OF_MEMBERS: [&str; 4] = ["topic", "purpose", "model", "agent_config"];

/// 9007: the author opens a channel and owns it.
pub(crate) fn create(event: &Event, facts: &Facts<'_>) -> Judged<Verdict> {
    let id = match (ChannelId::of(event), event.tag_value("h")) {
        (Some(id), _) => id,
        (None, Some(_)) => return Err(invalid("the h tag must be the new channel's UUID")),
        (None, None) => random_id()?,
    };
    let name = clean_name(event.tag_value("name").unwrap_or_default())?;
    let visibility = match event.tag_value("visibility") {
        Some(text) => text.parse().map_err(|_| refused(format!("invalid visibility: {text}")))?,
        None => Visibility::Open,
    };
    let kind = match event.tag_value("channel_type") {
        Some(text) => text.parse().map_err(|_| refused(format!("invalid channel_type: {text}")))?,
        None => ChannelType::Stream,
    };
    let ttl_secs = event.tag_value("ttl").map(parse_ttl).transpose()?.flatten();
    if facts.state.is_taken(&id) {
        return Err(Fault::Refused(Reply::known("duplicate: channel already exists")));
    }
    let owner = event.pubkey;
    let mut channel = Channel::new(id, name, kind, visibility);
    channel.about = filled(event.tag_value("about"));
    channel.ttl_secs = ttl_secs;
    channel.renew(facts.now);
    channel.members.insert(owner, Role::Owner);
    Ok(Verdict::keep(Some(id)).with([
        Effect::Channel(Box::new(channel)),
        Effect::Describe(id),
        Effect::Tell(id, json!({"type": "channel_created", "actor": owner})),
        Effect::Added { channel: id, target: owner, actor: owner },
    ]))
}

/// 9002: metadata of a channel changes.
pub(crate) fn edit(event: &Event, channel: &Channel, facts: &Facts<'_>) -> Judged<Vec<Effect>> {
    let names_any = |names: &[&str]| names.iter().any(|name| event.tags_named(name).next().is_some());
    let (of_managers, of_members) = (names_any(&OF_MANAGERS), names_any(&OF_MEMBERS));
    let actor = event.pubkey;
    if !of_managers && !of_members {
        let known = OF_MANAGERS.iter().chain(&OF_MEMBERS).copied().collect::<Vec<_>>().join(", ");
        return Err(invalid(format!("an edit needs at least one of the tags {known}")));
    }
    if of_managers && !channel.is_manager(&actor) && !owns_an_owner(&actor, channel, facts) {
        return Err(invalid("actor not authorized"));
    }
    if of_members && !facts.state.is_member(&channel.id, &actor) {
        return Err(invalid("not a member"));
    }
    let mut changed = channel.clone();
    let mut effects = Vec::new();
    change_managed(event, &mut changed, &mut effects, facts.now)?;
    change_shared(event, &mut changed, &mut effects);
    effects.insert(0, Effect::Channel(Box::new(changed)));
    effects.insert(1, Effect::Describe(channel.id));
    Ok(effects)
}

fn change_managed(event: &Event, channel: &mut Channel, effects: &mut Vec<Effect>, now: u64) -> Judged<()> {
    let (id, actor) = (channel.id, event.pubkey);
    if let Some(name) = event.tag_value("name") {
        channel.name = clean_name(name)?;
    }
    if let Some(about) = event.tag_value("about") {
        channel.about = filled(Some(about));
    }
    if let Some(text) = event.tag_value("ttl") {
        channel.ttl_secs = parse_ttl(text)?;
        channel.renew(now);
        let said = json!({"type": "ttl_changed", "actor": actor, "ttl_seconds": channel.ttl_secs});
        effects.push(Effect::Tell(id, said));
    }
    if let Some(text) = event.tag_value("visibility") {
        let visibility: Visibility =
            text.parse().map_err(|_| invalid(format!("invalid visibility: {text}")))?;
        let closes = channel.visibility == Visibility::Open && visibility == Visibility::Private;
        channel.visibility = visibility;
        let said = json!({"type": "visibility_changed", "actor": actor, "visibility": visibility.as_str()});
        effects.push(Effect::Tell(id, said));
        effects.extend(closes.then_some(Effect::Revoke(id, Whom::NonMembers)));
    }
    match event.tag_value("archived") {
        Some("true") if !channel.archived => {
            channel.archived = true;
            effects.push(Effect::Tell(id, json!({"type": "channel_archived", "actor": actor})));
        }
        Some("false") if channel.archived => {
            channel.archived = false;
            channel.renew(now);
            effects.push(Effect::Tell(id, json!({"type": "channel_unarchived", "actor": actor})));
            // Members that dropped the channel when it closed take it up again by this.
            effects.extend(channel.members.keys().map(|target| Effect::Added {
                channel: id,
                target: *target,
                actor,
            }));
        }
        None | Some("true" | "false") => {}
        Some(text) => return Err(invalid(format!("archived must be true or false, got {text:?}"))),
    }
    Ok(())
}

fn change_shared(event: &Event, channel: &mut Channel, effects: &mut Vec<Effect>) {
    let (id, actor) = (channel.id, event.pubkey);
    if let Some(topic) = event.tag_value("topic") {
        channel.topic = filled(Some(topic));
        effects.push(Effect::Tell(id, json!({"type": "topic_changed", "actor": actor, "topic": topic})));
    }
    if let Some(purpose) = event.tag_value("purpose") {
        channel.purpose = filled(Some(purpose));
        effects
            .push(Effect::Tell(id, json!({"type": "purpose_changed", "actor": actor, "purpose": purpose})));
    }
    if let Some(model) = event.tag_value("model") {
        channel.model = filled(Some(model));
    }
}

/// 9008: a channel goes, with all that is in it.
pub(crate) fn delete(event: &Event, channel: &Channel, facts: &Facts<'_>) -> Judged<Vec<Effect>> {
    let actor = event.pubkey;
    if channel.role(&actor) != Some(Role::Owner) && !owns_an_owner(&actor, channel, facts) {
        return Err(invalid("only owner can delete group"));
    }
    let mut deleted = channel.clone();
    deleted.deleted = true;
    Ok(vec![
        Effect::Tell(channel.id, json!({"type": "channel_deleted", "actor": actor})),
        Effect::Channel(Box::new(deleted)),
    ])
}

/// Whether `actor` is the human owner of an agent that owns the channel.
pub(crate) fn owns_an_owner(actor: &PublicKey, channel: &Channel, facts: &Facts<'_>) -> bool {
    channel.owners().any(|owner| facts.state.owns(actor, owner))
}

/// What the reaper does to a channel whose time has passed.
pub(crate) fn expire(channel: &Channel, relay: &PublicKey) -> Vec<Effect> {
    let id = channel.id;
    let mut archived = channel.clone();
    archived.archived = true;
    archived.ttl_deadline = None;
    vec![
        Effect::Channel(Box::new(archived)),
        Effect::Describe(id),
        Effect::Tell(id, json!({"type": "channel_auto_archived", "actor": relay})),
        Effect::Revoke(id, Whom::Everyone),
    ]
}

fn clean_name(name: &str) -> Judged<String> {
    channel::clean_name(name).map(str::to_owned).map_err(|_| invalid("channel name is required"))
}

fn parse_ttl(text: &str) -> Judged<Option<u64>> {
    if text.is_empty() {
        return Ok(None);
    }
    let seconds = text.parse().ok().filter(|seconds| (1..=u64::from(MAX_TTL_SECONDS)).contains(seconds));
    seconds
        .map(Some)
        .ok_or_else(|| invalid(format!("ttl must be a positive number of seconds, got {text:?}")))
}

fn filled(text: Option<&str>) -> Option<String> {
    text.filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A new channel id.
pub(crate) fn random_id() -> Judged<ChannelId> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        log::error!("no random bytes for a channel's id: {error}");
        Fault::Refused(Reply::internal())
    })?;
    Ok(ChannelId::from_random(bytes))
}
