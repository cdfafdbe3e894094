//! The binary from the outside: real agents, real kills, real files.

mod agent;
mod answers;
mod bad_input;
mod comes_back;
mod cut;
mod demo;
mod fixtures;
mod kill;
mod leftovers;
mod record;
mod record_more;
mod relay;
mod releases;
mod shapes;
mod stage;
mod tamper;
mod wire;
