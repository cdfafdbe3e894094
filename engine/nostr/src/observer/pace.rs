//! When the next frame may go. Time is given, so that this is the same in a replay.

use std::collections::VecDeque;

/// The least time between two frames, and before the first, in milliseconds.
pub const FRAME_GAP_MS: u64 = 167;
/// The most frames in any window of [`WINDOW_MS`].
pub const MAX_FRAMES_PER_WINDOW: usize = 90;
/// The length of that window, in milliseconds.
pub const WINDOW_MS: u64 = 60_000;

/// The times of the frames that went, as far as they matter.
#[derive(Debug, Clone)]
pub struct Pacer {
    last_ms: u64,
    sent_ms: VecDeque<u64>,
}

impl Pacer {
    /// Starts at a time: the first frame waits its gap too.
    pub fn new(now_ms: u64) -> Self {
        Self { last_ms: now_ms, sent_ms: VecDeque::with_capacity(MAX_FRAMES_PER_WINDOW) }
    }

    /// The earliest time at which the next frame may go.
    pub fn ready_at_ms(&self) -> u64 {
        let after_gap = self.last_ms.saturating_add(FRAME_GAP_MS);
        match self.sent_ms.front() {
            Some(first) if self.sent_ms.len() == MAX_FRAMES_PER_WINDOW => {
                after_gap.max(first.saturating_add(WINDOW_MS))
            }
            _ => after_gap,
        }
    }

    /// Takes down that a frame went. A clock that was put back does not open the window.
    pub fn sent(&mut self, at_ms: u64) {
        self.last_ms = self.last_ms.max(at_ms);
        if self.sent_ms.len() == MAX_FRAMES_PER_WINDOW {
            self.sent_ms.pop_front();
        }
        self.sent_ms.push_back(self.last_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_frame_waits_its_gap_and_so_does_each_other() {
        let mut pacer = Pacer::new(1_000);
        assert_eq!(pacer.ready_at_ms(), 1_167);
        pacer.sent(1_200);
        assert_eq!(pacer.ready_at_ms(), 1_367);
        pacer.sent(900);
        assert_eq!(pacer.ready_at_ms(), 1_367);
    }

    #[test]
    fn no_window_of_a_minute_has_more_than_ninety() {
        let mut pacer = Pacer::new(0);
        let mut times = Vec::new();
        for _ in 0..300 {
            let now = pacer.ready_at_ms();
            pacer.sent(now);
            times.push(now);
        }
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= FRAME_GAP_MS));
        assert!(times.windows(91).all(|window| window[90] - window[0] >= WINDOW_MS));
        assert_eq!(times[90], times[0] + WINDOW_MS);
    }
}
