//! Fuzz targets for everything that decodes bytes from outside, as plain functions: they panic if a rule is
//! broken, and do nothing else.
//!
//! [`campaign`] runs them on stable Rust over the kept corpus; the crate in `fuzz/` beside this one hands
//! the same functions to libFuzzer.

pub mod campaign;
pub mod mutate;
pub mod targets;

/// A fuzz target.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, which is that of its corpus folder too.
    pub name: &'static str,
    /// What it does with some bytes.
    pub run: fn(&[u8]),
}

/// Every target.
pub const TARGETS: [Target; 8] = [
    Target { name: "acp_line", run: targets::acp_line },
    Target { name: "mcp_line", run: targets::mcp_line },
    Target { name: "chat_body", run: targets::chat_body },
    Target { name: "openrouter_body", run: targets::openrouter_body },
    Target { name: "responses_body", run: targets::responses_body },
    Target { name: "anthropic_body", run: targets::anthropic_body },
    Target { name: "record_frame", run: targets::record_frame },
    Target { name: "fixture_line", run: targets::fixture_line },
];
