//! The developer's tool server: an MCP server on stdio in place of `buzz-dev-mcp`.
//!
//! It runs commands, shows and changes files, keeps a todo list and shows pictures, for one client in one
//! folder. Under other names the same program is what commands find first on their `PATH`: a search, a listing,
//! git's helpers.
//!
//! What a command starts ends with it, what a server starts ends with the server, however either ends. A
//! secret reaches a command only if it was meant for commands.

mod catalogue;
mod files;
pub mod git;
mod guard;
mod image;
mod instructions;
pub mod search;
mod server;
mod shell;
mod shims;
mod start;
mod todo;
mod tool;
mod variables;

pub use guard::{stand, GUARD_LINK};
pub use server::Served;
pub use start::{serve, ServeError};
