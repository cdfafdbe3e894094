//! How long to wait before connecting again. Chance and time are given, so that this is the same in a replay.

use std::ops::RangeInclusive;

/// The waits before the attempts in a row, in units; the last one goes on.
const LADDER: [u64; 7] = [1, 2, 4, 8, 16, 32, 60];
/// The unit of the ladder, in milliseconds.
pub const UNIT_MS: u64 = 1_000;
/// How long a connection must hold for the ladder to start anew, in milliseconds.
pub const STABLE_MS: u64 = 60_000;

/// A ladder of waits.
#[derive(Debug, Clone)]
pub struct Backoff {
    unit_ms: u64,
    attempt: usize,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::with_unit_ms(UNIT_MS)
    }
}

impl Backoff {
    /// A ladder of another unit than a second.
    pub const fn with_unit_ms(unit_ms: u64) -> Self {
        Self { unit_ms, attempt: 0 }
    }

    /// The wait before an attempt, counted from 0, lies in this range: a fifth less to a fifth more than its
    /// step.
    pub fn delay_range_ms(&self, attempt: usize) -> RangeInclusive<u64> {
        let step = LADDER[attempt.min(LADDER.len() - 1)] * self.unit_ms;
        step * 4 / 5..=step * 6 / 5
    }

    /// The wait before the next attempt. `draw` is a chance from 0 to 1.
    pub fn next_delay_ms(&mut self, draw: f64) -> u64 {
        let range = self.delay_range_ms(self.attempt);
        self.attempt = self.attempt.saturating_add(1);
        let width = (range.end() - range.start()) as f64;
        range.start() + (width * draw.clamp(0.0, 1.0)) as u64
    }

    /// Takes down that a connection has ended that held so long.
    pub fn held_for(&mut self, connected_ms: u64) {
        if connected_ms >= STABLE_MS {
            self.attempt = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_minute_and_lie_around_their_step() {
        let backoff = Backoff::default();
        let ranges: Vec<_> = (0..9).map(|attempt| backoff.delay_range_ms(attempt)).collect();
        assert_eq!(ranges[0], 800..=1_200);
        assert_eq!(ranges[5], 25_600..=38_400);
        assert_eq!((&ranges[6], &ranges[8]), (&(48_000..=72_000), &(48_000..=72_000)));
    }

    #[test]
    fn the_ladder_is_kept_until_a_connection_has_held() {
        let mut backoff = Backoff::default();
        let waits = [0.0, 0.5, 1.0, f64::NAN].map(|draw| backoff.next_delay_ms(draw));
        assert_eq!(waits, [800, 2_000, 4_800, 6_400]);
        backoff.held_for(STABLE_MS - 1);
        assert_eq!(backoff.next_delay_ms(0.0), 12_800);
        backoff.held_for(STABLE_MS);
        assert_eq!(backoff.next_delay_ms(0.0), 800);
    }
}
