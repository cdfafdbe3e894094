//! A session: its state is the fold of its records, and everything that happens follows from the state.
//!
//! [`Session::admit`] says which record an input becomes, [`Session::fold`] takes a record in,
//! [`Session::decide`] says which decision follows. Folding puts what must be done in the outbox; the
//! driver empties it once the records are durable.

mod admit;
mod calls;
mod decide;
mod effect;
mod fold;
mod hooks;
mod mesh;
mod options;
mod permission;
mod state;

pub use admit::{Draws, Input};
pub use effect::Effect;
pub use state::{ServerState, Session};

/// Calls that are kept of one answer.
pub const CALLS_PER_ANSWER_MAX: usize = 64;

/// What a failed result ends with in the history, so that the model does not just try again.
pub const REFLECTION: &str = "\n\n[Reflect] Before retrying, identify the cause and change your approach.";

/// The result of a call that was running when the agent was stopped.
pub const INTERRUPTED_TEXT: &str = "interrupted, effects unknown: the agent was stopped while this call was \
     pending; check what it did before running it again";

#[cfg(test)]
pub(crate) mod tests;
