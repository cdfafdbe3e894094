//! Scripted stand-ins for what an agent talks to: an MCP server and a model endpoint on loopback.
//!
//! They do what a script says and keep everything they were sent. Tests and `waxlog demo` use them; nothing
//! here knows the agent.

pub mod mcp_server;
pub mod model_server;
