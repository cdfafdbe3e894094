//! Who is there: what each key has said of itself while a connection of it is open. Nothing is stored.

use std::collections::{BTreeSet, HashMap};

use waxlog_nostr::kind::{PRESENCE, PRESENCE_SNAPSHOT};
use waxlog_nostr::{Draft, Filter, Keys, PublicKey};

use crate::live::Row;

/// The status that takes one's presence back.
const OFFLINE: &str = "offline";

/// The keys that have connections, and their statuses.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    connections: HashMap<PublicKey, usize>,
    statuses: HashMap<PublicKey, Status>,
}

#[derive(Debug)]
struct Status {
    text: String,
    set_at: u64,
}

impl Presence {
    pub(crate) fn connected(&mut self, pubkey: &PublicKey) {
        *self.connections.entry(*pubkey).or_default() += 1;
    }

    pub(crate) fn disconnected(&mut self, pubkey: &PublicKey) {
        let left = self.connections.get_mut(pubkey).map(|count| {
            *count -= 1;
            *count
        });
        if left.unwrap_or_default() == 0 {
            self.connections.remove(pubkey);
            self.statuses.remove(pubkey);
        }
    }

    pub(crate) fn set(&mut self, pubkey: PublicKey, text: String, now: u64) {
        match text == OFFLINE {
            true => drop(self.statuses.remove(&pubkey)),
            false => drop(self.statuses.insert(pubkey, Status { text, set_at: now })),
        }
    }

    /// Whose presence the filters ask for, if that is all they ask for.
    pub(crate) fn asked_for(filters: &[Filter]) -> Option<BTreeSet<PublicKey>> {
        let mut subjects = BTreeSet::new();
        for filter in filters {
            match (filter.kinds.as_deref(), &filter.authors) {
                (Some([PRESENCE | PRESENCE_SNAPSHOT]), Some(authors)) => subjects.extend(authors),
                _ => return None,
            }
        }
        (!filters.is_empty()).then_some(subjects)
    }

    /// An event of the relay for each who is there.
    pub(crate) fn rows(&self, subjects: BTreeSet<PublicKey>, keys: &Keys) -> Vec<Row> {
        let known = subjects.into_iter().filter_map(|key| Some((key, self.statuses.get(&key)?)));
        let row = |(key, status): (PublicKey, &Status)| {
            let draft = Draft::new(PRESENCE, status.text.clone(), status.set_at).tag(["p", &key.to_hex()]);
            Row { event: keys.sign(draft), channel: None }
        };
        known.map(row).collect()
    }
}
