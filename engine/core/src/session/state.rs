//! The state that a fold carries, and nothing else does.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::acp::blocks::Block;
use crate::acp::frame::Id;
use crate::acp::lines::Line;
use crate::dialect::Encoder;
use crate::history::{History, Item, ToolResult};
use crate::mcp::{Catalogue, ResultLimits, Tool, RESULT_TOTAL_MAX_BYTES};
use crate::provider::Route;
use crate::record::{Outcome, SessionOpened, StopReason};
use crate::retry::Attempts;
use crate::rope::{Chunk, Rope};
use crate::said::Said;
use crate::session::mesh::StandIn;
use crate::session::Effect;
use crate::skills;
use crate::usage::Tally;

/// One session.
#[derive(Clone, Debug)]
pub struct Session {
    pub(super) opened: SessionOpened,
    pub(super) system_prompt: String,
    pub(super) history: History,
    pub(super) encoder: Encoder,
    pub(super) original_task: Option<String>,
    pub(super) last_usage: Option<LastUsage>,
    pub(super) handoffs: u64,
    pub(super) objections: u64,
    pub(super) tally: Tally,
    pub(super) model_override: Option<String>,
    pub(super) upgraded: bool,
    pub(super) closing: Option<Closing>,
    pub(super) deleted: bool,
    pub(super) servers: Vec<ServerState>,
    /// The tools, by qualified name, that the client has allowed or refused for the session.
    pub(super) permissions: BTreeMap<String, bool>,
    pub(super) tools: Option<Chunk>,
    pub(super) turns: u64,
    pub(super) asked: u64,
    pub(super) previous: Rope,
    pub(super) turn: Option<Turn>,
    pub(super) said: Said,
    pub(super) outbox: Vec<Effect>,
}

/// How a session that is to end ends.
#[derive(Clone, Debug)]
pub(super) enum Closing {
    /// It may come back.
    Close(Id),
    /// It may not.
    Delete(Option<Id>),
}

/// What the last usage-bearing response said of its input, and how much history that was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastUsage {
    /// The input tokens reported.
    pub input_tokens: u64,
    /// The pressure bytes of the history that was sent.
    pub history_bytes: u64,
}

/// What is known of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerState {
    /// The bare names that its present process offers.
    pub tools: BTreeSet<String>,
    /// Hooks in a row that were too slow.
    pub hook_timeouts: u32,
    /// Attempts since it was last well: 0 is healthy.
    pub attempts: u32,
    /// Given up: nothing of it is offered.
    pub exhausted: bool,
}

impl ServerState {
    /// The servers of a catalogue, all well.
    pub(super) fn all(catalogue: &Catalogue) -> Vec<ServerState> {
        let well = |server: usize| ServerState {
            tools: catalogue.of_server(server).map(|tool| tool.bare.clone()).collect(),
            hook_timeouts: 0,
            attempts: 0,
            exhausted: false,
        };
        (0..catalogue.servers.len()).map(well).collect()
    }
}

/// A turn under way.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) id: Id,
    pub(super) run: String,
    pub(super) model: String,
    pub(super) stand_in: StandIn,
    pub(super) route: Route,
    pub(super) round: u32,
    pub(super) cancelled: bool,
    pub(super) steers: VecDeque<Vec<Block>>,
    pub(super) saw_usage: bool,
    pub(super) rejections: u32,
    pub(super) reminders: u32,
    pub(super) reply_seen: bool,
    pub(super) phase: Phase,
}

/// Where a turn stands.
#[derive(Clone, Debug)]
pub(super) enum Phase {
    /// At the top of the loop.
    Boundary(Compaction),
    /// A request is out, or waits for its next attempt.
    Asking { purpose: Purpose, attempts: Attempts, body: Rope },
    /// A summary is there; servers are asked what else the fresh context needs.
    Compacting(Compacting),
    /// Calls are being run.
    Calling(Vec<Slot>),
    /// The model ended its turn without calls.
    Gate(StopReason, Objectors),
    /// It is settled how the turn ends.
    Ending(Outcome),
}

/// Whether this round has looked at the context window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compaction {
    /// Not yet.
    Due,
    /// A handoff was wanted and could not be had: the history is only truncated.
    Skipped,
    /// A summary has just replaced the history.
    Performed,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Round,
    Summary,
}

/// A handoff between summary and replacement.
#[derive(Clone, Debug)]
pub(super) struct Compacting {
    pub(super) summary: String,
    /// `None` until the hooks were run.
    pub(super) outputs: Option<Vec<(String, String)>>,
    /// Whether the hooks are being run.
    pub(super) waiting: bool,
}

/// Who has been asked whether the turn may end.
#[derive(Clone, Debug)]
pub(super) enum Objectors {
    /// Nobody yet.
    Unasked,
    /// The hooks are being run.
    Waiting,
    /// All, and these object.
    Heard(Vec<(String, String)>),
}

