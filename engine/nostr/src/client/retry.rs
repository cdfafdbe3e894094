//! Whether a request that failed is sent again, and what is known of a write that is not.
//!
//! A pure function of what was asked, what came of it, and a random draw. A write whose answer is lost may
//! have been stored; the same bytes may be sent again, since a relay keeps an event once. Moderation
//! commands are carried out and not stored, so they are sent again only when they cannot have arrived.

use std::time::Duration;

use waxlog_http::FailureKind;

use crate::kind::{BAN, RESOLVE_REPORT};

/// How often a request is sent at most.
pub const MAX_ATTEMPTS: usize = 3;
/// The longest random wait after each attempt but the last.
pub const MAX_WAITS: [Duration; MAX_ATTEMPTS - 1] = [Duration::from_millis(500), Duration::from_millis(1500)];
/// The longest wait that a relay's own words can ask for.
pub const MAX_HINT: Duration = Duration::from_secs(30);

const RATE_LIMITED: u16 = 429;

/// What a request is for, as far as repeating it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Changes nothing, or the same thing however often it arrives.
    Read,
    /// Publishes an event that is stored once.
    Write,
    /// Publishes a command of the moderators.
    Moderation,
}

impl Call {
    /// What publishing an event of this kind is.
    pub const fn of_kind(kind: u16) -> Self {
        match kind {
            BAN..=RESOLVE_REPORT => Self::Moderation,
            _ => Self::Write,
        }
    }
}

/// What came of an attempt, other than success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble<'a> {
    /// The relay answered with a status that is no success, and this message.
    Status(u16, &'a str),
    /// There is no answer.
    Failed(FailureKind),
}

/// What follows from a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The request is sent again after this wait.
    Again(Duration),
    /// The trouble is what the caller is told.
    Tell,
    /// The write may have happened, or not.
    Unknown,
}

/// Decides after attempt number `attempt`, counted from 0. `draw` is a random number from 0 to below 1.
pub fn next_step(call: Call, trouble: Trouble<'_>, attempt: usize, draw: f64) -> Step {
    if !is_passing(trouble) {
        return Step::Tell;
    }
    let may_be_done = may_have_arrived(trouble);
    match (call, MAX_WAITS.get(attempt)) {
        (Call::Moderation, _) if may_be_done || is_foreign_limit(trouble) => Step::Unknown,
        (_, Some(longest)) => Step::Again(hint(trouble).unwrap_or_else(|| longest.mul_f64(draw))),
        (Call::Write, None) if may_be_done => Step::Unknown,
        (_, None) => Step::Tell,
    }
}

/// Whether a caller who tries later may have more luck.
pub fn is_passing(trouble: Trouble<'_>) -> bool {
    match trouble {
        Trouble::Status(status, _) => matches!(status, RATE_LIMITED | 502..=504),
        Trouble::Failed(kind) => match kind {
            FailureKind::Connect | FailureKind::Timeout | FailureKind::Transport | FailureKind::BodyRead => {
                true
            }
            FailureKind::Request | FailureKind::TooLarge => false,
        },
    }
}

/// Of trouble that passes: whether the relay may have acted on the request.
fn may_have_arrived(trouble: Trouble<'_>) -> bool {
    !matches!(trouble, Trouble::Status(RATE_LIMITED, _) | Trouble::Failed(FailureKind::Connect))
}

/// A limit that may be a proxy's, behind which the relay may have acted.
fn is_foreign_limit(trouble: Trouble<'_>) -> bool {
    matches!(trouble, Trouble::Status(RATE_LIMITED, message) if !message.starts_with("rate-limited:"))
}

