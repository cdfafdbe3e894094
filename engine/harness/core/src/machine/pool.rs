//! The pool: the agents, what each of them is, and when a lost one is replaced.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

/// Within which time crashes count together.
const CRASH_WINDOW_MS: u64 = 60_000;
/// How many of them open the circuit.
const CRASHES_MAX: usize = 3;
/// How long it stays open.
const COOL_DOWN_MS: u64 = 300_000;
const RESPAWN_BASE_MS: u64 = 1_000;
const RESPAWN_CAP_MS: u64 = 30_000;

/// A session that an agent keeps for a channel.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Session {
    pub(super) id: String,
    /// The child that has it open. A later one must load it first.
    pub(super) child: u64,
    pub(super) turns: u32,
    /// What its system prompt has of memory and canvas.
    pub(super) core: Option<String>,
    pub(super) canvas: Option<String>,
}

/// What a child was asked, and until when it may answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Open {
    pub(super) id: u64,
    pub(super) what: Ask,
    pub(super) until_ms: u64,
}

/// What a child can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    Initialize,
    NewSession,
    LoadSession,
    SystemPrompt,
    Model,
    Mode,
    InitialPrompt,
    Prompt,
}

/// Whether an agent takes its system prompt by a method of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnMethod {
    /// It is none that might.
    No,
    /// It might; not tried yet.
    Untried,
    Works,
    Missing,
}

/// A running agent process.
#[derive(Clone, Debug)]
pub(super) struct Child {
    pub(super) number: u64,
    pub(super) pid: Option<u32>,
    next_id: u64,
    pub(super) open: Option<Open>,
    pub(super) name: String,
    protocol_version: u64,
    pub(super) can_steer: bool,
    pub(super) can_load: bool,
    pub(super) own_method: OwnMethod,
    /// What the newest session was answered with.
    pub(super) catalog: Option<Value>,
}

impl Child {
    pub(super) fn new(number: u64) -> Self {
        Self {
            number,
            pid: None,
            next_id: 0,
            open: None,
            name: String::new(),
            protocol_version: 1,
            can_steer: false,
            can_load: false,
            own_method: OwnMethod::No,
            catalog: None,
        }
    }

    /// The id of the next request.
    pub(super) fn draw_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    /// The child has said what it is.
    pub(super) fn initialized(&mut self, result: &Value) {
        self.name = crate::acp::agent_name(result);
        self.protocol_version = result["protocolVersion"].as_u64().unwrap_or(1);
        self.can_steer = result["_meta"]["steering"]["supported"] == true;
        self.can_load = result["agentCapabilities"]["loadSession"] == true;
        self.own_method = if self.name == "goose" { OwnMethod::Untried } else { OwnMethod::No };
    }

    /// Whether it takes no system prompt, so that each prompt has its parts.
    pub(super) fn is_legacy(&self) -> bool {
        match self.own_method {
            OwnMethod::Works => false,
            OwnMethod::Untried | OwnMethod::Missing => true,
            OwnMethod::No => self.protocol_version < crate::acp::PROTOCOL_VERSION,
        }
    }

    /// Whether its sessions' counters start at zero, as those of our own agent do.
    pub(super) fn counts_from_zero(&self) -> bool {
        self.name == "waxlog"
    }
}

/// What a slot is doing.
#[derive(Clone, Debug)]
pub(super) enum SlotState {
    /// Nothing; filled again when that is due.
    Empty,
    /// A child is being started.
    Starting(Child),
    /// A child waits for work.
    Idle(Child),
    /// A child runs a turn.
    Busy(Child),
}

/// A place for an agent, with what outlives its child.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) state: SlotState,
    crashes: VecDeque<u64>,
    /// Not filled before this.
    refill_ms: Option<u64>,
    /// Sessions by channel; heartbeats have the empty name.
    pub(super) sessions: BTreeMap<String, Session>,
    /// A model that the owner chose for it.
    pub(super) overridden: Option<String>,
}

