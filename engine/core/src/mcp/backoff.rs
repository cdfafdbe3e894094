//! How long a dead server is left alone before it is started again.

/// Largest deviation of a back-off from its nominal length, in thousandths.
pub const JITTER_MAX_PERMILLE: i32 = 200;

/// Doublings after which the back-off no longer grows, so that the power cannot overflow.
const DOUBLINGS_MAX: u32 = 20;

/// The pause after failure number `attempt` (counted from 1), in milliseconds.
///
/// `base_ms`, doubled with each further attempt, at most `max_ms`. The jitter comes last, so a pause may
/// exceed `max_ms` by [`JITTER_MAX_PERMILLE`]; it is an input because chance is: values outside
/// `-JITTER_MAX_PERMILLE..=JITTER_MAX_PERMILLE` count as the nearest bound.
pub fn backoff_ms(attempt: u32, base_ms: u64, max_ms: u64, jitter_permille: i32) -> u64 {
    let doublings = attempt.saturating_sub(1).min(DOUBLINGS_MAX);
    let nominal = base_ms.saturating_mul(1 << doublings).min(max_ms);
    let jitter = jitter_permille.clamp(-JITTER_MAX_PERMILLE, JITTER_MAX_PERMILLE);
    // 128 bits, because `max_ms` may be as large as the setting's type.
    let permille = u128::from(1000_u32.saturating_add_signed(jitter));
    let pause = u128::from(nominal) * permille / 1000;
    u64::try_from(pause).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(attempt: u32) -> (u64, u64) {
        (backoff_ms(attempt, 500, 30_000, -200), backoff_ms(attempt, 500, 30_000, 200))
    }

    #[test]
    fn the_pause_doubles_from_the_base_with_a_fifth_either_way() {
        assert_eq!(bounds(1), (400, 600));
        assert_eq!(bounds(2), (800, 1200));
        assert_eq!(backoff_ms(3, 500, 30_000, 0), 2000);
    }

    #[test]
    fn the_cap_holds_before_the_jitter() {
        assert_eq!(bounds(9), (24_000, 36_000));
        assert_eq!(backoff_ms(u32::MAX, u64::MAX, u64::MAX, 200), u64::MAX);
    }

    #[test]
    fn jitter_out_of_range_counts_as_the_bound() {
        assert_eq!(backoff_ms(1, 500, 30_000, 5000), 600);
        assert_eq!(backoff_ms(0, 500, 30_000, i32::MIN), 400);
    }
}
