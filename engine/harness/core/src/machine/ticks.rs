//! Time: what is due now, and when something will be.

use super::Machine;
use crate::effect::Level;
use crate::step::Step;

impl Machine {
    /// When the driver must say that time has passed, in milliseconds since 1970.
    pub fn wake_at_ms(&self) -> Option<u64> {
        let settings = self.settings.as_ref()?;
        let turns = self.turns.values().map(|turn| turn.wake_at_ms(settings.idle_timeout_ms)).min();
        let waking = self.pool.waking.retry_ms.filter(|_| self.queue.pending() > 0);
        [
            self.link.wake_at_ms(),
            self.queue.wake_at_ms(),
            self.pool.wake_at_ms(),
            self.metrics.wake_at_ms(),
            self.beats.wake_at_ms(),
            self.view.wake_at_ms(),
            self.stopping.as_ref().map(|stopping| stopping.until_ms),
            waking,
            turns,
        ]
        .into_iter()
        .flatten()
        .filter(|due_ms| *due_ms != u64::MAX)
        .min()
    }

    pub(super) fn time_passed(&mut self, step: &mut Step) {
        let news = self.link.tick(step);
        self.hear(step, news);
        for channel in self.queue.expire(step.now_ms) {
            step.tell(Level::Error, format!("the turn of channel {channel} did not end when it had to"));
        }
        self.tick_requests(step);
        for at in self.turns.keys().copied().collect::<Vec<_>>() {
            self.tick_turn(step, at);
        }
        self.refill(step);
        self.tick_metrics(step);
        self.beat(step);
        self.tick_view(step);
        self.tick_stopping(step);
    }

    fn tick_requests(&mut self, step: &mut Step) {
        for at in 0..self.pool.slots.len() {
            let Some(child) = self.pool.slots[at].child_mut() else { continue };
            if let Some(open) = child.open.take_if(|open| open.until_ms <= step.now_ms) {
                self.request_late(step, at, open.what);
            }
        }
    }
}
