//! The scripted MCP server that the tests of this package start.

use std::process::ExitCode;

fn main() -> ExitCode {
    waxlog_scripted::mcp_server::main()
}
