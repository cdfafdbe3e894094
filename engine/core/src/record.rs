//! Records: everything that a session's state depends on, as it lies in the log.
//!
//! A record is a typed head, kept as JSON, and raw bytes for what must stay exact. Inputs are what came
//! from outside; decisions follow from the fold and are written down before they are acted on, so that
//! after a kill the log says what may have happened in the world.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::acp::blocks;
use crate::acp::frame::Id;
use crate::acp::params::ServerSpec;
use crate::acp::Profile;
use crate::dialect::Dialect;
use crate::evidence::Evidence;
use crate::mcp::{Catalogue, ServerEvent};
use crate::settings::Settings;

/// The version that this code writes for every kind.
pub const RECORD_VERSION: u16 = 1;

/// One record of a session's stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// What happened.
    pub head: Head,
    /// The exact bytes that belong to it; what they are stands at each [`Head`].
    pub raw: Vec<u8>,
}

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

/// The head of a session's first record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionOpened {
    /// The request to answer.
    pub id: Id,
    /// The session's id.
    pub session: String,
    /// Whose dialect the client speaks.
    pub profile: Profile,
    /// The working folder.
    pub cwd: String,
    /// The settings in force.
    pub settings: Settings,
    /// The servers as the client gave them, variables by name only.
    pub servers: Vec<ServerSpec>,
    /// Their tools.
    pub catalogue: Catalogue,
    /// Whether the endpoint is known to want the Responses wire, from another session of the process.
    pub upgraded: bool,
    /// The models that may be chosen, as far as the provider tells.
    pub models: Vec<String>,
    /// The files that went into the system prompt, in order.
    pub sources: Vec<Source>,
    /// The skills that the model may load, in order.
    pub skills: Vec<Skill>,
    /// The servers whose hooks may run, by index.
    pub hook_servers: Vec<usize>,
    /// Where the system prompt came from: `client`, `variable`, `file <path>` or `built-in`.
    pub prompt_source: String,
}

/// What a client may choose per session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionOption {
    /// The model.
    Model,
    /// The thinking effort.
    ThoughtLevel,
}

impl SessionOption {
    /// Its id on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            SessionOption::Model => "model",
            SessionOption::ThoughtLevel => "thought_level",
        }
    }
}

/// A file that went into the system prompt; its text stands there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Where it lay.
    pub path: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// SHA-256 of its content, in hex.
    pub sha256: String,
}

/// A skill as it was found when the session was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skill {
    /// The name that the model loads it by.
    pub name: String,
    /// What it is for, possibly empty.
    pub description: String,
    /// Its folder.
    pub folder: String,
    /// Its supporting files, relative to the folder, sorted.
    pub files: Vec<String>,
}

/// Why an attempt gave no good answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// The endpoint answered with another status than 2xx.
    Status {
        /// The status.
        status: u16,
        /// Its reason phrase.
        reason: String,
    },
    /// No token could be had, so nothing was sent.
    Auth {
        /// Why, and what to do.
        text: String,
    },
    /// Nothing came back: no connection, a time-out, a reset.
    Transport {
        /// What the library said, without secrets.
        text: String,
    },
    /// The request cannot be sent at all (a bad URL).
    Unsendable {
        /// Why.
        text: String,
    },
    /// A good status whose body broke off.
    BodyRead {
        /// What the library said.
        text: String,
    },
    /// A good status whose body is over the cap.
    TooLarge {
        /// The size, or what is known of it.
        text: String,
    },
}

/// One call of a [`Head::CallsStarted`]; its arguments stand in the answer that asked for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedCall {
    /// Which call of the round, from 0.
    pub index: usize,
    /// Its id.
    pub id: String,
    /// The qualified tool name.
    pub name: String,
    /// The server's name.
    pub server: String,
}

/// A point at which servers may have a say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hook {
    /// The model ended its turn.
    #[serde(rename = "_Stop")]
    Stop,
    /// A summary is about to replace the history.
    #[serde(rename = "_PostCompact")]
    PostCompact,
}

impl Hook {
    /// The bare tool name.
    pub fn as_str(self) -> &'static str {
        match self {
            Hook::Stop => "_Stop",
            Hook::PostCompact => "_PostCompact",
        }
    }
}

/// What came of one server's hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookOutcome {
    /// It answered; its line has so many bytes of the record's raw part.
    Returned {
        /// Length of the line.
        bytes: usize,
    },
    /// It was too slow. It may still be running.
    TimedOut,
    /// It could not be called.
    Failed {
        /// Why.
        text: String,
    },
}

/// One objection to the end of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objection {
    /// Who objects.
    pub server: String,
    /// The words.
    pub text: String,
    /// Its number within the session, from 0; part of the call id that it gets.
    pub ordinal: u64,
}

/// How a started call ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// The server answered; the line is the record's raw part.
    Returned,
    /// The server went away while the call was in flight.
    TransportFailed {
        /// What was seen.
        text: String,
    },
    /// It took too long, and its server was killed.
    TimedOut {
        /// The limit in seconds.
        after_secs: u64,
    },
    /// It was cancelled.
    Cancelled,
    /// It was never sent: the server is recovering, given up, or lacks the tool now.
    Unavailable {
        /// Which of these.
        text: String,
    },
    /// The agent was stopped while it ran, or before it could start.
    Interrupted,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// With a stop reason.
    Stopped(StopReason),
    /// With an error.
    Failed {
        /// The error code in the harness's numbers.
        code: i64,
        /// The text told.
        message: String,
    },
}

/// The stop reasons of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model was done.
    EndTurn,
    /// It hit its output limit.
    MaxTokens,
    /// It refused.
    Refusal,
    /// The round cap was reached.
    MaxTurnRequests,
    /// The client cancelled.
    Cancelled,
}

