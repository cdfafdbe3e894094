//! git as an identity of Nostr: who commits, how commits are signed, how a relay is shown who asks.

mod config;
pub mod credential;
mod envelope;
mod key;
pub mod sign;

pub(crate) use self::config::{settings, RELAY_VARIABLE};
