//! Where a prompt comes from, and where its answer belongs.

use serde::{Deserialize, Serialize};
use waxlog_nostr::thread::Shown;
use waxlog_nostr::{Event, PublicKey};

use super::People;

/// What kind of channel it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChannelKind {
    /// Everybody may read it.
    Stream,
    /// Its members may read it.
    Private,
    /// A direct conversation.
    Dm,
    /// Not known; for who is answered this counts as a direct conversation.
    Unknown,
}

/// A channel as a prompt names it.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The channel.
    pub id: &'a str,
    /// What it is called.
    pub name: Option<&'a str>,
    /// What kind it is.
    pub kind: ChannelKind,
}

impl Place<'_> {
    /// `name (#id)`, or the id alone.
    pub(super) fn title(&self) -> String {
        self.name.map_or_else(|| self.id.to_owned(), |name| format!("{name} (#{})", self.id))
    }

    fn is_dm(&self) -> bool {
        self.kind == ChannelKind::Dm
    }
}

/// The event that an ordinary answer replies to.
pub(super) fn reply_anchor(place: &Place, last: &Event, people: &People) -> Option<String> {
    let thread = Shown::of(last);
    if place.is_dm() {
        return thread.map(|_| last.id.to_hex());
    }
    let root = thread.map_or_else(|| last.id.to_hex(), |thread| thread.root.to_owned());
    is_human_facing(last, people).then_some(root)
}

/// Whether a person wrote it or is named in it. Who is not known as an agent counts as a person: the agent
/// itself as well, which is mostly named, so that agents without an owner's word answer in threads.
fn is_human_facing(last: &Event, people: &People) -> bool {
    let is_agent = |key: &PublicKey| people.get(key).is_some_and(|person| person.is_agent);
    let named = last.tag_values("p").filter_map(|hex| hex.parse().ok());
    !std::iter::once(last.pubkey).chain(named).all(|key| is_agent(&key))
}

/// The `[Context]` section.
pub(super) fn context_section(place: &Place, last: &Event, people: &People, has_context: bool) -> String {
    let thread = Shown::of(last);
    let scope = match (place.is_dm(), thread) {
        (true, _) => "dm",
        (false, Some(_)) => "thread",
        (false, None) => "channel",
    };
    let mut lines =
        vec!["[Context]".to_owned(), format!("Scope: {scope}"), format!("Channel: {}", place.title())];
    if let Some(thread) = thread {
        lines.push(format!("Thread root: {}", thread.root));
        if thread.parent != thread.root {
            lines.push(format!("Parent: {}", thread.parent));
        }
    }
    lines.push(hint(place, last, thread, has_context));
    let anchor = reply_anchor(place, last, people);
    lines.extend(anchor.map(|anchor| instruction(&anchor, thread.is_none() && !place.is_dm())));
    lines.join("\n")
}

fn hint(place: &Place, last: &Event, thread: Option<Shown>, has_context: bool) -> String {
    let command = match thread {
        Some(thread) => {
            let event = if place.is_dm() { last.id.to_hex() } else { thread.root.to_owned() };
            format!("buzz messages thread --channel {} --event {event}", place.id)
        }
        None => format!("buzz messages get --channel {}", place.id),
    };
    match (has_context, thread.is_some()) {
        (true, true) => format!("Hint: the thread is included below; for more of it run `{command}`."),
        (true, false) => format!("Hint: recent messages are included below; for more run `{command}`."),
        (false, true) => format!("Hint: the thread is not included; read it with `{command}`."),
        (false, false) => format!("Hint: earlier messages are not included; read them with `{command}`."),
    }
}

fn instruction(anchor: &str, is_new_thread: bool) -> String {
    let detail = match is_new_thread {
        true => "This message becomes the root of the thread; do not answer in an older one.",
        false => "If it is unclear where an answer belongs, ask.",
    };
    format!(
        "IMPORTANT: send ordinary replies with `buzz messages send --channel ... --reply-to {anchor}`. {detail} Leave \
         the option out only if a person explicitly asks for a message at the root, at top level or to everyone."
    )
}
