//! What happened to a server, as the log keeps it.

use serde::{Deserialize, Serialize};

/// A change in the life of an MCP server, seen while a call was made to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerEvent {
    /// It is gone, by itself or killed after a timeout.
    Died {
        /// How that showed.
        reason: String,
        /// Failures in a row so far. A death between calls is none, so it is 0 then.
        attempt: u32,
        /// When it may be started again, in milliseconds; 0 is at once.
        retry_in_ms: u64,
    },
    /// It runs again.
    Restarted {
        /// The tools it lists now, by their names towards it. Those it does not list are hidden.
        tools: Vec<String>,
    },
    /// It could not be started again.
    RestartFailed {
        /// Why.
        reason: String,
        /// Failures in a row so far.
        attempt: u32,
        /// When the next try may be, in milliseconds.
        retry_in_ms: u64,
    },
    /// It is given up: its tools are gone for the rest of the session.
    Exhausted,
}
