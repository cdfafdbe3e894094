//! What happened in a run, step by step, for whoever looks into a failure.

use std::collections::VecDeque;

/// Steps that a trace keeps.
const STEPS_MAX: usize = 4_000;
/// Longest note of one step, in characters.
const NOTE_MAX_CHARS: usize = 240;

/// The last steps of a run; one that is off keeps nothing and costs nothing.
#[derive(Clone, Debug)]
pub struct Trace {
    is_on: bool,
    steps: VecDeque<String>,
}

impl Trace {
    /// A trace that keeps nothing.
    pub fn off() -> Trace {
        Trace { is_on: false, steps: VecDeque::new() }
    }

    /// A trace that keeps the last steps.
    pub fn on() -> Trace {
        Trace { is_on: true, ..Trace::off() }
    }

    /// Notes a step at a time of the run.
    pub fn note(&mut self, now_ms: u64, step: impl FnOnce() -> String) {
        if !self.is_on {
            return;
        }
        if self.steps.len() == STEPS_MAX {
            self.steps.pop_front();
        }
        let note: String = step().chars().take(NOTE_MAX_CHARS).collect();
        self.steps.push_back(format!("{now_ms:>9} ms  {note}"));
    }

    /// The last `count` steps, oldest first.
    pub fn tail(&self, count: usize) -> impl Iterator<Item = &str> {
        self.steps.iter().skip(self.steps.len().saturating_sub(count)).map(String::as_str)
    }
}
