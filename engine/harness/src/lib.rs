//! The harness: between a relay and the agents that speak on it.
//!
//! All it knows is the fold of its log ([`waxlog_harness_core::Machine`]). This crate is the driver: it takes
//! occurrences from the relay, the agents and the clock, appends each, folds it, flushes, and does what
//! follows.

mod agents;
pub mod config;
mod driver;
mod effects;
mod http;
mod journal;
mod memory;
mod options;
mod relay;
mod rules_file;
mod usage_log;

pub use config::{Config, ConfigError, Options, Secrets, Surroundings};
pub use driver::{run, RunError};
pub use journal::{read as read_log, STREAM};
