//! A simulated driver for the core, and fuzz targets for the bytes that reach it from outside.
//!
//! A run is one session, driven the way the agent's driver drives it: append, fold, decide until nothing
//! follows, flush, act. Everything else is simulated: a log with a live and a durable half, a clock that
//! jumps, a model, tool servers, a client, and what goes wrong with each of them. One seed gives one run,
//! always the same, and [`checks`] hold it against the rules of [`violation::Invariant`].
//!
//! ```
//! use waxlog_sim::life::run;
//! use waxlog_sim::world::Sabotage;
//!
//! let report = run(7, Sabotage::None, &mut waxlog_sim::trace::Trace::off());
//! assert!(report.is_ok());
//! ```
//!
//! [`sweep`] runs many seeds side by side. [`fuzz`] is apart from all this: targets as plain functions of
//! bytes, with a runner that mutates a kept corpus.

pub mod checks;
pub mod client;
pub mod dice;
pub mod driver;
pub mod fuzz;
pub mod life;
pub mod log;
pub mod model;
pub mod process;
pub mod schedule;
pub mod servers;
pub mod setup;
pub mod sweep;
pub mod trace;
pub mod violation;
pub mod world;