impl Slot {
    fn new() -> Self {
        Self {
            state: SlotState::Empty,
            crashes: VecDeque::new(),
            refill_ms: None,
            sessions: BTreeMap::new(),
            overridden: None,
        }
    }

    pub(super) fn child(&self) -> Option<&Child> {
        match &self.state {
            SlotState::Starting(child) | SlotState::Idle(child) | SlotState::Busy(child) => Some(child),
            SlotState::Empty => None,
        }
    }

    pub(super) fn child_mut(&mut self) -> Option<&mut Child> {
        match &mut self.state {
            SlotState::Starting(child) | SlotState::Idle(child) | SlotState::Busy(child) => Some(child),
            SlotState::Empty => None,
        }
    }

    /// Whether it is known when its next child is due.
    pub(super) fn has_refill(&self) -> bool {
        self.refill_ms.is_some()
    }

    /// A child is ready for work.
    pub(super) fn filled(&mut self, child: Child) {
        self.refill_ms = None;
        self.state = SlotState::Idle(child);
    }

    /// Takes the child out.
    pub(super) fn vacate(&mut self) -> Option<Child> {
        match std::mem::replace(&mut self.state, SlotState::Empty) {
            SlotState::Starting(child) | SlotState::Idle(child) | SlotState::Busy(child) => Some(child),
            SlotState::Empty => None,
        }
    }

    /// The child was lost: when the next one is due. `jittered` spreads a wait.
    fn crashed(&mut self, now_ms: u64, jittered: impl FnOnce(u64) -> u64) {
        self.crashes.retain(|at_ms| now_ms - at_ms < CRASH_WINDOW_MS);
        self.crashes.push_back(now_ms);
        let count = self.crashes.len();
        self.refill_ms = Some(if count >= CRASHES_MAX {
            // One crash of the child that is tried afterwards opens the circuit again.
            let reopened_ms = now_ms + COOL_DOWN_MS;
            self.crashes = [reopened_ms; CRASHES_MAX - 1].into();
            reopened_ms
        } else {
            now_ms + jittered((RESPAWN_BASE_MS << (count - 1)).min(RESPAWN_CAP_MS))
        });
    }

    /// A replacement could not be started.
    fn failed_to_start(&mut self, now_ms: u64) {
        self.refill_ms = Some(now_ms + COOL_DOWN_MS);
    }
}

/// How far a pool has come that starts only when there is work.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Waking {
    pub(super) failures: u32,
    pub(super) retry_ms: Option<u64>,
}

/// All agents.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    pub(super) slots: Vec<Slot>,
    last_child: u64,
    /// Whether the first start of all slots is over.
    pub(super) is_started: bool,
    pub(super) waking: Waking,
}

impl Pool {
    /// A new process: children are gone, sessions may be loaded again.
    pub(super) fn restart(&mut self, agents: usize, _now_ms: u64) {
        self.slots.truncate(agents);
        for slot in &mut self.slots {
            slot.state = SlotState::Empty;
            slot.crashes.clear();
            slot.refill_ms = None;
            slot.overridden = None;
        }
        self.slots.resize_with(agents, Slot::new);
        self.is_started = false;
        self.waking = Waking::default();
    }

    /// The number of the next child.
    pub(super) fn draw_child(&mut self) -> u64 {
        self.last_child += 1;
        self.last_child
    }

    /// The slot of a child, if it is the one that is in it.
    pub(super) fn slot_of(&self, child: u64) -> Option<usize> {
        self.slots.iter().position(|slot| slot.child().is_some_and(|held| held.number == child))
    }

    /// How many children run.
    pub(super) fn alive(&self) -> usize {
        self.slots.iter().filter(|slot| matches!(slot.state, SlotState::Idle(_) | SlotState::Busy(_))).count()
    }

    pub(super) fn is_starting(&self) -> bool {
        self.slots.iter().any(|slot| matches!(slot.state, SlotState::Starting(_)))
    }

    pub(super) fn has_idle(&self) -> bool {
        self.slots.iter().any(|slot| matches!(slot.state, SlotState::Idle(_)))
    }

