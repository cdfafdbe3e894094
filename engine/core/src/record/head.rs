//! What happened: the head of every kind of record of a session.

use serde::{Deserialize, Serialize};

use crate::acp::frame::Id;
use crate::dialect::Dialect;
use crate::evidence::Evidence;
use crate::mcp::ServerEvent;

use super::outcome::{
    CallOutcome, Failure, Hook, HookOutcome, Objection, Outcome, PermissionAnswer, StartedCall,
};
use super::session::{SessionOpened, SessionOption};

/// What happened. The names are the record kinds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "head", rename_all = "snake_case")]
pub enum Head {
    /// Input. A session began. Raw: its system prompt.
    SessionOpened(Box<SessionOpened>),
    /// Input. A session came back, in this process or a later one, with new servers and settings. Its prompt
    /// stays as it was.
    SessionResumed {
        /// What is new.
        opened: Box<SessionOpened>,
        /// Whether the client is told the history.
        tells_history: bool,
    },
    /// Input. The client set an option for later prompts. Raw: the line.
    OptionSelected {
        /// The request.
        id: Id,
        /// Which option.
        option: SessionOption,
        /// The value.
        value: String,
    },
    /// Input. The client wants to be rid of the session. Raw: the line.
    CloseRequested {
        /// The request.
        id: Id,
    },
    /// Decision. The session is closed; it may come back.
    SessionClosed {
        /// The request.
        id: Id,
    },
    /// Input. The client wants the session off its list for good. Raw: the line, if the session was open.
    DeleteRequested {
        /// The request; `None` if the connection answers it.
        id: Option<Id>,
    },
    /// Decision. The session is off the list and comes back no more. Its records stay: the log only grows.
    SessionDeleted {
        /// The request; `None` if the connection answers it.
        id: Option<Id>,
    },
    /// Input. A prompt was accepted and a turn began. Raw: the line.
    TurnPrompted {
        /// The request to answer at the end.
        id: Id,
        /// The turn's id.
        turn: String,
        /// The run id that steers name.
        run: String,
    },
    /// Input. A line was refused. Raw: the line.
    LineRefused {
        /// The request.
        id: Id,
        /// The error code told.
        code: i64,
        /// The text told.
        message: String,
    },
    /// Input. A steer was accepted for the running turn. Raw: the line.
    SteerAccepted {
        /// The request.
        id: Id,
        /// The id given to the steer.
        message: String,
    },
    /// Input. The client wants the running turn to end. Raw: the line.
    CancelRequested {
        /// The request, if it was one and not a notification.
        id: Option<Id>,
    },
    /// Input. The client chose a model for later prompts. Raw: the line.
    ModelSelected {
        /// The request.
        id: Id,
        /// The model.
        model: String,
    },
    /// Decision. Queued steers enter the history at a round's boundary.
    SteersApplied {
        /// How many left the queue; blank ones and ones with unsupported blocks add nothing.
        count: usize,
    },
    /// Decision. The oldest items leave the history, which is over its budget.
    HistoryTruncated {
        /// How many.
        items: usize,
        /// Their size in bytes.
        bytes: u64,
    },
    /// Decision. Before a request for the model `auto`, the mesh that may stand in for it is looked for.
    MeshSought {
        /// The request within the session that waits for it.
        asked: u64,
    },
    /// Input. The mesh was looked for. Raw: the endpoint's list of models, if it was asked for one now and
    /// gave it.
    MeshAnswered {
        /// The request within the session that waits for it.
        asked: u64,
        /// Whether the mesh is asked instead.
        available: bool,
    },
    /// Decision. A request goes to the model. Raw: the new bytes of the evidence.
    RoundAsked {
        /// The round within the turn, from 1.
        round: u32,
        /// The round within the session, from 1.
        asked: u64,
        /// The model asked.
        model: String,
        /// Where it goes, below the base URL.
        path: String,
        /// The wire format.
        dialect: Dialect,
        /// The request's bytes.
        evidence: Evidence,
        /// Digests of the lines said since the last decision.
        said: Vec<String>,
    },
    /// Decision. The model is asked to sum the session up. Raw: the request, whole.
    SummaryAsked {
        /// The request within the session, counted with the rounds.
        asked: u64,
        /// The model asked.
        model: String,
        /// Where it goes, below the base URL.
        path: String,
        /// The wire format.
        dialect: Dialect,
        /// The request's bytes; they share nothing with other requests.
        evidence: Evidence,
        /// Digests of the lines said since the last decision.
        said: Vec<String>,
    },
    /// Decision. A summary replaces the history. Raw: the item that stands for everything before.
    HandoffDone {
        /// How many handoffs the session has had, this one included.
        count: u64,
        /// Items of the history before and after.
        items: (usize, usize),
        /// Pressure bytes of the history before and after.
        bytes: (u64, u64),
    },
    /// Decision. Hooks are run.
    HooksAsked {
        /// The round within the session; the outcome comes back under it.
        asked: u64,
        /// Which hook.
        hook: Hook,
        /// The servers that have it, by index.
        servers: Vec<usize>,
    },
    /// Input. The hooks were run. Raw: the servers' answer lines, one after the other.
    HooksFinished {
        /// The round within the session.
        asked: u64,
        /// Which hook.
        hook: Hook,
        /// The servers, by index.
        servers: Vec<usize>,
        /// What came of each, in that order.
        outcomes: Vec<HookOutcome>,
    },
    /// Decision. The turn must not end yet.
    EndObjected {
        /// Who objects, with which words, as the history takes them.
        objections: Vec<Objection>,
        /// Whether the last one is the reply guard's reminder.
        reminder: bool,
    },
    /// Input. The model's endpoint answered with a good status. Raw: the body.
    RoundAnswered {
        /// The round within the session.
        asked: u64,
        /// The HTTP status.
        status: u16,
        /// The headers that matter.
        headers: Vec<(String, String)>,
        /// Milliseconds since the first attempt began.
        elapsed_ms: u64,
        /// The draw for a retry's back-off, 0 to 999.
        jitter_permille: u16,
    },
    /// Input. An attempt gave no good answer. Raw: the first bytes of the body, if there was one.
    AttemptFailed {
        /// The round within the session.
        asked: u64,
        /// What went wrong.
        failure: Failure,
        /// The headers that matter, if there was an answer.
        headers: Vec<(String, String)>,
        /// How long the endpoint asks to wait, in milliseconds, if it does.
        retry_after_ms: Option<u64>,
        /// Milliseconds since the first attempt began.
        elapsed_ms: u64,
        /// The draw for the back-off, 0 to 999.
        jitter_permille: u16,
    },
    /// Decision. The client is asked whether a call may run.
    PermissionAsked {
        /// The round within the session.
        asked: u64,
        /// Which call of the round, from 0.
        index: usize,
        /// Digests of the lines said since the last decision.
        said: Vec<String>,
    },
    /// Input. The client answered that. Raw: the line.
    PermissionAnswered {
        /// The round within the session.
        asked: u64,
        /// Which call of the round, from 0.
        index: usize,
        /// What it said.
        answer: PermissionAnswer,
    },
    /// Input. The client did not answer that in time.
    PermissionExpired {
        /// The round within the session.
        asked: u64,
        /// Which call of the round, from 0.
        index: usize,
        /// The limit in seconds.
        after_secs: u64,
    },
    /// Decision. Calls start.
    CallsStarted {
        /// Which, in call order.
        calls: Vec<StartedCall>,
        /// Digests of the lines said since the last decision.
        said: Vec<String>,
    },
    /// Input. A started call ended. Raw: the server's answer line, if one came.
    CallFinished {
        /// The round within the session.
        asked: u64,
        /// Which call of the round, from 0.
        index: usize,
        /// How it ended.
        outcome: CallOutcome,
        /// Milliseconds since it was started.
        elapsed_ms: u64,
    },
    /// Input. A skill was read for a `load_skill` call. Raw: what the model is shown.
    SkillLoaded {
        /// The round within the session.
        asked: u64,
        /// Which call of the round, from 0.
        index: usize,
        /// Whether it could not be had; the text says why.
        is_error: bool,
    },
    /// Input. Calls that were told to stop had their time.
    DrainExpired {
        /// The round within the session.
        asked: u64,
    },
    /// Input. A server died, came back or was given up.
    ServerChanged {
        /// Which server of the session, from 0.
        server: usize,
        /// What became of it.
        change: ServerEvent,
    },
    /// Input. The model has been silent for another keepalive period.
    KeepaliveTicked {
        /// The round within the session.
        asked: u64,
    },
    /// Decision. The turn is over.
    TurnEnded {
        /// How.
        outcome: Outcome,
        /// Digests of the lines said since the last decision, this one's own included.
        said: Vec<String>,
    },
    /// Input of a later process. The turn was found without an end.
    TurnInterrupted {
        /// Digests of the lines of the turn since its last decision.
        said: Vec<String>,
    },
}
