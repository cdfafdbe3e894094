//! Quotas: how often a key may do what, in fixed windows.

use std::collections::HashMap;
use std::sync::Mutex;

use waxlog_nostr::PublicKey;

use super::lock;

/// The window in which frames of a socket are counted, in seconds.
const FRAME_WINDOW_SECONDS: u64 = 5;
const MINUTE_SECONDS: u64 = 60;

/// How often one key may do what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    /// Events, subscriptions and counts over sockets, on average over 5 seconds.
    pub frames_per_second: u32,
    /// Events over sockets.
    pub events_per_minute: u32,
    /// HTTP requests.
    pub calls_per_minute: u32,
    /// Uploads.
    pub uploads_per_minute: u32,
}

/// The quotas of those who have no owner and of those who have one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quotas {
    /// Whether quotas are counted at all.
    pub are_on: bool,
    /// Of a person.
    pub person: Quota,
    /// Of an agent with a verified owner.
    pub agent: Quota,
}

impl Default for Quotas {
    fn default() -> Self {
        let person = Quota {
            frames_per_second: 10,
            events_per_minute: 60,
            calls_per_minute: 300,
            uploads_per_minute: 30,
        };
        let agent = Quota { events_per_minute: 120, ..person.clone() };
        Self { are_on: true, person, agent }
    }
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Use {
    /// An `EVENT`, `REQ` or `COUNT` frame.
    Frame,
    /// An `EVENT` frame.
    Event,
    /// A request over HTTP.
    Call,
    /// An upload.
    Upload,
}

/// Why something must wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("rate-limited: quota exceeded; retry in {retry_in_seconds}s")]
pub(crate) struct Exceeded {
    /// When the window ends.
    pub(crate) retry_in_seconds: u64,
}

#[derive(Default)]
struct Window {
    number: u64,
    used: u32,
}

/// Counts uses. Holds a bounded number of windows: over that, those that have ended are dropped, and if none
/// has, new keys must wait.
pub(crate) struct Rates {
    quotas: Quotas,
    max_windows: usize,
    windows: Mutex<HashMap<(PublicKey, Use), Window>>,
}

impl Rates {
    pub(crate) fn new(quotas: Quotas, max_windows: usize) -> Self {
        Self { quotas, max_windows, windows: Mutex::default() }
    }

    /// Counts one use at `now`, in seconds since 1970, or says how long to wait.
    pub(crate) fn spend(
        &self,
        key: &PublicKey,
        has_owner: bool,
        what: Use,
        now: u64,
    ) -> Result<(), Exceeded> {
        if !self.quotas.are_on {
            return Ok(());
        }
        let quota = if has_owner { &self.quotas.agent } else { &self.quotas.person };
        let (limit, seconds) = match what {
            Use::Frame => {
                let seconds = u32::try_from(FRAME_WINDOW_SECONDS).unwrap_or(u32::MAX);
                (quota.frames_per_second.saturating_mul(seconds), FRAME_WINDOW_SECONDS)
            }
            Use::Event => (quota.events_per_minute, MINUTE_SECONDS),
            Use::Call => (quota.calls_per_minute, MINUTE_SECONDS),
            Use::Upload => (quota.uploads_per_minute, MINUTE_SECONDS),
        };
        let exceeded = Exceeded { retry_in_seconds: seconds - now % seconds };
        let mut windows = lock(&self.windows);
        let is_new = !windows.contains_key(&(*key, what));
        if is_new && windows.len() >= self.max_windows {
            windows.retain(|(_, what), window| window.number == number(*what, now));
            if windows.len() >= self.max_windows {
                return Err(exceeded);
            }
        }
        let window = windows.entry((*key, what)).or_default();
        if window.number != now / seconds {
            *window = Window { number: now / seconds, used: 0 };
        }
        if window.used >= limit {
            return Err(exceeded);
        }
        window.used += 1;
        Ok(())
    }
}

fn number(what: Use, now: u64) -> u64 {
    match what {
        Use::Frame => now / FRAME_WINDOW_SECONDS,
        Use::Event | Use::Call | Use::Upload => now / MINUTE_SECONDS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(first: u8) -> PublicKey {
        PublicKey::from_bytes([first; 32])
    }

    #[test]
    fn a_used_up_quota_says_when_the_window_ends_and_opens_again() {
        let rates = Rates::new(Quotas::default(), 10);
        let now = 1_200 + 20;
        for _ in 0..60 {
            assert_eq!(rates.spend(&key(1), false, Use::Event, now), Ok(()));
        }
        let exceeded = rates.spend(&key(1), false, Use::Event, now).unwrap_err();
        assert_eq!(exceeded.to_string(), "rate-limited: quota exceeded; retry in 40s");
        assert_eq!(rates.spend(&key(2), false, Use::Event, now), Ok(()));
        assert_eq!(rates.spend(&key(1), false, Use::Call, now), Ok(()));
        assert_eq!(rates.spend(&key(1), false, Use::Event, now + 40), Ok(()));
    }

    #[test]
    fn an_agent_with_an_owner_has_its_own_quota() {
        let rates = Rates::new(Quotas::default(), 10);
        let taken = (0..200).filter(|_| rates.spend(&key(1), true, Use::Event, 5).is_ok()).count();
        assert_eq!(taken, 120);
    }

    #[test]
    fn frames_are_counted_over_five_seconds() {
        let rates = Rates::new(Quotas::default(), 10);
        let taken = (0..100).filter(|_| rates.spend(&key(1), false, Use::Frame, 12).is_ok()).count();
        assert_eq!(taken, 50);
        assert_eq!(rates.spend(&key(1), false, Use::Frame, 12), Err(Exceeded { retry_in_seconds: 3 }));
    }

    #[test]
    fn more_keys_than_windows_must_wait_and_are_never_let_through() {
        let rates = Rates::new(Quotas::default(), 2);
        assert!(rates.spend(&key(1), false, Use::Call, 0).is_ok());
        assert!(rates.spend(&key(2), false, Use::Call, 0).is_ok());
        assert!(rates.spend(&key(3), false, Use::Call, 1).is_err());
        assert!(rates.spend(&key(3), false, Use::Call, 60).is_ok());
    }
}
