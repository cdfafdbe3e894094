//! The pure half of the harness: between a relay and its agents, as a fold over what happened.
//!
//! > **Append, then fold, then act.** Nothing leaves the process (a frame to the relay, a line to an agent, a
//! > published event) before the record that caused it is flushed to the log; and nothing is decided from
//! > anything but the fold of the log.
//!
//! The driver's side of this is a loop: [`Machine::admit`] turns an occurrence into a [`record::Record`], the
//! driver appends it, [`Machine::fold`] takes it, the driver flushes and then does what
//! [`Machine::take_effects`] holds. What comes of an effect is the next occurrence. Time and chance are
//! fields of a record.

pub mod acp;
pub mod command;
pub mod effect;
pub mod gate;
pub mod link;
pub mod machine;
pub mod prompt;
pub mod queue;
#[cfg(test)]
mod queue_tests;
pub mod record;
pub mod rules;
pub mod settings;
pub mod step;
pub mod usage;
pub use machine::Machine;
