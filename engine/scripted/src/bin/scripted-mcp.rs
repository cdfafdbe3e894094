//! A scripted MCP server on stdio: `scripted-mcp SCRIPT.json LOG.jsonl`.

use std::process::ExitCode;

fn main() -> ExitCode {
    waxlog_scripted::mcp_server::main()
}
