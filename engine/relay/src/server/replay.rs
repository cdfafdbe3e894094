//! Proofs that were used: each authorises one request.

use std::collections::{HashSet, VecDeque};
use std::sync::Mutex;

use waxlog_nostr::EventId;

use super::lock;

/// How long a proof is remembered. A proof counts for 60 s on either side of its time, so never longer.
const MEMORY_SECONDS: u64 = 120;

/// Why a proof is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReplayError {
    /// It was used before.
    #[error("NIP-98: replay detected")]
    Used,
    /// Whether it was used could not be remembered, so it is refused.
    #[error("rate-limited: shared admission unavailable")]
    Full,
}

#[derive(Default)]
struct Memory {
    used: HashSet<EventId>,
    by_time: VecDeque<(u64, EventId)>,
}

/// The used proofs of the last 120 s.
pub(crate) struct Replays {
    max: usize,
    memory: Mutex<Memory>,
}

impl Replays {
    /// Remembers at most `max` proofs; while so many are fresh, further ones are refused.
    pub(crate) fn new(max: usize) -> Self {
        Self { max, memory: Mutex::default() }
    }

    /// Uses up a proof at `now`, in seconds since 1970.
    pub(crate) fn spend(&self, proof: EventId, now: u64) -> Result<(), ReplayError> {
        let mut memory = lock(&self.memory);
        while let Some((at, old)) = memory.by_time.front().copied() {
            if at + MEMORY_SECONDS > now {
                break;
            }
            memory.by_time.pop_front();
            memory.used.remove(&old);
        }
        if memory.used.contains(&proof) {
            return Err(ReplayError::Used);
        }
        if memory.used.len() >= self.max {
            return Err(ReplayError::Full);
        }
        memory.used.insert(proof);
        memory.by_time.push_back((now, proof));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof(first: u8) -> EventId {
        EventId::from_bytes([first; 32])
    }

    #[test]
    fn a_proof_counts_once_within_its_memory() {
        let replays = Replays::new(10);
        assert_eq!(replays.spend(proof(1), 0), Ok(()));
        assert_eq!(replays.spend(proof(1), 119), Err(ReplayError::Used));
        assert_eq!(replays.spend(proof(2), 119), Ok(()));
        assert_eq!(replays.spend(proof(1), 120), Ok(()));
    }

    #[test]
    fn a_full_memory_refuses_instead_of_forgetting() {
        let replays = Replays::new(1);
        assert_eq!(replays.spend(proof(1), 0), Ok(()));
        assert_eq!(replays.spend(proof(2), 1), Err(ReplayError::Full));
        assert_eq!(replays.spend(proof(1), 1), Err(ReplayError::Used));
        assert_eq!(replays.spend(proof(2), 120), Ok(()));
    }
}
