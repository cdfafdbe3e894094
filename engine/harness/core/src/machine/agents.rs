//! Agents come and go: starting them, and reading what they say.

use serde_json::{json, Value};

use super::outcome::Outcome;
use super::pool::{Ask, Child, Open, SlotState};
use super::Machine;
use crate::acp::{self, AgentError, Said};
use crate::effect::{Effect, Level};
use crate::record::AgentEnd;
use crate::step::Step;
use crate::usage::{Usage, UPDATE_METHOD};

/// How long a new agent has to say what it is.
const INITIALIZE_MS: u64 = 60_000;
/// How long any other request but a prompt may take.
pub(super) const REQUEST_MS: u64 = 60_000;
const WAKE_RETRY_BASE_MS: u64 = 5_000;
const WAKE_RETRY_CAP_MS: u64 = 300_000;

impl Machine {
    /// Starts the agents one after the other; goes on when each has had its turn.
    pub(super) fn start_next_agent(&mut self, step: &mut Step) {
        let untried = self.pool.slots.iter().position(|slot| slot.child().is_none() && !slot.has_refill());
        match untried {
            Some(at) => self.spawn(step, at),
            None if !self.pool.is_started => {
                self.pool.is_started = true;
                self.pool_started(step);
            }
            None => {}
        }
    }

    pub(super) fn spawn(&mut self, step: &mut Step, at: usize) {
        let number = self.pool.draw_child();
        self.pool.slots[at].state = SlotState::Starting(Child::new(number));
        step.act(Effect::Spawn { child: number, slot: at });
    }

    pub(super) fn agent_spawned(&mut self, step: &mut Step, child: u64, pid: u32) {
        let Some(at) = self.pool.slot_of(child) else { return step.act(Effect::Kill { child }) };
        if let Some(child) = self.pool.slots[at].child_mut() {
            child.pid = Some(pid);
        }
        let params = acp::initialize(&self.set().version);
        self.ask(step, at, Ask::Initialize, "initialize", &params, INITIALIZE_MS);
    }

    pub(super) fn agent_not_spawned(&mut self, step: &mut Step, child: u64, reason: &str) {
        let Some(at) = self.pool.slot_of(child) else { return };
        step.tell(Level::Error, format!("agent {at} could not be started: {reason}"));
        self.start_failed(step, at);
    }

    /// A child has not come as far as being usable.
    fn start_failed(&mut self, step: &mut Step, at: usize) {
        self.pool.fail_start(at, step.now_ms);
        if self.set().lazy_pool && self.pool.alive() == 0 {
            self.waking_failed(step);
        }
        if !self.set().lazy_pool && !self.pool.is_started {
            self.start_next_agent(step);
        }
    }

    fn waking_failed(&mut self, step: &mut Step) {
        let waking = &mut self.pool.waking;
        waking.failures += 1;
        let doublings = (waking.failures - 1).min(6);
        let wait_ms = (WAKE_RETRY_BASE_MS << doublings).min(WAKE_RETRY_CAP_MS);
        waking.retry_ms = Some(step.now_ms + wait_ms);
        self.pool.is_started = false;
        self.show_lifecycle(step, "failed", Some("no agent could be started"));
    }

    /// Sends a request; its answer comes back to [`Machine::answered`].
    pub(super) fn ask(
        &mut self,
        step: &mut Step,
        at: usize,
        what: Ask,
        method: &str,
        params: &Value,
        within_ms: u64,
    ) {
        let Some(child) = self.pool.slots[at].child_mut() else { return };
        let id = child.draw_id();
        child.open = Some(Open { id, what, until_ms: step.now_ms.saturating_add(within_ms) });
        let (number, line) = (child.number, acp::request(id, method, params));
        self.write(step, at, number, line);
    }

    pub(super) fn notify(&mut self, step: &mut Step, at: usize, method: &str, params: &Value) {
        let Some(child) = self.pool.slots[at].child() else { return };
        let (number, line) = (child.number, acp::notification(method, params));
        self.write(step, at, number, line);
    }

    pub(super) fn write(&mut self, step: &mut Step, at: usize, child: u64, line: String) {
        self.show_line(step, at, "acp_write", &line);
        step.act(Effect::Write { child, line });
    }

    /// A line of an agent.
    pub(super) fn agent_line(&mut self, step: &mut Step, child: u64, raw: &[u8]) {
        let Some(at) = self.pool.slot_of(child) else { return };
        let said = acp::read(raw);
        match &said {
            Said::Blank => return,
            Said::Invalid { reason } => return self.show_invalid(step, at, raw, reason),
            _ => self.show_line(step, at, "acp_read", &String::from_utf8_lossy(raw)),
        }
        if let Some(turn) = self.turns.get_mut(&at) {
            turn.heard(step.now_ms);
        }
        match said {
            Said::Response { id, result } => self.response(step, at, id, result),
            Said::Request { id, method, params } => self.requested(step, at, child, &id, &method, &params),
            Said::Notification { method, params } => self.notified(step, at, child, &method, &params),
            Said::Odd | Said::Blank | Said::Invalid { .. } => {}
        }
    }

