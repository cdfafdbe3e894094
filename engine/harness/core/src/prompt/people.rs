//! What is known of the people around a conversation.

use std::collections::BTreeMap;

use serde_json::Value;
use waxlog_nostr::{Event, PublicKey};

/// The longest name that is shown, in characters.
const LABEL_MAX_CHARS: usize = 64;

/// One person or agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Person {
    /// What they are called.
    pub label: Option<String>,
    /// Whether their profile says that somebody owns them.
    pub is_agent: bool,
}

/// People by key.
pub type People = BTreeMap<PublicKey, Person>;

impl Person {
    /// What a profile event says. That an agent has an owner is not checked here: nothing is granted for it.
    pub fn of(event: &Event) -> Self {
        let profile: Value = serde_json::from_str(&event.content).unwrap_or_default();
        let name = profile.get("display_name").or_else(|| profile.get("name"));
        let label =
            [name, profile.get("nip05")].into_iter().flatten().filter_map(Value::as_str).find_map(clean);
        let is_agent = event.tags_named("auth").any(|tag| tag.len() == 4);
        Self { label, is_agent }
    }
}

/// The profile of each author. A relay keeps one; of several the last in its answer counts, as for buzz-acp.
pub fn of_events<'a>(events: impl IntoIterator<Item = &'a Event>) -> People {
    let profiles = events.into_iter().filter(|event| event.kind == waxlog_nostr::kind::PROFILE);
    profiles.map(|event| (event.pubkey, Person::of(event))).collect()
}

fn clean(name: &str) -> Option<String> {
    let plain: String = name.chars().filter(|char| !char.is_control()).collect();
    let short: String = plain.trim().chars().take(LABEL_MAX_CHARS).collect();
    (!short.is_empty()).then_some(short)
}

/// `name (hex)`, or the hex alone.
pub(super) fn named(people: &People, hex: &str) -> String {
    let label = hex.parse().ok().and_then(|key: PublicKey| people.get(&key)?.label.clone());
    label.map_or_else(|| hex.to_owned(), |label| format!("{label} ({hex})"))
}
