//! The groups of commands on a relay from the outside: exit codes, output, and what reaches the relay.

#![allow(clippy::unwrap_used)]

mod agents;
mod emoji;
mod git;
mod help;
mod mem;
mod moderation;
mod notes;
mod real;
mod repos;
mod social;
mod stage;
mod workflows;
