//! The client's side of a relay.

pub mod http;
pub mod media;
pub mod retry;
