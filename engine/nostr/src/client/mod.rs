//! The client's side of a relay.

pub mod backoff;
pub mod session;
pub mod socket;
mod transport;
