//! Records: what happened to the harness, in the order in which it was dealt with.

use serde::{Deserialize, Serialize};
use waxlog_core::record::{decode_tagged, encode_tagged, RecordError};

use crate::settings::Settings;

/// The version that this code writes for every kind.
pub const RECORD_VERSION: u16 = 1;

/// One record of the harness's stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// When, in milliseconds since 1970. Never less than in the record before.
    pub at_ms: u64,
    /// What happened, and what the driver drew for it.
    pub head: Head,
    /// The exact bytes that belong to it; what they are stands at each [`Happened`].
    pub raw: Vec<u8>,
}

/// The typed part of a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// Randomness drawn for this record: ids and jitter are made from it.
    pub seed: u64,
    /// The digest of all effects before this record, in hex: replay finds the first that differs.
    pub trail: String,
    /// What happened.
    pub happened: Happened,
}

/// What happened. The names are the record kinds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "head", rename_all = "snake_case")]
pub enum Happened {
    /// The process began, with these settings. What an earlier process left open is settled by this record.
    ProcessStarted {
        /// All that was set, secrets left out.
        settings: Box<Settings>,
        /// The process.
        pid: u32,
    },
    /// A socket to the relay is open.
    RelayOpened,
    /// No socket could be opened.
    RelayRefused {
        /// Whether another try may help.
        class: LinkFailure,
        /// What the transport says.
        reason: String,
    },
    /// A frame came. Raw: its text.
    RelayFrame {
        /// Which connection it came on, from 1.
        link: u64,
        /// Why the event in it is not what it says it is, if its checks failed.
        forged: Option<String>,
    },
    /// The connection is gone.
    RelayLost {
        /// Which connection.
        link: u64,
        /// Why.
        reason: String,
    },
    /// The relay has answered a ping.
    RelayPonged {
        /// Which connection.
        link: u64,
    },
    /// A query or count over HTTP has ended. Raw: the answer's body.
    QueryAnswered {
        /// Which query.
        query: u64,
        /// What came of it.
        outcome: HttpOutcome,
        /// The events of the answer that are not what they say they are, in hex.
        forged: Vec<String>,
    },
    /// The agent's memory was read. Raw: its text, if it has one.
    MemoryRead {
        /// Which query.
        query: u64,
        /// What was there.
        found: MemoryFound,
    },
    /// An agent process runs.
    AgentSpawned {
        /// The child, counted over the log.
        child: u64,
        /// Its process.
        pid: u32,
    },
    /// An agent process could not be started.
    AgentNotSpawned {
        /// The child.
        child: u64,
        /// Why.
        reason: String,
    },
    /// An agent has written a line. Raw: the line without its end.
    AgentLine {
        /// The child.
        child: u64,
    },
    /// An agent has ended, or can no longer be spoken with.
    AgentEnded {
        /// The child.
        child: u64,
        /// How.
        how: AgentEnd,
    },
    /// A time that the fold waits for has come.
    TimePassed,
    /// A usage event was signed. Raw: the event as JSON, which is from now on the only form that is sent.
    MetricSealed {
        /// The turn it tells of.
        turn: String,
    },
    /// An attempt to send a usage event has ended.
    MetricSent {
        /// The turn it tells of.
        turn: String,
        /// What came of it.
        outcome: HttpOutcome,
    },
    /// The log of our own agent was looked into for what an interrupted turn has cost. Raw: the parameters of
    /// the report that the agent would have sent.
    UsageFound {
        /// The turn.
        turn: String,
        /// Whether anything was found.
        is_known: bool,
    },
    /// An observer frame from the owner was opened. Raw: its plaintext.
    ControlOpened,
    /// The process is to end.
    StopAsked {
        /// What asked: the name of a signal, or the owner's command.
        by: String,
    },
}

/// Why a connection could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkFailure {
    /// No further try will help.
    Terminal,
    /// The name was not found; this may pass.
    Dns,
    /// This may pass.
    Transient,
}

/// What came of an HTTP request, all its attempts taken together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpOutcome {
    /// A status and a body.
    Answered {
        /// The status.
        status: u16,
    },
    /// No answer.
    Failed {
        /// Why.
        reason: String,
    },
    /// No answer in time.
    TimedOut,
}

/// What was found of an agent's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryFound {
    /// There is none yet.
    Nothing,
    /// There is something, and it is readable.
    Text,
    /// There is something that cannot be opened, or the relay did not answer.
    Unreadable,
}

/// How an agent process was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentEnd {
    /// It closed its output.
    Exited {
        /// Its exit code, if it ended by itself.
        code: Option<i32>,
    },
    /// A line could not be written to it.
    WriteFailed {
        /// Why.
        reason: String,
    },
    /// A line over the limit came.
    LineTooLong {
        /// The limit.
        limit_bytes: usize,
    },
}

impl Record {
    /// The kind and the head as JSON, as they are stored.
    pub fn encode_head(&self) -> (String, Vec<u8>) {
        let (kind, happened) = encode_tagged(&self.head.happened);
        let happened: serde_json::Value = serde_json::from_slice(&happened).unwrap_or_default();
        let head =
            serde_json::json!({"seed": self.head.seed, "trail": self.head.trail, "happened": happened});
        (kind, head.to_string().into_bytes())
    }

    /// Reads a stored record.
    pub fn decode(
        kind: &str,
        version: u16,
        at_ms: u64,
        head: &[u8],
        raw: Vec<u8>,
    ) -> Result<Record, RecordError> {
        let malformed = |error: &dyn ToString| RecordError::Malformed {
            kind: kind.to_owned(),
            reason: error.to_string(),
        };
        let stored: Stored = serde_json::from_slice(head).map_err(|error| malformed(&error))?;
        let happened = decode_tagged(&KINDS, kind, version, stored.happened.get().as_bytes())?;
        Ok(Record { at_ms, head: Head { seed: stored.seed, trail: stored.trail, happened }, raw })
    }
}

#[derive(Deserialize)]
struct Stored {
    seed: u64,
    trail: String,
    happened: Box<serde_json::value::RawValue>,
}

/// The kinds of [`Happened`].
const KINDS: [&str; 18] = [
    "process_started",
    "relay_opened",
    "relay_refused",
    "relay_frame",
    "relay_lost",
    "relay_ponged",
    "query_answered",
    "memory_read",
    "agent_spawned",
    "agent_not_spawned",
    "agent_line",
    "agent_ended",
    "time_passed",
    "metric_sealed",
    "metric_sent",
    "usage_found",
    "control_opened",
    "stop_asked",
];
