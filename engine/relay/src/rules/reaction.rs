//! Reactions (kind 7): to something that is there, one of a kind from each.

use waxlog_nostr::{Event, EventId};

use super::{invalid, last_target, Facts, Fault, Judged};
use crate::reply::Reply;
use crate::store::key;
use crate::store::record::Record;

/// How long an emoji may be, in characters.
pub(crate) const MAX_EMOJI_CHARS: usize = 64;
/// What an empty reaction means.
const DEFAULT_EMOJI: &str = "+";

/// The event that is reacted to.
pub(crate) fn target(event: &Event, facts: &Facts<'_>) -> Judged<Record> {
    let target =
        last_target(event).ok_or_else(|| invalid("reaction must reference a target event via e tag"))?;
    facts.record(&target)?.ok_or_else(|| invalid("reaction target event not found"))
}

/// Whether this reaction is a new one.
pub(crate) fn judge(event: &Event, facts: &Facts<'_>) -> Judged<()> {
    let emoji_chars = event.content.chars().count();
    if emoji_chars > MAX_EMOJI_CHARS {
        return Err(invalid(format!(
            "a reaction has at most {MAX_EMOJI_CHARS} characters, got {emoji_chars}"
        )));
    }
    let Some(slot) = slot(event) else { return Ok(()) };
    match facts.store.get(&slot)? {
        Some(_) => Err(Fault::Refused(Reply::known("duplicate: reaction already exists"))),
        None => Ok(()),
    }
}

/// The key under which a reaction is the only one of its target, author and emoji.
pub(crate) fn slot(event: &Event) -> Option<Vec<u8>> {
    let target: EventId = last_target(event)?;
    let emoji = if event.content.is_empty() { DEFAULT_EMOJI } else { &event.content };
    Some(key::reaction(&target, &event.pubkey, emoji))
}
