//! The pure engine of Waxlog: what a session is, as a fold over its records.
//!
//! > **Append, then fold, then act.** Nothing leaves the process (a model request, a tool call, a line to
//! > the client) before the record that caused it is flushed to the log; and nothing is decided from
//! > anything but the fold of the log.
//!
//! The driver's side of this is a loop: take an input, [`session::Session::admit`] it, append the record,
//! [`session::Session::fold`] it, append and fold what [`session::Session::decide`] says until it says
//! nothing more, flush, then do what [`session::Session::take_outbox`] holds. The outcomes are the next
//! inputs.
//!
//! Nothing here knows the time, draws a random number, reads a file or waits: what would need it is a
//! field of a record. This crate's dependencies and its `clippy.toml` hold it to that.

pub mod acp;
pub mod connection;
pub mod content;
pub mod dialect;
pub mod effort;
pub mod evidence;
pub mod guard;
pub mod handoff;
pub mod history;
pub mod json;
pub mod ledger;
pub mod mcp;
pub mod mesh;
pub mod provider;
pub mod record;
pub mod replay;
pub mod retry;
pub mod rope;
pub mod said;
pub mod secret;
pub mod session;
pub mod settings;
pub mod skills;
pub mod usage;
