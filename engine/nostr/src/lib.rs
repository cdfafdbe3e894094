//! Nostr as Waxlog speaks it: identities, events and their wires.
//!
//! The `nostr` crate does the curve and the ciphers and stands behind this crate's functions only. What
//! comes from outside is bytes until [`Event::verify`] has said yes; its two checks, of the id and of the
//! signature, are two errors.

pub mod auth;
pub mod build;
pub mod channel;
pub mod client;
pub mod coordinate;
pub mod engram;
pub mod event;
pub mod filter;
pub mod frame;
pub mod id;
pub mod keys;
pub mod kind;
pub mod mention;
pub mod naddr;
pub mod nip44;
pub mod observer;
pub mod owner;
pub mod profile;
pub mod project;
pub mod thread;
pub mod turn_metric;

pub use event::{Draft, Event, Tag, VerifyError};
pub use filter::Filter;
pub use id::{EventId, PublicKey, Signature};
pub use keys::Keys;
pub use waxlog_core::secret::Secret;
