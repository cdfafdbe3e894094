//! The section that tells of a channel's canvas.

use waxlog_nostr::{kind, Event};

/// The section for the canvas that a query has found, if it is one of `channel` and not blank. The events
/// have passed their checks.
pub fn canvas_section(events: &[Event], channel: &str) -> Option<String> {
    let canvas = events.first()?;
    let is_its = canvas.kind == kind::CANVAS && canvas.tag_values("h").any(|value| value == channel);
    if !is_its || canvas.content.trim().is_empty() {
        return None;
    }
    let modified = super::time_text(canvas.created_at)?.replace("+00:00", "Z");
    Some(format!(
        "[Channel Canvas]\nCanvas revision (event ID): {}\nLast modified: {modified}\nFetch current content with: \
         buzz canvas get --channel {channel}",
        canvas.id
    ))
}
