//! A channel with a person and an agent in it. What is there already stays as it is.

use serde_json::Value;
use waxlog_nostr::build::channel::{self, New};
use waxlog_nostr::build::user::{self, ProfileChange};
use waxlog_nostr::channel::{members, ChannelId, ChannelType, Metadata, Role, Visibility};
use waxlog_nostr::kind::{CHANNEL_MEMBERS, CHANNEL_METADATA, PROFILE};
use waxlog_nostr::{profile, Draft, Filter, PublicKey};

use super::crew::Crew;
use crate::buzz::{self, Context};
use crate::failure::Failure;

/// How many channels of the person are looked through for one of the name.
const CHANNELS_MAX: usize = 1_000;

/// What there should be.
pub(super) struct Wanted<'a> {
    /// The channel's name.
    pub(super) channel: &'a str,
    /// The agent's name, if it is to have a certain one.
    pub(super) name: Option<&'a str>,
    /// Its name if it has none.
    pub(super) default_name: &'a str,
}

/// What there is.
pub(super) struct Room {
    /// The relay's URL, for HTTP.
    pub(super) relay: String,
    pub(super) channel: ChannelId,
    pub(super) channel_name: String,
    pub(super) person: PublicKey,
    pub(super) agent: PublicKey,
    pub(super) agent_name: String,
}

impl Room {
    /// Makes what is not there yet.
    pub(super) fn furnish(crew: &Crew, relay: &str, wanted: &Wanted) -> Result<Room, Failure> {
        let failed = |error: buzz::Failure| {
            Failure::SetUp(format!("waxlog: the channel on {relay} cannot be prepared: {error}"))
        };
        furnish(crew, relay, wanted).map_err(failed)
    }
}

fn furnish(crew: &Crew, relay: &str, wanted: &Wanted) -> Result<Room, buzz::Failure> {
    let person = Context::of(crew.person.clone(), None, relay.to_owned())?;
    let agent = Context::of(crew.agent.clone(), Some(crew.owner_tag.clone()), relay.to_owned())?;
    let agent_name = name(&agent, wanted)?;
    let (channel, channel_name) = match own_channel(&person, wanted.channel)? {
        Some(found) => found,
        None => (create(&person, wanted.channel)?, wanted.channel.to_owned()),
    };
    if !is_member(&person, &channel, &agent.me())? {
        let draft = channel::add_member(&channel, &agent.me(), Some(Role::Bot), person.now());
        write(&person, draft)?;
    }
    let (person, agent) = (person.me(), agent.me());
    Ok(Room { relay: relay.to_owned(), channel, channel_name, person, agent, agent_name })
}

/// The agent's name, which its profile says from now on.
fn name(agent: &Context, wanted: &Wanted) -> Result<String, buzz::Failure> {
    let head = agent.first(Filter::new().kinds([PROFILE]).authors([agent.me()]))?;
    let known = head.as_ref().and_then(|head| profile::name(&head.content));
    let name = match (wanted.name, &known) {
        (Some(name), _) => name,
        (None, Some(known)) => known,
        (None, None) => wanted.default_name,
    };
    if known.as_deref() != Some(name) {
        let change = ProfileChange { display_name: Some(name), ..ProfileChange::default() };
        write(agent, user::profile(head.as_ref(), &change, agent.time_after(head.as_ref())))?;
    }
    Ok(name.to_owned())
}

/// The oldest open channel of this name that one is a member of.
fn own_channel(person: &Context, name: &str) -> Result<Option<(ChannelId, String)>, buzz::Failure> {
    let memberships = Filter::new().kinds([CHANNEL_MEMBERS]).tag('p', [person.me().to_hex()]);
    let ids: Vec<String> =
        person.pages(&memberships, CHANNELS_MAX)?.iter().map(|event| event.identifier().to_owned()).collect();
    if ids.is_empty() {
        return Ok(None);
    }
    let mut found = person.pages(&Filter::new().kinds([CHANNEL_METADATA]).tag('d', ids), CHANNELS_MAX)?;
    found.sort_by_key(|event| event.created_at);
    let is_wanted = |channel: &Metadata| channel.name == name && !channel.is_archived && !channel.is_hidden;
    let channel = found.iter().filter_map(Metadata::of).find(is_wanted);
    Ok(channel.and_then(|channel| Some((channel.id.parse().ok()?, channel.name))))
}

fn create(person: &Context, name: &str) -> Result<ChannelId, buzz::Failure> {
    let channel = ChannelId::from_random(*uuid::Uuid::new_v4().as_bytes());
    let new = New {
        channel,
        name,
        visibility: Some(Visibility::Open),
        channel_type: Some(ChannelType::Stream),
        about: None,
        ttl_seconds: None,
    };
    write(person, channel::create(&new, person.now())?)?;
    Ok(channel)
}

fn is_member(person: &Context, channel: &ChannelId, who: &PublicKey) -> Result<bool, buzz::Failure> {
    let list = person.first(Filter::new().kinds([CHANNEL_MEMBERS]).tag('d', [channel.to_string()]))?;
    Ok(list.is_some_and(|list| members(&list).iter().any(|member| member.pubkey == *who)))
}

/// Sends what must be taken.
fn write(who: &Context, draft: Draft) -> Result<(), buzz::Failure> {
    let kind = draft.kind;
    let answer = who.send(draft)?;
    match &answer["accepted"] {
        Value::Bool(false) => {
            Err(buzz::Failure::Other(format!("the relay did not take an event of kind {kind}: {answer}")))
        }
        _ => Ok(()),
    }
}
