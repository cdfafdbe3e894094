//! The relay through real sockets on the loopback: what its clients may rely on.

#![allow(clippy::unwrap_used)]

mod auth;
mod bad_input;
mod client;
mod frames;
mod kill;
mod live;
mod media;
mod requests;
