//! The client's side of a relay.

pub mod backoff;
pub mod http;
pub mod media;
pub mod retry;
pub mod session;
pub mod socket;
pub mod transport;
