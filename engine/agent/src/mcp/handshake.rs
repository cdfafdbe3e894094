//! Bringing a server up: process, handshake, tools.

use std::future::Future;
use std::io;
use std::time::Duration;

use async_std::future::timeout;
use serde_json::Value;
use thiserror::Error;
use waxlog_core::json::compact;
use waxlog_core::mcp::{
    decode, encode, CatalogueError, Inbound, ListingError, Outcome, RpcError, ToolSpec, ToolsPage, TOOLS_MAX,
};

use super::child::{ChildGroup, ServerSpec};
use super::connection::{Connection, Ended};
use crate::config::Environment;

/// Why a server, and with it its session, cannot be had.
#[derive(Debug, Error)]
pub enum StartError {
    /// Its program cannot be started.
    #[error("mcp: spawn {server}: cannot start {command:?}: {error}")]
    Spawn {
        /// The server.
        server: String,
        /// The program.
        command: String,
        /// What the system says.
        error: io::Error,
    },
    /// It did not come up.
    #[error("mcp: {stage} {server}: {reason}")]
    Stage {
        /// How far it came: `init` or `list_tools`.
        stage: &'static str,
        /// The server.
        server: String,
        /// What went wrong.
        reason: StageError,
    },
    /// The session cannot have it or its tools.
    #[error("mcp: {0}")]
    Catalogue(#[from] CatalogueError),
}

/// What can go wrong with a server that was started.
#[derive(Debug, Error)]
pub enum StageError {
    /// It took too long.
    #[error("timeout after {after_secs}s; the server did not answer in time")]
    Timeout {
        /// The limit, in seconds.
        after_secs: u64,
    },
    /// It went away.
    #[error("{0}")]
    Ended(String),
    /// It refused.
    #[error("server answered with error {code}: {message}")]
    Refused {
        /// The JSON-RPC code.
        code: i64,
        /// The server's words.
        message: String,
    },
    /// Its list of tools cannot be read.
    #[error(transparent)]
    Listing(#[from] ListingError),
}

/// A server that is up.
pub(super) struct Ready {
    pub(super) connection: Connection,
    pub(super) tools: Vec<ToolSpec>,
}

/// Starts the server and asks for its tools, with `limit` for the handshake and again for the listing.
/// Whatever goes wrong, and if the future is dropped, its process group is killed.
pub(super) async fn connect(
    spec: &ServerSpec,
    env: &Environment,
    limit: Duration,
) -> Result<Ready, StartError> {
    let (group, stdin, stdout) = ChildGroup::spawn(spec, env).map_err(|error| StartError::Spawn {
        server: spec.name.clone(),
        command: spec.command.clone(),
        error,
    })?;
    let connection = Connection::new(group, stdin, stdout);
    let failed = |stage| {
        let server = spec.name.clone();
        move |reason| StartError::Stage { stage, server, reason }
    };
    within(limit, initialize(&connection)).await.map_err(failed("init"))?;
    let tools = within(limit, list_tools(&connection)).await.map_err(failed("list_tools"))?;
    Ok(Ready { connection, tools })
}

async fn within<T>(
    limit: Duration,
    stage: impl Future<Output = Result<T, StageError>>,
) -> Result<T, StageError> {
    let after_secs = limit.as_secs();
    timeout(limit, stage).await.unwrap_or(Err(StageError::Timeout { after_secs }))
}

async fn initialize(connection: &Connection) -> Result<(), StageError> {
    let request = connection.open()?;
    result(&request.exchange(encode::initialize()).await?)?;
    connection.handshake_done();
    connection.notify(encode::initialized()).await;
    Ok(())
}

async fn list_tools(connection: &Connection) -> Result<Vec<ToolSpec>, StageError> {
    let mut tools = Vec::new();
    let mut cursor = None;
    loop {
        let request = connection.open()?;
        let line = encode::tools_list(request.id(), cursor.as_deref());
        let page = ToolsPage::read(result(&request.exchange(line).await?)?)?;
        tools.extend(page.tools);
        cursor = page.next_cursor;
        // Beyond the limit the session is refused anyway: a listing without end is not read to its end.
        if cursor.is_none() || tools.len() > TOOLS_MAX {
            return Ok(tools);
        }
    }
}

fn result(line: &[u8]) -> Result<Value, StageError> {
    match decode(line) {
        Inbound::Response { outcome, .. } => match outcome {
            Outcome::Result(result) => Ok(result),
            Outcome::Error(error) => Err(refused(error)),
        },
        _ => Ok(Value::Null),
    }
}

fn refused(error: RpcError) -> StageError {
    let mut message = error.message;
    if let Some(data) = error.data {
        message.push_str(&format!(" ({})", compact(&data)));
    }
    let code = error.code;
    StageError::Refused { code, message }
}

impl From<Ended> for StageError {
    fn from(ended: Ended) -> Self {
        StageError::Ended(ended.reason)
    }
}