/// One call of the round.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) progress: Progress,
}

/// How far a call is.
#[derive(Clone, Debug)]
pub(super) enum Progress {
    Waiting {
        leave: Leave,
        server: usize,
        bare: String,
        arguments: serde_json::Map<String, serde_json::Value>,
    },
    Started,
    /// A skill is being read for it.
    Loading,
    Done(ToolResult),
}

/// Whether the client lets a call run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leave {
    /// It is to be asked.
    Due,
    /// It is being asked.
    Asked,
    /// It does, or need not be asked.
    Given,
    /// It does not.
    Refused,
}

impl Slot {
    /// What a call that waits waits for; `None` if it does not wait.
    pub(super) fn leave(&self) -> Option<Leave> {
        match self.progress {
            Progress::Waiting { leave, .. } => Some(leave),
            Progress::Started | Progress::Loading | Progress::Done(_) => None,
        }
    }
}

impl Session {
    /// The session's id.
    pub fn id(&self) -> &str {
        &self.opened.session
    }

    /// Its first record's head.
    pub fn opened(&self) -> &SessionOpened {
        &self.opened
    }

    /// The system prompt as composed.
    pub fn system_prompt(&self) -> &str {
        &self.system_prompt
    }

    /// What the model has been told so far.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The first accepted prompt.
    pub fn original_task(&self) -> Option<&str> {
        self.original_task.as_deref()
    }

    /// What the last usage-bearing response said of its input.
    pub fn last_usage(&self) -> Option<LastUsage> {
        self.last_usage
    }

    /// Context handoffs so far.
    pub fn handoffs(&self) -> u64 {
        self.handoffs
    }

    /// What the session has cost.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// What is known of its servers, in order.
    pub fn servers(&self) -> &[ServerState] {
        &self.servers
    }

    /// Rounds asked so far.
    pub fn asked(&self) -> u64 {
        self.asked
    }

    /// Whether a turn is under way.
    pub fn is_busy(&self) -> bool {
        self.turn.is_some()
    }

    /// Whether its client has deleted it.
    pub fn is_deleted(&self) -> bool {
        self.deleted
    }

    /// The request that a prompt now would send, were its text `text`: for checks after a recovery.
    pub fn next_request(&self, text: &str) -> Rope {
        let (mut next, model) = (self.clone(), self.model());
        next.encode_for(&self.opened.settings.route(&model, self.upgraded));
        next.encoder.push(&[Item::User(text.to_owned())]);
        next.encoder.request(&model, next.tools.as_ref()).rope
    }

    /// The bytes of the last request.
    pub fn previous_request(&self) -> &Rope {
        &self.previous
    }

    /// Takes what is to be done, in order.
    pub fn take_outbox(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.outbox)
    }

    /// The model that a turn that starts now would use.
    pub(super) fn model(&self) -> String {
        self.model_override.clone().unwrap_or_else(|| self.opened.settings.model.clone())
    }

    pub(super) fn limits(&self) -> ResultLimits {
        ResultLimits {
            text_bytes: self.opened.settings.max_tool_result_text_bytes,
            total_bytes: RESULT_TOTAL_MAX_BYTES,
        }
    }

    /// Whether the model may be shown `tool` now.
    pub(super) fn is_offered(&self, tool: &Tool) -> bool {
        let offers = |server: &ServerState| !server.exhausted && server.tools.contains(&tool.bare);
        !tool.hook && self.servers.get(tool.server).is_some_and(offers)
    }

    pub(super) fn encode_tools(&mut self) {
        let load_skill = (!self.opened.skills.is_empty()).then(skills::tool);
        let servers = self.opened.catalogue.tools.iter().filter(|tool| self.is_offered(tool));
        let offered: Vec<&Tool> = servers.chain(&load_skill).collect();
        self.tools = self.encoder.encode_tools(&offered);
    }

    /// Makes sure that the history is encoded in the form that `route` wants.
    pub(super) fn encode_for(&mut self, route: &Route) {
        let effort = self.opened.settings.effort;
        if self.encoder.form() != route.form || self.encoder.effort() != effort {
            self.encoder = Encoder::new(route.form, &self.opened.settings, &self.system_prompt);
            self.encoder.push(self.history.items());
            self.encode_tools();
        }
    }

    pub(super) fn say(&mut self, line: Line) {
        self.said.add(&line);
        self.outbox.push(Effect::Say(line));
    }

    /// The oldest items leave the history.
    pub(super) fn forget(&mut self, items: usize) {
        self.history.drop_front(items);
        self.encoder.drop_front(items);
    }

    /// Appends items to the history; results of one round come together.
    pub(super) fn remember(&mut self, items: Vec<Item>) {
        self.encoder.push(&items);
        items.into_iter().for_each(|item| self.history.push(item));
    }
}
