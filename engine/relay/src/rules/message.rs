//! What refers to a message of the same channel: edits (40003) and votes (45002).

use waxlog_nostr::kind::{FORUM_COMMENT, FORUM_POST};
use waxlog_nostr::Event;

use super::{invalid, last_target, Facts, Judged};
use crate::channel::ChannelId;
use crate::store::record::Record;

/// 40003: an author, or the owner of an agent that is one, writes a text anew.
pub(crate) fn edit(event: &Event, channel: &ChannelId, facts: &Facts<'_>) -> Judged<()> {
    let target = target(event, channel, facts, "edit target event not found")?;
    if !facts.is_author_or_owner(&event.pubkey, &facts.author(&target.event)) {
        return Err(invalid("must be event author to edit"));
    }
    match facts.state.admits(channel, &event.pubkey) {
        true => Ok(()),
        false => Err(invalid("must still be a member of the channel to edit")),
    }
}

/// 45002: a vote on a post or a comment.
pub(crate) fn vote(event: &Event, channel: &ChannelId, facts: &Facts<'_>) -> Judged<()> {
    let target = target(event, channel, facts, "vote target event not found")?;
    match target.event.kind {
        FORUM_POST | FORUM_COMMENT => Ok(()),
        kind => Err(invalid(format!("a vote is on a forum post or comment, not on kind {kind}"))),
    }
}

fn target(event: &Event, channel: &ChannelId, facts: &Facts<'_>, missing: &'static str) -> Judged<Record> {
    let id = last_target(event).ok_or_else(|| invalid("an e tag with the target is required"))?;
    let target = facts.record(&id)?.ok_or_else(|| invalid(missing))?;
    match target.channel == Some(*channel) {
        true => Ok(target),
        false => Err(invalid("the target is not in this channel")),
    }
}
