//! The embedded relay: what it stores, who may write and read it, and what it answers.
//!
//! [`Desk`] is the whole relay but its network. A submission is first [`Checked`], alone and in parallel,
//! then taken in by one writer, then settled by a flush that many share; only then may it be answered. Time
//! is always an argument.

pub mod asker;
mod channel;
pub mod desk;
mod index;
mod kinds;
pub mod live;
mod presence;
mod query;
pub mod rate;
pub mod reply;
mod rules;
pub mod server;
mod state;
mod store;
mod words;
mod writer;

pub use asker::{Asker, Via};
pub use channel::ChannelId;
pub use desk::{Blobs, Desk, DeskError, Scope, Settings};
pub use live::{Live, LiveEvent, Row, Whom};
pub use query::MAX_LIMIT;
pub use reply::{Checked, Refusal, Reply, Submission, Ticket};
pub use server::{Server, ServerError, ServerSettings};