/// The wait that a relay's words ask for: `retry in <N>s` anywhere in them.
fn hint(trouble: Trouble<'_>) -> Option<Duration> {
    let Trouble::Status(RATE_LIMITED, message) = trouble else { return None };
    message.match_indices("retry in ").find_map(|(at, words)| {
        let rest = &message[at + words.len()..];
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let is_seconds = digits > 0 && rest[digits..].starts_with('s');
        let seconds = || rest[..digits].parse().unwrap_or(u64::MAX);
        is_seconds.then(|| Duration::from_secs(seconds()).min(MAX_HINT))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITED: Trouble<'_> = Trouble::Status(429, "rate-limited: quota exceeded");
    const LOST: [Trouble<'_>; 6] = [
        Trouble::Failed(FailureKind::Timeout),
        Trouble::Failed(FailureKind::Transport),
        Trouble::Failed(FailureKind::BodyRead),
        Trouble::Status(502, ""),
        Trouble::Status(503, ""),
        Trouble::Status(504, ""),
    ];

    fn wait(millis: u64) -> Step {
        Step::Again(Duration::from_millis(millis))
    }

    #[test]
    fn a_read_is_sent_three_times_with_longer_waits() {
        for trouble in LOST.into_iter().chain([LIMITED, Trouble::Failed(FailureKind::Connect)]) {
            assert_eq!(next_step(Call::Read, trouble, 0, 0.5), wait(250));
            assert_eq!(next_step(Call::Read, trouble, 1, 0.5), wait(750));
            assert_eq!(next_step(Call::Read, trouble, 2, 0.5), Step::Tell);
        }
    }

    #[test]
    fn what_will_not_get_better_is_told_at_once() {
        for status in [400, 401, 403, 404, 422, 500, 501] {
            for call in [Call::Read, Call::Write, Call::Moderation] {
                assert_eq!(next_step(call, Trouble::Status(status, ""), 0, 0.0), Step::Tell, "{status}");
            }
        }
        for kind in [FailureKind::Request, FailureKind::TooLarge] {
            assert_eq!(next_step(Call::Read, Trouble::Failed(kind), 0, 0.0), Step::Tell);
        }
    }

    #[test]
    fn a_write_whose_last_answer_is_lost_is_unknown() {
        for trouble in LOST {
            assert_eq!(next_step(Call::Write, trouble, 1, 0.0), wait(0));
            assert_eq!(next_step(Call::Write, trouble, 2, 0.0), Step::Unknown);
        }
        for told in [LIMITED, Trouble::Failed(FailureKind::Connect)] {
            assert_eq!(next_step(Call::Write, told, 2, 0.0), Step::Tell);
        }
    }

    #[test]
    fn a_moderation_command_is_repeated_only_if_it_cannot_have_arrived() {
        for trouble in LOST.into_iter().chain([Trouble::Status(429, "slow down")]) {
            assert_eq!(next_step(Call::Moderation, trouble, 0, 0.0), Step::Unknown);
        }
        for trouble in [LIMITED, Trouble::Failed(FailureKind::Connect)] {
            assert_eq!(next_step(Call::Moderation, trouble, 0, 0.0), wait(0));
            assert_eq!(next_step(Call::Moderation, trouble, 2, 0.0), Step::Tell);
        }
    }

    #[test]
    fn moderation_is_five_kinds() {
        for kind in 9040..=9044 {
            assert_eq!(Call::of_kind(kind), Call::Moderation);
        }
        for kind in [9039, 9045, 1, 20_000, 30_023, 39_000] {
            assert_eq!(Call::of_kind(kind), Call::Write);
        }
    }

    #[test]
    fn a_limit_that_names_a_wait_is_obeyed_up_to_half_a_minute() {
        let waits = |message| next_step(Call::Read, Trouble::Status(429, message), 0, 0.2);
        assert_eq!(waits("rate-limited: quota; retry in 4s"), wait(4000));
        assert_eq!(waits("retry in 0s"), wait(0));
        assert_eq!(waits("retry in 31s"), wait(30_000));
        assert_eq!(waits("retry in 99999999999999999999s"), wait(30_000));
        assert_eq!(waits("retry in a while; retry in 2s please"), wait(2000));
        for none in ["retry in 4", "retry in s", "retry soon"] {
            assert_eq!(waits(none), wait(100), "{none}");
        }
        assert_eq!(next_step(Call::Read, Trouble::Status(503, "retry in 4s"), 0, 0.2), wait(100));
    }
}
