//! What is subscribed to, and what of it is yet to be asked for.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A subscription by what it is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SubKey {
    /// What happens in a channel.
    Channel(String),
    /// Being added to channels and removed from them.
    Membership,
    /// What the owner's observer asks for.
    Control,
}

const CHANNEL_PREFIX: &str = "ch-";
const MEMBERSHIP_ID: &str = "membership-notif";
const CONTROL_ID: &str = "agent-observer-control";

impl SubKey {
    /// The id on the wire.
    pub fn id(&self) -> String {
        match self {
            Self::Channel(channel) => format!("{CHANNEL_PREFIX}{channel}"),
            Self::Membership => MEMBERSHIP_ID.to_owned(),
            Self::Control => CONTROL_ID.to_owned(),
        }
    }

    /// The subscription with this id.
    pub fn parse(id: &str) -> Option<Self> {
        match id {
            MEMBERSHIP_ID => Some(Self::Membership),
            CONTROL_ID => Some(Self::Control),
            _ => id
                .strip_prefix(CHANNEL_PREFIX)
                .filter(|rest| is_uuid(rest))
                .map(|rest| Self::Channel(rest.to_owned())),
        }
    }
}

/// Whether a text is a UUID in its usual form.
fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.char_indices().all(|(at, char)| match at {
            8 | 13 | 18 | 23 => char == '-',
            _ => char.is_ascii_hexdigit(),
        })
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Subscription {
    /// The filter without its `since`.
    pub filter: Map<String, Value>,
    /// From when on, if nothing was seen yet, in seconds since 1970.
    pub floor_secs: u64,
}

#[derive(Clone, Debug)]
struct Held {
    subscription: Subscription,
    is_asked: bool,
    /// Not asked for, and to be asked for no sooner than this.
    parked_ms: Option<u64>,
    closed_ms: Option<u64>,
}

/// All subscriptions.
#[derive(Clone, Debug, Default)]
pub(super) struct Subscriptions {
    held: BTreeMap<SubKey, Held>,
}

impl Subscriptions {
    pub(super) fn add(&mut self, key: SubKey, subscription: Subscription) {
        let held = Held { subscription, is_asked: false, parked_ms: Some(0), closed_ms: None };
        self.held.insert(key, held);
    }

    pub(super) fn remove(&mut self, key: &SubKey) {
        self.held.remove(key);
    }

    /// Whether it is wanted.
    pub(super) fn is_active(&self, key: &SubKey) -> bool {
        self.held.contains_key(key)
    }

    /// The connection is gone: nothing is asked for any more.
    pub(super) fn lost(&mut self) {
        for held in self.held.values_mut() {
            (held.is_asked, held.parked_ms) = (false, None);
        }
    }

    /// There is a connection: all is to be asked for.
    pub(super) fn wanted_again(&mut self) {
        for held in self.held.values_mut() {
            held.parked_ms = Some(0);
        }
    }

    pub(super) fn park(&mut self, key: &SubKey, until_ms: u64) {
        if let Some(held) = self.held.get_mut(key) {
            (held.is_asked, held.parked_ms) = (false, Some(until_ms));
        }
    }

    /// The relay has closed it: when it may be asked for again. The first time at once.
    pub(super) fn closed_again(&mut self, key: &SubKey, now_ms: u64, wait_ms: u64) -> u64 {
        let Some(held) = self.held.get_mut(key) else { return now_ms };
        let before = held.closed_ms.replace(now_ms);
        match before.is_some_and(|before_ms| now_ms - before_ms < 2 * wait_ms) {
            true => now_ms + wait_ms,
            false => now_ms,
        }
    }

    /// The next that may be asked for: channels, then membership, then control.
    pub(super) fn next_parked(&self, now_ms: u64) -> Option<SubKey> {
        let due = |held: &Held| held.parked_ms.is_some_and(|until_ms| until_ms <= now_ms);
        self.held.iter().find(|(_, held)| due(held)).map(|(key, _)| key.clone())
    }

    pub(super) fn parked_until_ms(&self) -> Option<u64> {
        self.held.values().filter_map(|held| held.parked_ms).min()
    }

    /// The frame that asks for it.
    pub(super) fn ask(&mut self, key: &SubKey, since: impl Fn(&Subscription) -> u64) -> Option<String> {
        let held = self.held.get_mut(key)?;
        (held.is_asked, held.parked_ms) = (true, None);
        let mut filter = held.subscription.filter.clone();
        filter.insert("since".to_owned(), since(&held.subscription).into());
        Some(serde_json::json!(["REQ", key.id(), filter]).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscription_is_known_by_its_id_and_others_are_not() {
        let uuid = "11111111-1111-4111-8111-111111111111";
        for key in [SubKey::Channel(uuid.into()), SubKey::Membership, SubKey::Control] {
            assert_eq!(SubKey::parse(&key.id()), Some(key));
        }
        for id in ["ch-", "ch-general", "xx-11111111-1111-4111-8111-111111111111", ""] {
            assert_eq!(SubKey::parse(id), None, "{id}");
        }
    }
}
