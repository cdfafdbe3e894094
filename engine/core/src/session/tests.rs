//! The session as its client, its model and its servers see it: lines in, requests and lines out.

mod answers;
mod cancel;
mod checks;
mod emission;
mod entry;
mod handoff;
mod hooks;
mod mesh;
mod permission;
mod properties;
mod recovery;
mod retries;
pub(crate) mod rig;
mod steer;
mod tools;
mod usage;
