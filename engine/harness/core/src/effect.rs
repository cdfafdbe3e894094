//! Effects: what the driver does, in this order, once the record that caused them is flushed.

use serde::Serialize;
use serde_json::Value;
use waxlog_nostr::{Draft, PublicKey};

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Effect {
    /// Open a socket to the relay. Comes back as `RelayOpened` or `RelayRefused`.
    Connect {
        /// The number of the connection, from 1.
        link: u64,
    },
    /// Answer the relay's challenge.
    Authenticate {
        /// The connection.
        link: u64,
        /// The challenge.
        challenge: String,
    },
    /// Send a frame as it is.
    Send {
        /// The connection.
        link: u64,
        /// The frame.
        frame: String,
    },
    /// Send a ping.
    Ping {
        /// The connection.
        link: u64,
    },
    /// Drop the connection; `clean` ends it with a close frame.
    Disconnect {
        /// The connection.
        link: u64,
        /// Whether to say good-bye.
        clean: bool,
    },
    /// Sign an event and send it over the socket. Nothing comes back but the relay's OK.
    PublishFrame {
        /// The connection.
        link: u64,
        /// What to sign.
        draft: Unsigned,
    },
    /// Sign an event and submit it over HTTP. Best effort: nothing comes back.
    Submit {
        /// What to sign.
        draft: Unsigned,
        /// All attempts together must end within this.
        budget_ms: u64,
    },
    /// Withdraw own reactions with this content on an event: find them, then delete them. Best effort.
    Unreact {
        /// The event, in hex.
        event: String,
        /// The reaction's content.
        content: String,
        /// Each of the two requests must end within this.
        budget_ms: u64,
    },
    /// Ask the relay over HTTP. Comes back as `QueryAnswered`.
    Query {
        /// The query's number.
        query: u64,
        /// `/query` or `/count`.
        path: &'static str,
        /// The filters.
        filters: Vec<Value>,
        /// How one attempt ends.
        timeout_ms: u64,
        /// How many further attempts there are after a failure or, for a query, an empty answer.
        retries: u32,
        /// The wait before a further attempt.
        wait_ms: u64,
    },
    /// Read the agent's core memory. Comes back as `MemoryRead`.
    ReadMemory {
        /// The query's number.
        query: u64,
        /// Whose agent it is.
        owner: PublicKey,
        /// How it ends.
        timeout_ms: u64,
    },
    /// Start an agent process. Comes back as `AgentSpawned` or `AgentNotSpawned`.
    Spawn {
        /// The number of the child, from 1.
        child: u64,
        /// The slot it is for, from 0.
        slot: usize,
    },
    /// Write a line to an agent. `${BUZZ_PRIVATE_KEY}` in it stands for the secret.
    Write {
        /// The child.
        child: u64,
        /// The line without its end.
        line: String,
    },
    /// End an agent's process group, and wait for it.
    Kill {
        /// The child.
        child: u64,
    },
    /// Look into our own agent's log for what a session has cost. Comes back as `UsageFound`.
    FindUsage {
        /// The interrupted turn.
        turn: String,
        /// The agent's session.
        session: String,
        /// The slot of the agent.
        slot: usize,
    },
    /// Encrypt and sign a usage event. Comes back as `MetricSealed`.
    SealMetric {
        /// The turn it tells of.
        turn: String,
        /// The payload, in the order of its keys.
        payload: String,
        /// Whom it is encrypted to.
        owner: PublicKey,
        /// The event's time, in seconds.
        created_at: u64,
    },
    /// Send a sealed usage event. Comes back as `MetricSent`.
    SendMetric {
        /// The turn it tells of.
        turn: String,
        /// The event as it was sealed.
        event: String,
        /// All attempts together must end within this.
        budget_ms: u64,
    },
    /// Encrypt, sign and send an observer frame to the owner.
    Observe {
        /// The connection.
        link: u64,
        /// The frame's plaintext.
        frame: String,
    },
    /// Open a control frame of the owner. Comes back as `ControlOpened`.
    OpenControl {
        /// The event as JSON; it is verified.
        event: String,
    },
    /// Say something to the operator.
    Tell {
        /// How serious it is.
        level: Level,
        /// What.
        text: String,
    },
    /// End the process.
    Exit {
        /// Its code.
        code: i32,
    },
}

/// How serious a word to the operator is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Level {
    /// Something failed.
    Error,
    /// Something is odd.
    Warn,
    /// Something happened.
    Info,
    /// Something for who looks for a fault.
    Debug,
}

/// An event before it is signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unsigned {
    /// The kind.
    pub kind: u16,
    /// The tags.
    pub tags: Vec<Vec<String>>,
    /// The text.
    pub content: String,
    /// Seconds since 1970.
    pub created_at: u64,
}

impl From<Draft> for Unsigned {
    fn from(draft: Draft) -> Self {
        let Draft { kind, tags, content, created_at } = draft;
        Self { kind, tags, content, created_at }
    }
}

impl From<Unsigned> for Draft {
    fn from(draft: Unsigned) -> Self {
        let Unsigned { kind, tags, content, created_at } = draft;
        Self { kind, tags, content, created_at }
    }
}
