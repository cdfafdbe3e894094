//! What the driver must do once the records that caused it are durable.

use serde_json::Value;

use crate::acp::lines::Line;
use crate::record::Hook;
use crate::rope::Rope;

/// One thing to do, in the order of the outbox.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Write a line to the client.
    Say(Line),
    /// Send a request to the model's endpoint.
    Ask {
        /// The round within the session; the answer comes back under it.
        asked: u64,
        /// Whether this is the first attempt: the clock of error texts starts.
        first: bool,
        /// Whether the client hears that it is being waited for.
        keepalive: bool,
        /// How long to wait before, in milliseconds.
        after_ms: u64,
        /// Where it goes, below the base URL.
        path: String,
        /// The exact bytes.
        body: Rope,
    },
    /// Find out whether the mesh may be asked; the finding comes back as an input.
    SeekMesh {
        /// The request within the session that waits for it.
        asked: u64,
    },
    /// The mesh failed: it is left alone for a while, by all sessions.
    MeshFailed,
    /// Give up the request under way.
    StopAsking,
    /// Call a tool.
    Call {
        /// The round within the session.
        asked: u64,
        /// Which call of the round.
        index: usize,
        /// The server within the session.
        server: usize,
        /// The qualified tool name, for texts.
        tool: String,
        /// The tool's name at its server.
        bare: String,
        /// The arguments, an object.
        arguments: Value,
    },
    /// Read a skill for a call.
    LoadSkill {
        /// The round within the session.
        asked: u64,
        /// Which call of the round.
        index: usize,
        /// What is to be loaded: a skill's name, or a name, a slash and a file's path.
        name: Option<String>,
    },
    /// The client has been asked whether a call may run: bound the wait for its answer.
    AwaitPermission {
        /// The round within the session; the end of the wait comes back under it.
        asked: u64,
        /// Which call of the round.
        index: usize,
    },
    /// That wait is over.
    PermissionSettled,
    /// Tell the calls under way to stop; an expired drain comes back as an input.
    StopCalls {
        /// The round within the session.
        asked: u64,
    },
    /// Forget the calls under way: their time is over.
    AbortCalls,
    /// Run a hook on servers, side by side.
    RunHooks {
        /// The round within the session; the outcome comes back under it.
        asked: u64,
        /// Which hook.
        hook: Hook,
        /// The servers, by index.
        servers: Vec<usize>,
    },
    /// Kill a server that no longer answers its hooks.
    KillServer {
        /// The server, by index.
        server: usize,
        /// Why.
        reason: String,
    },
    /// The endpoint wants the Responses wire: sessions opened from now on start with it.
    Upgraded,
    /// Something for the operator's log.
    Inform(String),
    /// Something that the operator should look into.
    Warn(String),
    /// The session is closed: its servers are taken down.
    Close,
    /// A turn is over: what is in the log must survive a power loss before more is said.
    Settle,
}
