//! How long to wait before the next try to connect.

use crate::record::LinkFailure;

/// Waits between the tries of a first connection; after the last there is none.
const FIRST_MS: [u64; 5] = [1_000, 2_000, 4_000, 8_000, 16_000];
/// Waits between the quick tries after a loss; the very first try is at once.
const QUICK_MS: [u64; 5] = [0, 1_000, 2_000, 4_000, 8_000];
/// Waits of the endless tries after these; the last one stands for all that follow.
const SLOW_MS: [u64; 7] = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000];
/// The wait after a name was not found.
const DNS_MS: u64 = 2_000;
/// How often that costs no try.
const DNS_FREE_MAX: u32 = 10;
/// How long a connection must last before a loss starts from the bottom again.
const STABLE_MS: u64 = 60_000;

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Try again after so many milliseconds.
    In(u64),
    /// Give up.
    Never,
}

/// Where the tries have come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ladder {
    is_first: bool,
    tries: usize,
    dns: u32,
}

impl Ladder {
    /// No connection has worked yet.
    pub(super) fn first() -> Self {
        Self { is_first: true, tries: 0, dns: 0 }
    }

    /// A connection works. Where the tries have come to is kept until it has lasted.
    pub(super) fn connected(self) -> Self {
        match self.is_first {
            true => Self { is_first: false, tries: 0, dns: 0 },
            false => Self { dns: 0, ..self },
        }
    }

    /// A connection has ended that lasted so long.
    pub(super) fn was_up_for(&mut self, lasted_ms: u64) {
        if lasted_ms >= STABLE_MS {
            self.tries = 0;
        }
    }

    /// The wait before the next try.
    pub(super) fn next(&mut self, failure: LinkFailure) -> Next {
        if failure == LinkFailure::Terminal {
            return Next::Never;
        }
        if failure == LinkFailure::Dns
            && (!self.is_first && (self.tries >= QUICK_MS.len() || self.dns < DNS_FREE_MAX))
        {
            self.dns += 1;
            return Next::In(DNS_MS);
        }
        let tries = self.tries;
        self.tries += 1;
        if self.is_first {
            return FIRST_MS.get(tries).map_or(Next::Never, |wait_ms| Next::In(*wait_ms));
        }
        let slow = || SLOW_MS[(tries - QUICK_MS.len()).min(SLOW_MS.len() - 1)];
        Next::In(QUICK_MS.get(tries).copied().unwrap_or_else(slow))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(ladder: &mut Ladder, count: usize) -> Vec<Next> {
        (0..count).map(|_| ladder.next(LinkFailure::Transient)).collect()
    }

    #[test]
    fn a_first_connection_is_tried_six_times() {
        let expected = [1000, 2000, 4000, 8000, 16_000].map(Next::In);
        let mut ladder = Ladder::first();
        assert_eq!(waits(&mut ladder, 5), expected);
        assert_eq!(ladder.next(LinkFailure::Transient), Next::Never);
        assert_eq!(Ladder::first().next(LinkFailure::Terminal), Next::Never);
    }

    #[test]
    fn a_loss_is_tried_quickly_then_slowly_and_for_ever() {
        let mut ladder = Ladder::first().connected();
        let expected =
            [0, 1000, 2000, 4000, 8000, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000].map(Next::In);
        assert_eq!(waits(&mut ladder, 13), expected);
    }

    #[test]
    fn only_a_connection_that_lasted_starts_over() {
        let mut ladder = Ladder::first().connected();
        waits(&mut ladder, 3);
        let mut ladder = ladder.connected();
        ladder.was_up_for(59_999);
        assert_eq!(ladder.next(LinkFailure::Transient), Next::In(4000));
        ladder.was_up_for(60_000);
        assert_eq!(ladder.next(LinkFailure::Transient), Next::In(0));
    }

    #[test]
    fn a_name_that_is_not_found_costs_no_try_ten_times() {
        let mut ladder = Ladder::first().connected();
        for _ in 0..10 {
            assert_eq!(ladder.next(LinkFailure::Dns), Next::In(2000));
        }
        assert_eq!(ladder.next(LinkFailure::Dns), Next::In(0));
    }
}
