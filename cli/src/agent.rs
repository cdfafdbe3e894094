//! `waxlog agent`: the agent process, also under the name `buzz-agent`.

use std::ffi::OsString;

use structopt::StructOpt;
use waxlog_agent::config::Environment;
use waxlog_agent::serve::serve;

use crate::failure::Failure;

/// Its settings are environment variables.
#[derive(StructOpt)]
#[structopt(
    after_help = "EXAMPLE:\n    BUZZ_AGENT_PROVIDER=anthropic ANTHROPIC_API_KEY=... ANTHROPIC_MODEL=... waxlog agent"
)]
pub(crate) struct Agent {}

impl Agent {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        start()
    }
}

/// The agent under its link's name. It takes no arguments, so whatever stands there is passed over.
pub(crate) fn linked(arguments: &[OsString]) -> Result<(), Failure> {
    if arguments.get(1).is_some_and(|first| first == "auth") {
        let text = "this version has no sign-in; give the provider's key in its variable instead";
        return Err(Failure::Linked(text.to_owned()));
    }
    start()
}

/// The operator's log goes to stderr at a fixed level: stdout belongs to the client.
fn start() -> Result<(), Failure> {
    env_logger::Builder::new()
        .filter_level(log::LevelFilter::Info)
        .format_target(false)
        .write_style(env_logger::WriteStyle::Never)
        .init();
    serve(Environment::of_process(), env!("CARGO_PKG_VERSION")).map_err(|error| {
        log::error!("{error}");
        Failure::AgentStart
    })
}
