//! Direct conversations (41010, 41011, 41012): private channels keyed by their people.

use std::collections::BTreeSet;

use serde_json::json;
use waxlog_nostr::channel::{ChannelType, Role, Visibility, MAX_DM_OTHERS};
use waxlog_nostr::kind::{DM_ADD, DM_OPEN};
use waxlog_nostr::{Event, PublicKey};

use super::channel::random_id;
use super::{invalid, refused, Effect, Facts, Fault, Judged, Keep, Verdict};
use crate::channel::{Channel, ChannelId};
use crate::reply::Reply;
use crate::store::key;

/// How many people a direct conversation has at most.
const MAX_PEOPLE: usize = MAX_DM_OTHERS + 1;

/// What a command leads to. A command is not stored; that it was carried out is.
pub(crate) fn judge(event: &Event, facts: &Facts<'_>) -> Judged<Verdict> {
    if facts.store.get(&key::command(&event.id))?.is_some() {
        return Err(Fault::Refused(Reply::accepted("duplicate: already processed")));
    }
    match event.kind {
        DM_OPEN => open(event, facts),
        DM_ADD => add(event, facts),
        _ => hide(event, facts),
    }
}

fn carried_out(effects: Vec<Effect>, response: String) -> Verdict {
    Verdict { keep: Keep::Done, channel: None, thread: None, effects, reply: Reply::accepted(response) }
}

fn open(event: &Event, facts: &Facts<'_>) -> Judged<Verdict> {
    let mut people = BTreeSet::from([event.pubkey]);
    people.extend(named_people(event)?);
    if people.len() < 2 {
        return Err(invalid("a DM needs at least one p tag with someone else's key"));
    }
    let (channel, created, effects) = find_or_create(&people, event, facts)?;
    let response = json!({"channel_id": channel.to_string(), "created": created});
    Ok(carried_out(effects, format!("response:{response}")))
}

fn add(event: &Event, facts: &Facts<'_>) -> Judged<Verdict> {
    let channel = direct_channel(event, facts)?;
    let mut people: BTreeSet<_> = channel.members.keys().copied().collect();
    people.extend(named_people(event)?);
    let (channel, _, effects) = find_or_create(&people, event, facts)?;
    Ok(carried_out(effects, format!("response:{}", json!({"channel_id": channel.to_string()}))))
}

fn hide(event: &Event, facts: &Facts<'_>) -> Judged<Verdict> {
    let mut channel = direct_channel(event, facts)?.clone();
    channel.hidden_by.insert(event.pubkey);
    let effects = vec![Effect::Channel(Box::new(channel)), Effect::Hidden(event.pubkey)];
    Ok(carried_out(effects, "{}".to_owned()))
}

/// The direct conversation that the `h` tag names, of which the author is a member.
fn direct_channel<'a>(event: &Event, facts: &'a Facts<'_>) -> Judged<&'a Channel> {
    let id = ChannelId::of(event).ok_or_else(|| invalid("an h tag with the DM's id is required"))?;
    let channel = facts.channel(&id)?;
    if channel.kind != ChannelType::Dm {
        return Err(invalid("channel is not a DM"));
    }
    match channel.is_member(&event.pubkey) {
        true => Ok(channel),
        false => Err(refused("forbidden: not a member of this DM")),
    }
}

fn named_people(event: &Event) -> Judged<Vec<PublicKey>> {
    let parse =
        |value: &str| value.parse().map_err(|_| invalid(format!("a p tag must be a key, got {value:?}")));
    let people: Vec<_> = event.tag_values("p").map(parse).collect::<Result<_, _>>()?;
    match people.is_empty() {
        true => Err(invalid("a p tag with someone's key is required")),
        false => Ok(people),
    }
}

fn find_or_create(
    people: &BTreeSet<PublicKey>,
    event: &Event,
    facts: &Facts<'_>,
) -> Judged<(ChannelId, bool, Vec<Effect>)> {
    if people.len() > MAX_PEOPLE {
        return Err(invalid(format!("DM supports at most {MAX_PEOPLE} participants")));
    }
    match facts.state.direct(people) {
        Some(channel) => Ok((channel.id, false, reopen(channel, &event.pubkey))),
        None => {
            let id = random_id()?;
            Ok((id, true, create(id, people, event)))
        }
    }
}

/// Whoever opens a conversation anew sees it again.
fn reopen(channel: &Channel, viewer: &PublicKey) -> Vec<Effect> {
    let mut shown = channel.clone();
    match shown.hidden_by.remove(viewer) {
        true => vec![Effect::Channel(Box::new(shown)), Effect::Hidden(*viewer)],
        false => Vec::new(),
    }
}

fn create(id: ChannelId, people: &BTreeSet<PublicKey>, event: &Event) -> Vec<Effect> {
    let actor = event.pubkey;
    let name = match people.len() {
        2 => "DM".to_owned(),
        count => format!("Group DM ({count})"),
    };
    let mut channel = Channel::new(id, name, ChannelType::Dm, Visibility::Private);
    channel.members = people.iter().map(|key| (*key, Role::Member)).collect();
    channel.dm_of = Some(people.clone());
    let others = people.iter().filter(|key| **key != actor);
    let participants: Vec<_> = std::iter::once(&actor).chain(others).collect();
    let mut effects = vec![
        Effect::Channel(Box::new(channel)),
        Effect::Describe(id),
        Effect::Tell(id, json!({"type": "dm_created", "actor": actor, "participants": participants})),
        Effect::DirectOpened(id),
    ];
    effects.extend(people.iter().map(|target| Effect::Added { channel: id, target: *target, actor }));
    effects
}
