//! The commands on a relay, from the outside: a real binary against a scripted relay or the embedded one.

mod agents;
mod channels;
mod emoji;
mod errors;
mod feed;
mod git;
mod help;
mod identity;
mod kept;
mod media;
mod mem;
mod messages;
mod moderation;
mod notes;
mod repos;
mod scripted;
mod social;
mod stage;
mod templates;
mod users;
mod workflows;
