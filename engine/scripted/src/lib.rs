//! Scripted stand-ins for what an agent talks to: an MCP server and a model endpoint on loopback.
//!
//! They do what a script says and keep everything they were sent. Tests, `waxlog demo` and `waxlog up --model`
//! use them; nothing here knows the agent.

pub mod mcp_server;
pub mod model_server;
pub mod recording;
