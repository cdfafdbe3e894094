//! The `waxlog` binary: a thin command over the libraries.
//!
//! Arguments are read here and turned into one call; each command group has a file of its own. Under
//! the name `buzz-agent` the binary is the agent and nothing else. Exit codes: 0 is success, 1 says that
//! a check failed or a thing was not found, 2 that the command or its set-up is wrong.

mod agent;
mod demo;
mod failure;
mod fixture;
mod home;
mod logs;
mod replay;
mod session;
mod table;
mod usage;

use std::ffi::OsString;
use std::io::{BufWriter, Write};
use std::path::Path;

use structopt::clap::{AppSettings, ErrorKind};
use structopt::StructOpt;

use crate::failure::Failure;

/// The name under which the binary stands in for the agent of the same name.
const AGENT_LINK: &str = "buzz-agent";

/// A flight recorder and replay engine for agents.
#[derive(StructOpt)]
#[structopt(
    name = "waxlog",
    global_settings = &[AppSettings::VersionlessSubcommands, AppSettings::DisableHelpSubcommand],
    after_help = "EXAMPLE:\n    waxlog demo    # the whole story, without a key"
)]
enum Command {
    /// Serves an ACP client on stdin and stdout.
    Agent(agent::Agent),
    /// Reads, checks and moves logs.
    Log(logs::Log),
    /// Counts the tokens of each turn.
    Usage(usage::Usage),
    /// Folds recorded turns again and compares every request and line.
    Replay(replay::ReplayCommand),
    /// Keeps recorded sessions as regression tests.
    Fixture(fixture::Fixture),
    /// Shows the whole story: a turn, a kill, the recovered tokens, a replay.
    Demo(demo::Demo),
    /// The tool server of the demo.
    #[structopt(setting = AppSettings::Hidden)]
    DemoShell,
}

fn main() {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let outcome = match called_as_agent(&arguments) {
        true => agent::linked(&arguments),
        false => typed(&arguments),
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

fn called_as_agent(arguments: &[OsString]) -> bool {
    let program = arguments.first().map(Path::new);
    program.and_then(Path::file_name).is_some_and(|name| name == AGENT_LINK)
}

/// Runs what was typed.
fn typed(arguments: &[OsString]) -> Result<(), Failure> {
    let command = match Command::from_iter_safe(arguments) {
        Ok(command) => command,
        Err(error) if matches!(error.kind, ErrorKind::HelpDisplayed | ErrorKind::VersionDisplayed) => {
            return Ok(writeln!(std::io::stdout(), "{}", error.message)?);
        }
        Err(error) => return Err(Failure::Usage(error.message)),
    };
    match command {
        // These two speak a protocol on stdout and take hold of it themselves.
        Command::Agent(agent) => agent.run(),
        Command::DemoShell => demo::shell::serve(),
        Command::Log(log) => printing(|out| log.run(out)),
        Command::Usage(usage) => printing(|out| usage.run(out)),
        Command::Replay(replay) => printing(|out| replay.run(out)),
        Command::Fixture(fixture) => printing(|out| fixture.run(out)),
        Command::Demo(demo) => printing(|out| demo.run(out)),
    }
}

/// Runs a command that prints. What one that fails has printed so far is part of its answer.
fn printing(run: impl FnOnce(&mut dyn Write) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let outcome = run(&mut out);
    out.flush()?;
    outcome
}
