//! The binary from the outside: real agents, real kills, real files.

mod agent;
mod answers;
mod bad_input;
mod comes_back;
mod cut;
mod demo;
mod fixtures;
#[cfg(target_os = "linux")]
mod hidden;
mod kill;
mod leftovers;
mod mesh;
mod permission;
mod private;
mod record;
mod record_more;
mod relay;
mod releases;
mod shapes;
mod stage;
mod tamper;
mod wire;
