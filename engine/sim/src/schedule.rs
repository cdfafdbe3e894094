//! What is going to happen, in virtual time.

use std::collections::BTreeMap;

use waxlog_core::connection::Work;
use waxlog_core::session::Input;

use crate::dice::Dice;

/// Of what was taken back, how much was on its way already and comes all the same, in thousandths.
const LATE_PERMILLE: u32 = 150;
/// How late that may be, in milliseconds.
const LATE_MAX_MS: u64 = 5_000;

/// Stands for a task beside the session: when it is taken back, what it would have said does not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token(u64);

/// Something that is going to happen.
#[derive(Clone, Debug)]
pub enum Happening {
    /// The client does something.
    Move,
    /// A line of the client arrives.
    Line(Vec<u8>),
    /// The servers of a session that was asked for are up.
    Up(Work),
    /// The client is gone.
    Gone,
    /// What a request, a call, a hook or a timer has to say.
    Input(Input),
    /// The model has been silent for another keepalive period, and will be asked after again.
    Tick {
        /// The round within the session.
        asked: u64,
    },
}

#[derive(Clone, Debug)]
struct Entry {
    until: Option<Token>,
    what: Happening,
}

/// The agenda of a run with its clock.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    now_ms: u64,
    drawn: u64,
    entries: BTreeMap<(u64, u64), Entry>,
}

impl Schedule {
    /// The time, in milliseconds since the run began.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// A token that nothing carries yet.
    pub fn token(&mut self) -> Token {
        Token(self.draw())
    }

    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.drawn
    }

    /// Puts something on the agenda; things of one time happen in the order in which they were put there.
    pub fn after(&mut self, wait_ms: u64, until: Option<Token>, what: Happening) {
        let key = (self.now_ms.saturating_add(wait_ms), self.draw());
        self.entries.insert(key, Entry { until, what });
    }

    /// The next thing; the clock goes there.
    pub fn go_on(&mut self) -> Option<(Happening, Option<Token>)> {
        let ((at_ms, _), entry) = self.entries.pop_first()?;
        self.now_ms = at_ms;
        Some((entry.what, entry.until))
    }

    /// The next input, if one is due now.
    pub fn next_due_input(&mut self) -> Option<Input> {
        let first = self.entries.first_entry()?;
        if first.key().0 > self.now_ms || !matches!(first.get().what, Happening::Input(_)) {
            return None;
        }
        match first.remove().what {
            Happening::Input(input) => Some(input),
            _ => None,
        }
    }

    /// Takes back what carries `token`, but for what is on its way already.
    pub fn take_back(&mut self, token: Token, dice: &mut Dice) {
        for (_, what) in self.take(token) {
            let late = match what {
                Happening::Tick { asked } => Happening::Input(Input::KeepaliveTick { asked }),
                other => other,
            };
            if dice.chance(LATE_PERMILLE) {
                self.after(dice.wait_ms(LATE_MAX_MS), None, late);
            }
        }
    }

    /// Takes what carries `token` off the agenda, with the wait that was left of each.
    pub fn take(&mut self, token: Token) -> Vec<(u64, Happening)> {
        let keys = self.entries.iter().filter(|(_, e)| e.until == Some(token)).map(|(key, _)| *key);
        let keys: Vec<_> = keys.collect();
        let taken = keys.into_iter().filter_map(|key| Some((key, self.entries.remove(&key)?)));
        taken.map(|((at_ms, _), entry)| (at_ms.saturating_sub(self.now_ms), entry.what)).collect()
    }

    /// The process dies: only what the client is going to do remains.
    pub fn kill(&mut self) {
        self.entries.retain(|_, entry| matches!(entry.what, Happening::Move));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(asked: u64) -> Happening {
        Happening::Tick { asked }
    }

    fn order(schedule: &mut Schedule) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| {
            let (what, _) = schedule.go_on()?;
            match what {
                Happening::Tick { asked } => Some((schedule.now_ms(), asked)),
                _ => None,
            }
        })
        .collect()
    }

    #[test]
    fn things_happen_in_the_order_of_their_time_and_then_of_their_planning() {
        let mut schedule = Schedule::default();
        schedule.after(5, None, tick(1));
        schedule.after(3, None, tick(2));
        schedule.after(5, None, tick(3));
        assert_eq!(order(&mut schedule), [(3, 2), (5, 1), (5, 3)]);
    }

    #[test]
    fn what_is_taken_off_the_agenda_does_not_happen() {
        let mut schedule = Schedule::default();
        let token = schedule.token();
        schedule.after(5, Some(token), tick(1));
        schedule.after(6, None, tick(2));
        assert_eq!(schedule.take(token).len(), 1);
        assert_eq!(order(&mut schedule), [(6, 2)]);
    }
}
