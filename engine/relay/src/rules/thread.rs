//! Threads: where a reply belongs, and whether what it says of that is true.

use waxlog_nostr::thread::{self, MAX_DEPTH};
use waxlog_nostr::Event;

use super::{invalid, Effect, Facts, Judged, Verdict};
use crate::channel::ChannelId;
use crate::store::record::Thread;
use crate::writer::summary::Reply;

/// Puts the event where its marks say, if they are true.
pub(crate) fn place(
    mut verdict: Verdict,
    event: &Event,
    channel: &ChannelId,
    facts: &Facts<'_>,
) -> Judged<Verdict> {
    let claim = thread::Thread::stored(event).map_err(|_| invalid("reply parent not found"))?;
    let Some(claim) = claim else { return Ok(verdict) };
    let parent = facts.record(&claim.parent)?.ok_or_else(|| invalid("reply parent not found"))?;
    match parent.channel {
        None => return Err(invalid("parent event has no channel association")),
        Some(other) if other != *channel => {
            return Err(invalid("parent event belongs to a different channel"))
        }
        Some(_) => {}
    }
    let root = parent.thread.map_or(parent.event.id, |thread| thread.root);
    if claim.root != root {
        return Err(invalid("root tag does not match thread ancestry"));
    }
    let depth = parent.thread.map_or(0, |thread| thread.depth) + 1;
    if u32::from(depth) > MAX_DEPTH {
        return Err(invalid("thread depth limit exceeded"));
    }
    verdict.thread =
        Some(Thread { root, parent: claim.parent, depth, broadcast: thread::is_broadcast(event) });
    let reply = Reply { author: event.pubkey, created_at: event.created_at, is_direct: depth == 1 };
    Ok(verdict.with([Effect::Replied { channel: *channel, root, reply }]))
}