    /// Takes an idle agent for a channel: one that has a session of it before others.
    pub(super) fn claim(&mut self, channel: &str) -> Option<usize> {
        let idle = |slot: &&Slot| matches!(slot.state, SlotState::Idle(_));
        let with_session =
            self.slots.iter().position(|slot| idle(&slot) && slot.sessions.contains_key(channel));
        let at = with_session.or_else(|| self.slots.iter().position(|slot| idle(&slot)))?;
        let slot = &mut self.slots[at];
        if let Some(child) = slot.vacate() {
            slot.state = SlotState::Busy(child);
        }
        Some(at)
    }

    /// The agent of a slot is free again.
    pub(super) fn give_back(&mut self, at: usize) {
        if let Some(child) = self.slots[at].vacate() {
            self.slots[at].state = SlotState::Idle(child);
        }
    }

    /// The agent of a slot is lost: notes when the next one is due, and gives the child to be ended.
    pub(super) fn lose(&mut self, at: usize, now_ms: u64, jittered: impl FnOnce(u64) -> u64) -> Option<u64> {
        let child = self.slots[at].vacate()?;
        self.slots[at].crashed(now_ms, jittered);
        Some(child.number)
    }

    /// A child could not be started.
    pub(super) fn fail_start(&mut self, at: usize, now_ms: u64) {
        self.slots[at].vacate();
        self.slots[at].failed_to_start(now_ms);
    }

    /// The slots whose next child is due. Those that never had one are, once all have had their first try.
    pub(super) fn due(&self, now_ms: u64) -> Vec<usize> {
        let is_due = |slot: &Slot| {
            matches!(slot.state, SlotState::Empty) && slot.refill_ms.is_some_and(|due_ms| due_ms <= now_ms)
        };
        self.slots.iter().enumerate().filter(|(_, slot)| is_due(slot)).map(|(at, _)| at).collect()
    }

    /// When the next child is due.
    pub(super) fn wake_at_ms(&self) -> Option<u64> {
        let refills = self.slots.iter().filter(|slot| matches!(slot.state, SlotState::Empty));
        let opens =
            self.slots.iter().filter_map(|slot| slot.child()?.open.as_ref()).map(|open| open.until_ms);
        refills.filter_map(|slot| slot.refill_ms).chain(opens).min()
    }

    /// Whether nothing lives and nothing will soon.
    pub(super) fn is_dead(&self, now_ms: u64) -> bool {
        let hopes = |slot: &Slot| {
            slot.child().is_some()
                || slot.refill_ms.is_some_and(|due_ms| due_ms < now_ms + RESPAWN_CAP_MS * 2)
        };
        !self.slots.iter().any(hopes)
    }

    /// Drops the sessions of a channel on all agents that are not at work.
    pub(super) fn forget_idle_sessions(&mut self, channel: &str) {
        for slot in &mut self.slots {
            if !matches!(slot.state, SlotState::Busy(_)) {
                slot.sessions.remove(channel);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot() -> Slot {
        Slot { state: SlotState::Busy(Child::new(1)), ..Slot::new() }
    }

    #[test]
    fn crashes_wait_longer_and_the_third_opens_the_circuit() {
        let mut slot = slot();
        let mut wait = |at_ms| {
            slot.crashed(at_ms, |base_ms| base_ms);
            slot.refill_ms.unwrap() - at_ms
        };
        assert_eq!([wait(0), wait(10_000), wait(20_000)], [1000, 2000, COOL_DOWN_MS]);
        assert_eq!(
            wait(20_000 + COOL_DOWN_MS + 1000),
            COOL_DOWN_MS,
            "the one that is tried has no second chance"
        );
    }

    #[test]
    fn old_crashes_are_forgotten() {
        let mut slot = slot();
        for at_ms in [0, 61_000, 122_000, 183_000] {
            slot.crashed(at_ms, |base_ms| base_ms);
            assert_eq!(slot.refill_ms, Some(at_ms + 1000));
        }
    }
}
