//! What was said before: which of it a prompt needs, how it is asked for, and how it is shown.

use std::collections::BTreeSet;

use serde_json::{json, Value};
use waxlog_nostr::thread::Shown;
use waxlog_nostr::{kind, Event, EventId, PublicKey};

use super::people::named;
use super::{time_text, ChannelKind, People, Place};

/// How long one attempt to fetch it may take.
pub const FETCH_MS: u64 = 3_000;
/// How often it is tried again, after a failure or an empty answer.
pub const FETCH_RETRIES: u32 = 1;
/// The wait before that.
pub const FETCH_WAIT_MS: u64 = 500;
/// How long counting may take.
pub const COUNT_MS: u64 = 500;

/// Which conversation a prompt needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The thread under this event.
    Thread(EventId),
    /// The latest of a direct conversation.
    Conversation,
}

/// A conversation as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Context {
    wanted: Wanted,
    /// Oldest first.
    lines: Vec<Event>,
    total: u64,
    is_truncated: bool,
}

/// What a prompt about `last` needs.
pub fn wanted(place: &Place, last: &Event) -> Option<Wanted> {
    match Shown::of(last) {
        Some(thread) => thread.root.parse().ok().map(Wanted::Thread),
        None => (place.kind == ChannelKind::Dm).then_some(Wanted::Conversation),
    }
}

fn messages() -> Value {
    json!([kind::MESSAGE, kind::MESSAGE_V2])
}

/// The filters that ask for it, for at most `limit` messages.
pub fn filters(wanted: &Wanted, channel: &str, agent: PublicKey, limit: usize) -> Vec<Value> {
    match wanted {
        Wanted::Thread(root) => vec![
            json!({"ids": [root]}),
            json!({"kinds": messages(), "#e": [root], "#h": [channel], "limit": limit + 1}),
            json!({"kinds": messages(), "#e": [root], "#h": [channel], "authors": [agent], "limit": 1}),
        ],
        Wanted::Conversation => vec![json!({"kinds": messages(), "#h": [channel], "limit": limit})],
    }
}

/// The filter that counts the replies of a thread.
pub fn count_filter(root: &EventId, channel: &str) -> Value {
    json!({"kinds": messages(), "#e": [root], "#h": [channel]})
}

/// Makes a conversation of what was found. `None` if nothing was.
pub fn assemble(wanted: Wanted, found: Vec<Event>, agent: PublicKey, limit: usize) -> Option<Context> {
    let mut ids = BTreeSet::new();
    let mut found: Vec<Event> = found.into_iter().filter(|event| ids.insert(event.id)).collect();
    found.sort_by_key(|event| event.created_at);
    let total = found.len();
    let (lines, is_truncated, total) = match &wanted {
        Wanted::Thread(root) => {
            let (lines, is_truncated) = thread_lines(root, found, agent, limit);
            let shown = lines.len();
            (lines, is_truncated, if is_truncated { total } else { shown })
        }
        Wanted::Conversation => {
            let is_truncated = total >= limit;
            (found, is_truncated, total + usize::from(is_truncated))
        }
    };
    (!lines.is_empty()).then_some(Context { wanted, lines, total: total as u64, is_truncated })
}

/// The root and the newest replies. The agent's own newest reply stays, in place of the oldest shown.
fn thread_lines(root: &EventId, found: Vec<Event>, agent: PublicKey, limit: usize) -> (Vec<Event>, bool) {
    let (mut lines, mut replies): (Vec<Event>, Vec<Event>) =
        found.into_iter().partition(|event| event.id == *root);
    let is_truncated = replies.len() > limit;
    if is_truncated {
        let older = replies.len() - limit;
        let cut: Vec<Event> = replies.drain(..older).collect();
        let own_is_shown = replies.iter().any(|event| event.pubkey == agent);
        let own = cut.into_iter().rev().find(|event| event.pubkey == agent);
        if let (false, Some(own), true) = (own_is_shown, own, limit > 0) {
            replies[0] = own;
        }
    }
    lines.extend(replies);
    (lines, is_truncated)
}

impl Context {
    /// The root of a thread whose replies are to be counted, since not all are shown.
    pub fn uncounted(&self) -> Option<&EventId> {
        match &self.wanted {
            Wanted::Thread(root) if self.is_truncated => Some(root),
            _ => None,
        }
    }

    /// How many replies there are, as counted; fewer than were found does not count.
    pub fn counted(&mut self, replies: u64) {
        let Wanted::Thread(root) = &self.wanted else { return };
        let has_root = self.lines.iter().any(|event| event.id == *root);
        self.total = self.total.max(replies + u64::from(has_root));
    }

    /// Who wrote what is shown.
    pub fn authors(&self) -> impl Iterator<Item = PublicKey> + '_ {
        self.lines.iter().map(|event| event.pubkey)
    }

    /// The section of a prompt.
    pub(super) fn section(&self, people: &People) -> String {
        let name = match self.wanted {
            Wanted::Thread(_) => "Thread Context",
            Wanted::Conversation => "Conversation Context",
        };
        let cut = if self.is_truncated { ", truncated" } else { "" };
        let mut text = format!("[{name} ({} of {} messages{cut})]", self.lines.len(), self.total);
        for (at, event) in self.lines.iter().enumerate() {
            let who = named(people, &event.pubkey.to_hex());
            let time = time_text(event.created_at).unwrap_or_else(|| "unknown".to_owned());
            text.push_str(&format!("\n[{}] {who} ({time}): {}", at + 1, event.content));
        }
        text
    }
}
