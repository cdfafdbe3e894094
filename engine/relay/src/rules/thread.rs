//! Threads: where a reply belongs, and whether what it says of that is true.

use waxlog_nostr::{Event, EventId};

use super::{invalid, Effect, Facts, Judged, Verdict};
use crate::channel::ChannelId;
use crate::store::record::Thread;

/// How deep a thread may be.
pub(crate) const MAX_DEPTH: u8 = 100;
/// From this many elements on an `e` tag has a marker.
const MARKED_ELEMENTS: usize = 4;

/// What an event's marked tags say.
struct Claim {
    root: EventId,
    parent: EventId,
}

/// Puts the event where its marks say, if they are true.
pub(crate) fn place(
    mut verdict: Verdict,
    event: &Event,
    channel: &ChannelId,
    facts: &Facts<'_>,
) -> Judged<Verdict> {
    let Some(claim) = claim(event) else { return Ok(verdict) };
    let parent = facts.record(&claim.parent)?.ok_or_else(|| invalid("reply parent not found"))?;
    match parent.channel {
        None => return Err(invalid("parent event has no channel association")),
        Some(other) if other != *channel => return Err(invalid("parent event belongs to a different channel")),
        Some(_) => {}
    }
    let root = parent.thread.map_or(parent.event.id, |thread| thread.root);
    if claim.root != root {
        return Err(invalid("root tag does not match thread ancestry"));
    }
    let depth = parent.thread.map_or(0, |thread| thread.depth) + 1;
    if depth > MAX_DEPTH {
        return Err(invalid("thread depth limit exceeded"));
    }
    verdict.thread = Some(Thread { root, parent: claim.parent, depth, broadcast: is_broadcast(event) });
    Ok(verdict.with([Effect::Summarize(*channel, root)]))
}

/// Only a `reply` mark makes a reply; a `root` alone does not.
fn claim(event: &Event) -> Option<Claim> {
    let marked = |mark: &str| {
        let is_marked = |tag: &&Vec<String>| tag.len() >= MARKED_ELEMENTS && tag[3] == mark;
        event.tags_named("e").filter(is_marked).filter_map(|tag| tag[1].parse().ok()).last()
    };
    let parent = marked("reply")?;
    Some(Claim { root: marked("root").unwrap_or(parent), parent })
}

fn is_broadcast(event: &Event) -> bool {
    event.tags.iter().any(|tag| tag.len() == 2 && tag[0] == "broadcast" && tag[1] == "1")
}