    fn response(&mut self, step: &mut Step, at: usize, id: u64, result: Result<Value, AgentError>) {
        if self.turns.get(&at).is_some_and(|turn| turn.is_steer(id)) {
            return self.steer_answered(step, at, result);
        }
        let Some(child) = self.pool.slots[at].child_mut() else { return };
        let Some(open) = child.open.take_if(|open| open.id == id) else { return };
        match open.what {
            Ask::Initialize => self.agent_initialized(step, at, result),
            what => self.answered(step, at, what, result),
        }
    }

    fn agent_initialized(&mut self, step: &mut Step, at: usize, result: Result<Value, AgentError>) {
        let result = match result {
            Ok(result) => result,
            Err(error) => {
                step.tell(Level::Error, format!("agent {at} does not initialize: {error}"));
                let child = self.pool.slots[at].child().map(|child| child.number);
                if let Some(child) = child {
                    step.act(Effect::Kill { child });
                }
                return self.start_failed(step, at);
            }
        };
        if let Some(mut child) = self.pool.slots[at].vacate() {
            child.initialized(&result);
            self.pool.slots[at].filled(child);
        }
        self.show_of_slot(
            step,
            at,
            "agent_initialized",
            json!({"agentIndex": at, "initializeResult": result}),
        );
        self.pool.waking = Default::default();
        if self.set().lazy_pool {
            self.show_lifecycle(step, "ready", None);
        } else if !self.pool.is_started {
            self.start_next_agent(step);
        }
    }

    fn requested(
        &mut self,
        step: &mut Step,
        at: usize,
        child: u64,
        id: &Value,
        method: &str,
        params: &Value,
    ) {
        if method != "session/request_permission" {
            return self.write(step, at, child, acp::method_not_found(id, method));
        }
        let is_cancelled = self.turns.get(&at).is_some_and(|turn| turn.is_cancelling());
        let answer = match is_cancelled {
            true => Some(acp::permission_cancelled()),
            false => acp::permission(params),
        };
        match answer {
            Some(answer) => self.write(step, at, child, acp::answer(id, &answer)),
            None => {
                let text = "the agent asks for a permission that can be neither given nor refused once";
                self.end_turn(step, at, Outcome::Broken(text.to_owned()));
            }
        }
    }

    fn notified(&mut self, step: &mut Step, at: usize, child: u64, method: &str, params: &Value) {
        match method {
            "session/update" if params["update"]["sessionUpdate"] == "session_info_update" => {
                self.run_named(step, at, params.pointer("/update/_meta/goose/activeRunId"));
            }
            UPDATE_METHOD => {
                if let Some((session, usage)) = Usage::read(params) {
                    self.tracker.record(child, &session, usage);
                }
            }
            _ => {}
        }
    }

    /// An agent is gone.
    pub(super) fn agent_ended(&mut self, step: &mut Step, child: u64, how: &AgentEnd) {
        let Some(at) = self.pool.slot_of(child) else { return };
        let outcome = match how {
            AgentEnd::Exited { .. } => Outcome::Exited,
            AgentEnd::WriteFailed { reason } => {
                Outcome::Broken(format!("it could not be written to: {reason}"))
            }
            AgentEnd::LineTooLong { limit_bytes } => {
                Outcome::Broken(format!("it wrote a line of more than {limit_bytes} bytes"))
            }
        };
        match self.pool.slots[at].state {
            SlotState::Busy(_) => self.end_turn(step, at, outcome),
            SlotState::Idle(_) => {
                step.tell(Level::Warn, format!("agent {at} has ended while it was idle"));
                self.replace_agent(step, at);
            }
            SlotState::Starting(_) => {
                step.tell(Level::Error, format!("agent {at} ended before it was ready"));
                step.act(Effect::Kill { child });
                self.start_failed(step, at);
            }
            SlotState::Empty => {}
        }
    }

    /// Ends an agent and notes when the next one is due.
    pub(super) fn replace_agent(&mut self, step: &mut Step, at: usize) {
        let wait_seed_ms = step.jittered(1_000);
        let jittered = |base_ms: u64| base_ms * wait_seed_ms / 1_000;
        if let Some(child) = self.pool.lose(at, step.now_ms, jittered) {
            step.act(Effect::Kill { child });
        }
    }

    pub(super) fn kill_all(&mut self, step: &mut Step) {
        for slot in &mut self.pool.slots {
            if let Some(child) = slot.vacate() {
                step.act(Effect::Kill { child: child.number });
            }
        }
    }

    /// Starts agents whose time has come, and those that a pool without any needs for its work.
    pub(super) fn refill(&mut self, step: &mut Step) {
        if self.stopping.is_some() {
            return;
        }
        if self.set().lazy_pool && !self.pool.is_started {
            return self.wake_pool(step);
        }
        for at in self.pool.due(step.now_ms) {
            self.spawn(step, at);
        }
    }

    fn wake_pool(&mut self, step: &mut Step) {
        let may = self.pool.waking.retry_ms.is_none_or(|retry_ms| retry_ms <= step.now_ms);
        if !may || self.pool.is_starting() || !self.queue.has_work(step.now_ms) {
            return;
        }
        self.pool.is_started = true;
        self.show_lifecycle(step, "waking", None);
        for at in 0..self.pool.slots.len() {
            self.spawn(step, at);
        }
    }
}
