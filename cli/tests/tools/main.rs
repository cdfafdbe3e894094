//! `waxlog mcp` from the outside: the real binary, its real protocol, real commands and kills.

mod client;
mod end;
mod files;
mod git;
mod names;
mod protocol;
mod secrets;
mod shell;
mod shell_limits;
