//! Slash commands: a message that is one is passed to the agent bare, before all else.

use super::People;
use crate::queue::Batch;

/// The command of a batch that is a single message beginning with one, after any mentions.
pub(super) fn command(batch: &Batch, people: &People) -> Option<String> {
    let ([one], true) = (batch.events.as_slice(), batch.cancelled.is_empty()) else { return None };
    let mut names: Vec<&str> = people.values().filter_map(|person| person.label.as_deref()).collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let rest = after_mentions(one.event.content.trim(), &names);
    let first = rest.strip_prefix('/')?.chars().next()?;
    first.is_ascii_alphanumeric().then(|| rest.to_owned())
}

fn after_mentions<'a>(mut text: &'a str, names: &[&str]) -> &'a str {
    while let Some(rest) = after_mention(text, names) {
        text = rest.trim_start();
    }
    text
}

fn after_mention<'a>(text: &'a str, names: &[&str]) -> Option<&'a str> {
    if text.starts_with("nostr:npub1") || text.starts_with("nostr:nprofile1") {
        return Some(text.split_once(char::is_whitespace).map_or("", |(_, rest)| rest));
    }
    let rest = text.strip_prefix('@')?;
    let known = names.iter().find_map(|name| {
        let (head, tail) = (rest.get(..name.len())?, rest.get(name.len()..)?);
        let ends = tail.is_empty() || tail.starts_with(char::is_whitespace);
        (head.eq_ignore_ascii_case(name) && ends).then_some(tail)
    });
    let token = || {
        let end = rest
            .find(|char: char| !(char.is_ascii_alphanumeric() || "._-".contains(char)))
            .unwrap_or(rest.len());
        (end > 0).then(|| &rest[end..])
    };
    known.or_else(token)
}
