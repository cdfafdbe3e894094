//! The agent process: ACP on stdio, a model over HTTP, tools over MCP.
//!
//! [`serve::serve`] is the whole of it. Inside, `driver` carries out what the fold of a session says,
//! `journal` writes its records, `endpoint` and `http` reach the model, `mcp` holds the tool servers,
//! `recovery` closes what a kill left open.

pub mod auth;
pub mod config;
pub mod driver;
pub mod endpoint;
pub mod hints;
pub mod hooks;
pub mod http;
pub mod ids;
pub mod journal;
pub mod leftovers;
pub mod listing;
pub mod mcp;
pub mod mesh;
pub mod models;
pub mod opening;
pub mod recovery;
pub mod scrub;
pub use waxlog_core::secret;
pub mod serve;
pub mod skills;
pub mod slot;
pub mod stdio;
