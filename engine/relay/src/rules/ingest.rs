//! The order in which a checked event is judged: steps 10 to 17 of the order of ingest.

use waxlog_nostr::kind::*;
use waxlog_nostr::Event;

use super::{channel, deletion, dm, envelope, invalid, last_target, membership, message, reaction};
use super::{refused, thread, workflow, Facts, Fault, Judged, Keep, Verdict};
use crate::channel::ChannelId;
use crate::kinds;
use crate::reply::{Reply, NOT_A_MEMBER};
use crate::store::record::Stored;

/// The answer to an event that is there already.
pub(crate) const KNOWN: &str = "duplicate: already have this event";

/// What an event that is stored, or carried out as a command, leads to.
pub(crate) fn judge(event: &Event, facts: &Facts<'_>) -> Judged<Verdict> {
    if kinds::is_command(event.kind) {
        return dm::judge(event, facts);
    }
    // These two say themselves what a repetition is.
    let says_itself = matches!(event.kind, REACTION | CREATE_CHANNEL);
    if !says_itself && facts.find(&event.id)?.is_some() {
        return Err(known());
    }
    let channel = resolve_channel(event, facts)?;
    if channel.is_none() && kinds::needs_channel(event.kind) {
        return Err(invalid("channel-scoped events must include an h tag"));
    }
    may_write(event, channel.as_ref(), facts)?;
    let verdict = apply_rules(event, channel, facts)?;
    is_writable(event, channel.as_ref(), facts)?;
    envelope::check(event, facts)?;
    if !says_itself {
        return Ok(verdict);
    }
    match facts.find(&event.id)? {
        None => Ok(verdict),
        // Given, taken back and given again within a second, a reaction is one event, and that is deleted.
        Some((_, Stored::Gone(_))) if event.kind == REACTION => {
            Ok(Verdict { keep: Keep::PassedOn, ..verdict })
        }
        Some(_) => Err(known()),
    }
}

fn known() -> Fault {
    Fault::Refused(Reply::accepted(KNOWN))
}

fn resolve_channel(event: &Event, facts: &Facts<'_>) -> Judged<Option<ChannelId>> {
    match event.kind {
        REACTION => Ok(reaction::target(event, facts)?.channel),
        DELETION => match last_target(event) {
            Some(target) => deletion::channel_of(&target, facts),
            None => Ok(ChannelId::of(event)),
        },
        kind if kinds::is_global(kind) => Ok(None),
        _ => Ok(ChannelId::of(event)),
    }
}

fn may_write(event: &Event, channel: Option<&ChannelId>, facts: &Facts<'_>) -> Judged<()> {
    let Some(channel) = channel else { return Ok(()) };
    match kinds::has_own_membership_rule(event.kind) || facts.state.admits(channel, &event.pubkey) {
        true => Ok(()),
        false => Err(refused(NOT_A_MEMBER)),
    }
}

fn apply_rules(event: &Event, channel: Option<ChannelId>, facts: &Facts<'_>) -> Judged<Verdict> {
    let verdict = Verdict::keep(channel);
    let Some(channel) = channel else {
        return match event.kind {
            CREATE_CHANNEL => channel::create(event, facts),
            JOIN_CHANNEL => Err(invalid("joining needs an h tag with the channel's id")),
            DELETION => Ok(verdict.with(deletion::by_author(event, facts)?)),
            REACTION => reaction::judge(event, facts).map(|()| verdict),
            AGENT_PROFILE => Ok(verdict.with(membership::policy(event))),
            WORKFLOW => workflow::define(verdict, event, facts),
            _ => Ok(verdict),
        };
    };
    match event.kind {
        CREATE_CHANNEL => channel::create(event, facts),
        PUT_USER => Ok(verdict.with(membership::put(event, facts.channel(&channel)?, facts)?)),
        REMOVE_USER => Ok(verdict.with(membership::remove(event, facts.channel(&channel)?, facts)?)),
        JOIN_CHANNEL => Ok(verdict.with(membership::join(event, facts.channel(&channel)?)?)),
        LEAVE_CHANNEL => Ok(verdict.with(membership::leave(event, facts.channel(&channel)?)?)),
        EDIT_CHANNEL => Ok(verdict.with(channel::edit(event, facts.channel(&channel)?, facts)?)),
        DELETE_CHANNEL => Ok(verdict.with(channel::delete(event, facts.channel(&channel)?, facts)?)),
        DELETE_MESSAGE => {
            let effects = deletion::in_channel(event, facts.channel(&channel)?, facts)?;
            Ok(verdict.with(effects))
        }
        DELETION => Ok(verdict.with(deletion::by_author(event, facts)?)),
        REACTION => reaction::judge(event, facts).map(|()| verdict),
        EDIT => message::edit(event, &channel, facts).map(|()| verdict),
        FORUM_VOTE => message::vote(event, &channel, facts).map(|()| verdict),
        _ => Ok(thread::place(verdict, event, &channel, facts)?),
    }
}

/// An archived channel takes nothing but its way back.
fn is_writable(event: &Event, channel: Option<&ChannelId>, facts: &Facts<'_>) -> Judged<()> {
    let is_archived = channel.and_then(|id| facts.state.channel(id)).is_some_and(|channel| channel.archived);
    let is_way_back = event.kind == EDIT_CHANNEL && event.tag_value("archived") == Some("false");
    match is_archived && !is_way_back && event.kind != CREATE_CHANNEL {
        true => Err(invalid("channel is archived")),
        false => Ok(()),
    }
}
