//! The wire of MCP servers: frames out, lines in, the tools of a session, and what a call's answer means.
//!
//! Everything here is a pure function of bytes and limits. The agent writes what [`encode`] builds and
//! records what comes back; the fold gives the recorded line to [`shape_result`], live and in replay alike.

pub mod answer;
mod backoff;
mod catalogue;
mod decode;
mod elide;
pub mod encode;
mod event;
mod listing;
mod names;
mod result;

pub use backoff::{backoff_ms, JITTER_MAX_PERMILLE};
pub use catalogue::{check_server_count, Catalogue, CatalogueError, Tool, SERVERS_MAX, TOOLS_MAX};
pub use decode::{decode, decode_request, Inbound, Outcome, RpcError};
pub use elide::{clamp, elide_middle, ELISION_MARKER_BYTES};
pub use event::ServerEvent;
pub use listing::{ListingError, ToolSpec, ToolsPage, TOOL_DESCRIPTION_MAX_BYTES, TOOL_SCHEMA_MAX_BYTES};
pub use names::{
    check_bare_name, check_server_name, is_hook, qualify, NameError, NAME_MAX_BYTES,
    QUALIFIED_NAME_MAX_BYTES, SEPARATOR,
};
pub use result::{
    cancelled, shape_result, timed_out, transport_closed, CallResult, ResultLimits,
    RESULT_TEXT_DEFAULT_BYTES, RESULT_TOTAL_MAX_BYTES,
};
