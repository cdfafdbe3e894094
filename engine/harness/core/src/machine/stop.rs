//! The end of the process: running turns may finish, the rest waits in the log for the next one.

use super::Machine;
use crate::effect::{Effect, Level};
use crate::step::Step;

/// How long running turns may take to finish.
const TURNS_MS: u64 = 30_000;
/// How long usage events may take to be sent after that.
const METRICS_MS: u64 = 5_000;

/// A process that is to end.
#[derive(Clone, Debug)]
pub(super) struct Stopping {
    /// Until when it waits.
    pub(super) until_ms: u64,
    /// Turns are over; only usage events are waited for.
    is_draining: bool,
}

impl Machine {
    pub(super) fn stop_asked(&mut self, step: &mut Step, by: &str) {
        if self.stopping.is_some() {
            return;
        }
        step.tell(Level::Info, format!("stopping: {by}"));
        self.stopping = Some(Stopping { until_ms: step.now_ms + TURNS_MS, is_draining: false });
        for slot in &mut self.pool.slots {
            if !matches!(slot.state, super::pool::SlotState::Busy(_)) {
                if let Some(child) = slot.vacate() {
                    step.act(Effect::Kill { child: child.number });
                }
            }
        }
    }

    /// Turns that did not finish in time are left as they are: the next process takes them over.
    pub(super) fn tick_stopping(&mut self, step: &mut Step) {
        let is_late = self.stopping.as_ref().is_some_and(|stopping| stopping.until_ms <= step.now_ms);
        if is_late {
            self.leave(step);
        }
    }

    /// Leaves once nothing runs any more.
    pub(super) fn end_if_stopped(&mut self, step: &mut Step) {
        let Some(stopping) = &mut self.stopping else { return };
        if !self.turns.is_empty() {
            return;
        }
        if !stopping.is_draining {
            *stopping = Stopping { until_ms: step.now_ms + METRICS_MS, is_draining: true };
        }
        if !self.metrics.is_busy() {
            self.leave(step);
        }
    }

    fn leave(&mut self, step: &mut Step) {
        // Nothing is due any more: what comes between this and the process's end changes nothing.
        if let Some(stopping) = &mut self.stopping {
            if stopping.until_ms == u64::MAX {
                return;
            }
            stopping.until_ms = u64::MAX;
        }
        self.flush_view(step);
        self.kill_all(step);
        self.publish_presence(step, "offline");
        self.link.close(step);
        step.act(Effect::Exit { code: 0 });
    }
}
