//! Steering: a message is brought into the running turn, without ending it where the agent knows how.

use serde_json::Value;

use super::signals::Signal;
use super::turn::{Phase, Steering};
use super::Machine;
use crate::acp::{self, AgentError, SteerPath};
use crate::prompt;
use crate::settings::Handling;
use crate::step::Step;

const METHOD_NOT_FOUND: i64 = -32601;

impl Machine {
    /// A message waits for a channel whose turn runs: brings it in, or ends the turn for it.
    pub(super) fn steer_channel(&mut self, step: &mut Step, channel: &str) {
        let Some(at) = self.slot_of_channel(channel) else { return };
        let Some(turn) = self.turns.get(&at) else { return };
        // While one is on its way the next waits for its answer; before the prompt is written, for that.
        if turn.steering.is_some() || turn.phase != Phase::Prompting || turn.is_cancelling() {
            return;
        }
        match self.steer_path(at) {
            Some(path) => self.send_steer(step, at, channel, &path),
            None => {
                self.signal_slot(step, at, Signal::Steer);
            }
        }
    }

    fn steer_path(&self, at: usize) -> Option<SteerPath> {
        if let Some(run) = self.turns.get(&at).and_then(|turn| turn.run.clone()) {
            return Some(SteerPath::Run(run));
        }
        self.pool.slots[at].child().filter(|child| child.can_steer).map(|_| SteerPath::Capability)
    }

    fn send_steer(&mut self, step: &mut Step, at: usize, channel: &str, path: &SteerPath) {
        let Some(queued) = self.queue.first_waiting(channel).cloned() else { return };
        let Some(session) = self.turns.get(&at).and_then(|turn| turn.session.clone()) else { return };
        let Some(child) = self.pool.slots[at].child_mut() else { return };
        let (request, number) = (child.draw_id(), child.number);
        let event = queued.event.id;
        self.queue.withhold(channel, &event);
        if let Some(turn) = self.turns.get_mut(&at) {
            let by_run = matches!(path, SteerPath::Run(_));
            turn.steering = Some(Steering { request, event, by_run });
        }
        let (method, params) = path.request(&session, &prompt::steer_text(channel, &queued));
        self.write(step, at, number, acp::request(request, method, &params));
    }

    pub(super) fn steer_answered(&mut self, step: &mut Step, at: usize, result: Result<Value, AgentError>) {
        let max_turn_ms = self.set().max_turn_ms;
        let Some(turn) = self.turns.get_mut(&at) else { return };
        let (Some(steering), Some(channel)) = (turn.steering.take(), turn.channel.clone()) else { return };
        let outcome = result.as_ref().ok().and_then(|result| result["outcome"].as_str());
        let was_injected = result.is_ok() && (steering.by_run || outcome == Some("injected"));
        let has_begun = outcome == Some("startedNewTurn");
        if was_injected || has_begun {
            let extend_to_ms = was_injected.then(|| {
                if let Some(clock) = &mut turn.clock {
                    clock.renew(step.now_ms, max_turn_ms);
                }
                step.now_ms + max_turn_ms + crate::queue::DEADLINE_SLACK_MS
            });
            turn.marked.push(steering.event);
            self.queue.steered(&channel, &steering.event, extend_to_ms);
            return self.steer_next(step, &channel);
        }
        self.queue.release(&channel, &steering.event);
        // Any other error says that the run is over or about to be: the message waits for the next turn.
        if result.map_or_else(|error| error.code == METHOD_NOT_FOUND, |_| true) {
            self.signal_slot(step, at, Signal::Steer);
        }
    }

    fn steer_next(&mut self, step: &mut Step, channel: &str) {
        if self.queue.first_waiting(channel).is_some() {
            self.steer_channel(step, channel);
        }
    }

    /// The agent says by which name its run is steered, or that it has none. What waited goes on its way.
    pub(super) fn run_named(&mut self, step: &mut Step, at: usize, named: Option<&Value>) {
        let Some(turn) = self.turns.get_mut(&at) else { return };
        match named {
            Some(Value::String(run)) => turn.run = Some(run.clone()),
            Some(Value::Null) => {
                turn.run = None;
                return;
            }
            _ => return,
        }
        let channel = turn.channel.clone();
        if let (Some(channel), Handling::Steer) = (channel, self.set().handling) {
            self.steer_next(step, &channel);
        }
    }
}
