//! Which events were seen: bounded, and enough to absorb what a relay sends twice.

use std::collections::BTreeSet;

use waxlog_nostr::EventId;

/// How many ids one generation holds. Two are kept.
const GENERATION_MAX: usize = 6_000;

/// The ids of the last events, between one and two generations of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    current: BTreeSet<EventId>,
    previous: BTreeSet<EventId>,
}

impl Seen {
    /// Whether the id is new; it is not from now on.
    pub(super) fn insert(&mut self, id: EventId) -> bool {
        if self.current.contains(&id) || self.previous.contains(&id) {
            return false;
        }
        if self.current.len() >= GENERATION_MAX {
            self.previous = std::mem::take(&mut self.current);
        }
        self.current.insert(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> EventId {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        EventId::from_bytes(bytes)
    }

    #[test]
    fn c57_an_event_is_new_once_and_a_generation_later_still_known() {
        let mut seen = Seen::default();
        assert!(seen.insert(id(0)));
        assert!(!seen.insert(id(0)));
        for number in 1..=GENERATION_MAX as u64 {
            seen.insert(id(number));
        }
        assert!(!seen.insert(id(0)), "the generation before is kept");
    }

    #[test]
    fn c57_memory_is_bounded() {
        let mut seen = Seen::default();
        for number in 0..50_000 {
            seen.insert(id(number));
        }
        assert!(seen.current.len() + seen.previous.len() <= 2 * GENERATION_MAX);
    }
}
