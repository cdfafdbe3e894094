//! The `waxlog` binary: a thin command over the libraries.
//!
//! Arguments are read here and turned into one call; each command group has a file of its own. Under
//! the name `buzz-agent` the binary is the agent and nothing else, under `buzz-acp` the harness, under `buzz`
//! the groups of [`buzz`], under those of [`mcp::Link`] the tool server and its companions. Exit codes of
//! Waxlog's own commands: 0 is success, 1 says that a check failed or a thing was not found, 2 that the command
//! or its set-up is wrong. The other groups have codes of their own, and so has a command that is none: see
//! [`buzz::Failure`].

mod acp;
mod agent;
mod buzz;
mod completions;
mod demo;
mod failure;
mod fixture;
mod hidden;
mod home;
mod keys;
mod logs;
mod mcp;
mod readable;
mod relay;
mod replay;
mod session;
mod table;
mod up;
mod usage;

use std::ffi::{OsStr, OsString};
use std::io::{BufWriter, Write};
use std::path::Path;

use structopt::clap::{App, AppSettings, ErrorKind};
use structopt::StructOpt;

use crate::failure::Failure;

/// The name under which the binary stands in for the agent of the same name.
const AGENT_LINK: &str = "buzz-agent";

/// A flight recorder and replay engine for agents.
#[derive(StructOpt)]
#[structopt(
    name = "waxlog",
    settings = &[AppSettings::DisableVersion],
    global_settings = &[AppSettings::VersionlessSubcommands, AppSettings::DisableHelpSubcommand],
    after_help = "EXAMPLE:\n    waxlog demo    # the whole story, without a key"
)]
struct Waxlog {
    #[structopt(flatten)]
    options: buzz::Options,
    #[structopt(subcommand)]
    command: Any,
}

// A command of either sort. (A doc comment here would become the help of the whole.)
#[derive(StructOpt)]
enum Any {
    #[structopt(flatten)]
    Own(Command),
    #[structopt(flatten)]
    Group(Box<buzz::Group>),
}

// Waxlog's own commands. (As above.)
#[derive(StructOpt)]
enum Command {
    /// Serves an ACP client on stdin and stdout.
    Agent(agent::Agent),
    /// Stands between a relay and its agents.
    Acp(Box<acp::Acp>),
    /// Serves the developer's tools to an MCP client on stdin and stdout.
    Mcp(mcp::Mcp),
    /// Reads, checks and moves logs.
    Log(logs::Log),
    /// Counts the tokens of each turn.
    Usage(usage::Usage),
    /// Folds recorded turns again and compares every request and line.
    Replay(replay::ReplayCommand),
    /// Keeps recorded sessions as regression tests.
    Fixture(fixture::Fixture),
    /// Starts everything: a relay, an agent of yours and a channel to talk to it in.
    Up(Box<up::Up>),
    /// Shows the whole story: a turn, a kill, the recovered tokens, a replay.
    Demo(demo::Demo),
    /// Serves a relay for the agents and people of one machine.
    Relay(relay::Relay),
    /// Makes and shows your identity.
    Keys(keys::KeysCommand),
    /// Prints the completions of a shell.
    Completions(completions::Completions),
    /// Prints the version.
    Version,
}

fn main() {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let outcome = match called_as(&arguments) {
        Some(name) if name == AGENT_LINK => agent::linked(&arguments),
        Some(name) if name == acp::LINK => acp::linked(&arguments),
        Some(name) if name == buzz::LINK => buzz::linked(&arguments).map_err(Failure::Group),
        name => match name.and_then(mcp::Link::named) {
            Some(link) => link.run(&arguments),
            None => typed(&arguments),
        },
    };
    let code = match outcome {
        Ok(()) | Err(Failure::BrokenPipe) => 0,
        Err(failure) => {
            failure.report();
            failure.code()
        }
    };
    std::process::exit(code);
}

fn called_as(arguments: &[OsString]) -> Option<&OsStr> {
    Path::new(arguments.first()?).file_name()
}

/// Runs what was typed.
fn typed(arguments: &[OsString]) -> Result<(), Failure> {
    let parsed = match Waxlog::from_iter_safe(arguments) {
        Ok(parsed) => parsed,
        Err(error) if error.kind == ErrorKind::HelpDisplayed => {
            return Ok(writeln!(std::io::stdout(), "{}", error.message)?);
        }
        Err(error) if is_own(arguments.get(1)) => return Err(Failure::Usage(error.message)),
        Err(error) => return Err(Failure::Group(buzz::Failure::Usage(error.message))),
    };
    match parsed.command {
        Any::Group(group) => buzz::run(parsed.options, *group).map_err(Failure::Group),
        Any::Own(_) if !is_own(arguments.get(1)) => Err(Failure::Usage(
            "waxlog: options before the command are for the groups on a relay only; leave them out"
                .to_owned(),
        )),
        Any::Own(command) => command.run(),
    }
}

/// Whether a word is one of Waxlog's own commands.
fn is_own(word: Option<&OsString>) -> bool {
    let Some(word) = word.filter(|word| !word.to_string_lossy().starts_with('-')) else { return false };
    let asked = [OsStr::new("waxlog"), word, OsStr::new("--help")];
    matches!(Command::from_iter_safe(asked), Err(error) if error.kind == ErrorKind::HelpDisplayed)
}

impl Command {
    fn run(self) -> Result<(), Failure> {
        match self {
            // These speak a protocol on stdout, or log to it, and take hold of it themselves.
            Command::Agent(agent) => agent.run(),
            Command::Acp(acp) => acp.run(),
            Command::Relay(relay) => relay.run(),
            Command::Mcp(mcp) => mcp.run(),
            Command::Up(up) => up.run(),
            Command::Log(log) => printing(|out| log.run(out)),
            Command::Usage(usage) => printing(|out| usage.run(out)),
            Command::Replay(replay) => printing(|out| replay.run(out)),
            Command::Fixture(fixture) => printing(|out| fixture.run(out)),
            Command::Demo(demo) => printing(|out| demo.run(out)),
            Command::Keys(keys) => printing(|out| keys.run(out)),
            Command::Completions(completions) => printing(|out| completions.run(parser, out)),
            Command::Version => printing(|out| Ok(writeln!(out, "waxlog {}", env!("CARGO_PKG_VERSION"))?)),
        }
    }
}

/// The parser under a name that the binary can be called by.
fn parser<'a>(name: &str) -> App<'a, 'a> {
    match name {
        buzz::LINK => buzz::parser(),
        _ => Waxlog::clap(),
    }
}

/// Runs a command that prints. What one that fails has printed so far is part of its answer.
fn printing(run: impl FnOnce(&mut dyn Write) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let outcome = run(&mut out);
    out.flush()?;
    outcome
}
