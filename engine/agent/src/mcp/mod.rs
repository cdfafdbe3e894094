//! MCP servers as child processes: brought up with a session, called, restarted, and taken down.
//!
//! The frames themselves are built and read in [`waxlog_core::mcp`]; what an answer means is for the fold to
//! say, so a call returns the server's line as it came, to be recorded.

mod call;
mod cancel;
mod child;
mod connection;
mod handshake;
mod lines;
mod server;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use waxlog_core::mcp::{check_server_count, Catalogue, ToolSpec, TOOL_SCHEMA_MAX_BYTES};

pub use call::{CallOutcome, CallReport, CallRequest};
pub use cancel::{cancel_pair, CancelSignal, CancelSource};
pub use child::{ServerSpec, INHERITED_VARIABLES};
pub use handshake::{StageError, StartError};
pub use lines::MCP_LINE_MAX_BYTES;
pub use server::{Server, ServerSettings};

/// The servers of a session, all up. Dropping them kills their process groups.
#[derive(Debug)]
pub struct Servers {
    /// In the order of the catalogue, whose tools name their server by its index.
    pub list: Vec<Arc<Server>>,
    /// Their tools.
    pub catalogue: Catalogue,
}

impl Servers {
    /// Brings up one server after the other. The first that fails fails all: those that run are killed.
    pub async fn start(specs: Vec<ServerSpec>, settings: &ServerSettings) -> Result<Self, StartError> {
        check_server_count(specs.len())?;
        let mut servers = Self { list: Vec::with_capacity(specs.len()), catalogue: Catalogue::default() };
        for spec in specs {
            servers.catalogue.check_server(&spec.name)?;
            let (server, tools) = Server::start(spec, settings.clone()).await?;
            warn_of_schemas(server.name(), &tools);
            servers.catalogue.add(server.name(), tools)?;
            servers.list.push(Arc::new(server));
        }
        Ok(servers)
    }

    /// Takes all of them down, side by side, and leaves no process behind.
    pub async fn close(&self) {
        let closing: Vec<_> = self
            .list
            .iter()
            .map(|server| {
                let server = Arc::clone(server);
                async_std::task::spawn(async move { server.close().await })
            })
            .collect();
        for closed in closing {
            closed.await;
        }
    }
}

fn warn_of_schemas(server: &str, tools: &[ToolSpec]) {
    for tool in tools.iter().filter(|tool| tool.schema_is_oversized()) {
        log::warn!(
            "mcp: server {server}: the input schema of {} has more than {TOOL_SCHEMA_MAX_BYTES} bytes; the \
             model is offered an empty one",
            tool.name
        );
    }
}

/// Locks `mutex`. No code that holds one of these locks leaves anything half done if it panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
