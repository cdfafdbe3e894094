//! The commands on a relay, from the outside: a real binary against a scripted relay or the embedded one.

mod channels;
mod errors;
mod feed;
mod identity;
mod media;
mod messages;
mod stage;
mod templates;
mod users;
