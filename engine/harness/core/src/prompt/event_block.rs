//! An event as a prompt shows it.

use serde_json::Value;
use waxlog_nostr::thread::Shown;
use waxlog_nostr::Event;

use super::people::named;
use super::{time_text, People, Place};

/// The lines of an event. Its content is whole and as it came.
pub(super) fn of(event: &Event, place: &Place, people: &People) -> String {
    let hex = event.pubkey.to_hex();
    let npub = event.pubkey.to_npub();
    let from = match people.get(&event.pubkey).and_then(|person| person.label.as_ref()) {
        Some(label) => format!("{label} (npub: {npub}, hex: {hex})"),
        None => format!("{npub} (hex: {hex})"),
    };
    let mut lines = vec![
        format!("Event ID: {}", event.id),
        format!("Channel: {}", place.title()),
        format!("Kind: {}", event.kind),
        format!("From: {from}"),
        format!("Time: {}", time_text(event.created_at).unwrap_or_else(|| event.created_at.to_string())),
        format!("Content: {}", event.content),
        format!(
            "Tags: {}",
            Value::from(event.tags.iter().map(|tag| Value::from(tag.clone())).collect::<Vec<_>>())
        ),
    ];
    lines.extend(parsed(event, people));
    lines.join("\n")
}

fn parsed(event: &Event, people: &People) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(thread) = Shown::of(event) {
        parts.push(format!("parent={}", thread.parent));
        parts.push(format!("root={}", thread.root));
    }
    let mentions: Vec<String> = event.tag_values("p").map(|hex| named(people, hex)).collect();
    if !mentions.is_empty() {
        parts.push(format!("mentions=[{}]", mentions.join(", ")));
    }
    (!parts.is_empty()).then(|| format!("Parsed: {}", parts.join(", ")))
}
