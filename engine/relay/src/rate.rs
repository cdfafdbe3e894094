//! Rate limits: fixed windows, each key on its own.

use std::collections::HashMap;
use std::hash::Hash;

/// How many keys a limiter remembers before it forgets those whose window has passed.
const SWEEP_KEYS: usize = 4096;

/// So many in so much time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// How many pass in a window.
    pub limit: u32,
    /// How long a window is, in milliseconds.
    pub window_ms: u64,
}

/// Counts what passed for each key in its window.
#[derive(Debug)]
pub struct Limiter<K> {
    quota: Quota,
    windows: HashMap<K, Window>,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    began_ms: u64,
    passed: u32,
}

/// Too many; it passes again after so many seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("rate-limited: quota exceeded; retry in {retry_in_secs}s")]
pub struct Exceeded {
    /// How long to wait, in whole seconds, at least one.
    pub retry_in_secs: u64,
}

impl<K: Eq + Hash> Limiter<K> {
    /// A limiter of this quota.
    pub fn new(quota: Quota) -> Self {
        Self { quota, windows: HashMap::new() }
    }

    /// Counts one for the key at this time, or says how long to wait. The time is in milliseconds.
    pub fn take(&mut self, key: K, now_ms: u64) -> Result<(), Exceeded> {
        let Quota { limit, window_ms } = self.quota;
        if self.windows.len() >= SWEEP_KEYS {
            self.windows.retain(|_, window| now_ms < window.began_ms.saturating_add(window_ms));
        }
        let window = self.windows.entry(key).or_insert(Window { began_ms: now_ms, passed: 0 });
        let ends_ms = window.began_ms.saturating_add(window_ms);
        if now_ms >= ends_ms || now_ms < window.began_ms {
            *window = Window { began_ms: now_ms, passed: 0 };
        }
        if window.passed >= limit {
            let left_ms = window.began_ms.saturating_add(window_ms).saturating_sub(now_ms);
            return Err(Exceeded { retry_in_secs: left_ms.div_ceil(1000).max(1) });
        }
        window.passed += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_window_says_how_long_to_wait_and_the_next_one_is_empty() {
        let mut limiter = Limiter::new(Quota { limit: 2, window_ms: 5_000 });
        assert_eq!(limiter.take("a", 1_000), Ok(()));
        assert_eq!(limiter.take("a", 1_001), Ok(()));
        let exceeded = limiter.take("a", 2_500).unwrap_err();
        assert_eq!(exceeded.to_string(), "rate-limited: quota exceeded; retry in 4s");
        assert_eq!(limiter.take("b", 2_500), Ok(()));
        assert_eq!(limiter.take("a", 6_000), Ok(()));
    }

    #[test]
    fn keys_whose_window_has_passed_are_forgotten() {
        let mut limiter = Limiter::new(Quota { limit: 1, window_ms: 10 });
        for key in 0..SWEEP_KEYS {
            limiter.take(key, 0).unwrap();
        }
        limiter.take(usize::MAX, 10).unwrap();
        assert_eq!(limiter.windows.len(), 1);
    }
}