impl StopReason {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            StopReason::EndTurn => "end_turn",
            StopReason::MaxTokens => "max_tokens",
            StopReason::Refusal => "refusal",
            StopReason::MaxTurnRequests => "max_turn_requests",
            StopReason::Cancelled => "cancelled",
        }
    }
}

/// Why a stored record is none that this code knows.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A kind of a later release: kept, shown and passed over.
    #[error("record kind `{kind}` version {version} is not known to this version of waxlog")]
    Unknown {
        /// The kind.
        kind: String,
        /// Its version.
        version: u16,
    },
    /// The head does not have the shape of its kind.
    #[error("the head of a `{kind}` record cannot be read: {reason}")]
    Malformed {
        /// The kind.
        kind: String,
        /// What the parser says.
        reason: String,
    },
}

impl Record {
    /// A record without raw bytes.
    pub fn bare(head: Head) -> Record {
        Record { head, raw: Vec::new() }
    }

    /// Whether the record is a decision of the fold, which replay makes again.
    pub fn is_decision(&self) -> bool {
        matches!(
            self.head,
            Head::SteersApplied { .. }
                | Head::HistoryTruncated { .. }
                | Head::RoundAsked { .. }
                | Head::CallsStarted { .. }
                | Head::SummaryAsked { .. }
                | Head::HandoffDone { .. }
                | Head::HooksAsked { .. }
                | Head::EndObjected { .. }
                | Head::SessionClosed { .. }
                | Head::TurnEnded { .. }
        )
    }

    /// Whether a later process wrote the record to close what a kill left open.
    pub fn is_recovery(&self) -> bool {
        matches!(
            self.head,
            Head::TurnInterrupted { .. } | Head::CallFinished { outcome: CallOutcome::Interrupted, .. }
        )
    }

    /// The text of an accepted prompt, if the record is one and has one.
    pub fn prompt_text(&self) -> Option<String> {
        match (&self.head, crate::acp::frame::classify(&self.raw)) {
            (Head::TurnPrompted { .. }, crate::acp::frame::Frame::Request { params, .. }) => {
                blocks::text(&blocks::decode(params.get("prompt")).ok()?, Profile::Standard).ok()
            }
            _ => None,
        }
    }

    /// The kind and the head as JSON, as they are stored.
    pub fn encode_head(&self) -> (String, Vec<u8>) {
        encode_tagged(&self.head)
    }

    /// Reads a stored record.
    pub fn decode(kind: &str, version: u16, head: &[u8], raw: Vec<u8>) -> Result<Record, RecordError> {
        Ok(Record { head: decode_tagged(&KINDS, kind, version, head)?, raw })
    }
}

/// Splits an adjacently tagged head into its kind and its JSON.
pub(crate) fn encode_tagged<T: Serialize>(head: &T) -> (String, Vec<u8>) {
    // A head holds strings, numbers and lists of them only: it always has a JSON form.
    let value = serde_json::to_value(head).unwrap_or(Value::Null);
    let kind = value["kind"].as_str().unwrap_or_default().to_owned();
    (kind, value["head"].to_string().into_bytes())
}

/// The inverse of [`encode_tagged`] for the given kinds.
pub(crate) fn decode_tagged<T: serde::de::DeserializeOwned>(
    kinds: &[&str],
    kind: &str,
    version: u16,
    head: &[u8],
) -> Result<T, RecordError> {
    if version > RECORD_VERSION || !kinds.contains(&kind) {
        return Err(RecordError::Unknown { kind: kind.to_owned(), version });
    }
    let malformed =
        |e: serde_json::Error| RecordError::Malformed { kind: kind.to_owned(), reason: e.to_string() };
    let head: Value = serde_json::from_slice(head).map_err(malformed)?;
    serde_json::from_value(serde_json::json!({"kind": kind, "head": head})).map_err(malformed)
}

/// The kinds of [`Head`].
const KINDS: [&str; 28] = [
    "session_opened",
    "session_resumed",
    "option_selected",
    "close_requested",
    "session_closed",
    "turn_prompted",
    "line_refused",
    "steer_accepted",
    "cancel_requested",
    "model_selected",
    "steers_applied",
    "history_truncated",
    "round_asked",
    "summary_asked",
    "handoff_done",
    "hooks_asked",
    "hooks_finished",
    "end_objected",
    "round_answered",
    "attempt_failed",
    "calls_started",
    "call_finished",
    "skill_loaded",
    "drain_expired",
    "server_changed",
    "keepalive_ticked",
    "turn_ended",
    "turn_interrupted",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_as_it_was_stored() {
        let record = Record {
            head: Head::CallFinished {
                asked: 3,
                index: 1,
                outcome: CallOutcome::TimedOut { after_secs: 660 },
                elapsed_ms: 660_001,
            },
            raw: b"\xff\x00".to_vec(),
        };
        let (kind, head) = record.encode_head();
        assert_eq!(kind, "call_finished");
        let back = Record::decode(&kind, RECORD_VERSION, &head, record.raw.clone()).expect("known");
        assert_eq!(back, record);
    }

    #[test]
    fn c72_an_unknown_kind_or_a_later_version_is_told_apart_from_a_broken_one() {
        let decode = |kind, version, head: &[u8]| Record::decode(kind, version, head, Vec::new());
        assert!(matches!(decode("dream_had", 1, b"{}"), Err(RecordError::Unknown { .. })));
        assert!(matches!(decode("drain_expired", 2, b"{}"), Err(RecordError::Unknown { .. })));
        assert!(matches!(decode("drain_expired", 1, b"{}"), Err(RecordError::Malformed { .. })));
        assert!(matches!(decode("drain_expired", 1, b"{"), Err(RecordError::Malformed { .. })));
    }
}
