//! `waxlog agent`: the agent process, also under the name `buzz-agent`.

use std::ffi::OsString;

use structopt::StructOpt;
use waxlog_agent::auth::login;
use waxlog_agent::config::Environment;
use waxlog_agent::serve::serve;

use crate::failure::Failure;
use crate::hidden;

/// Its settings are environment variables.
#[derive(StructOpt)]
#[structopt(
    after_help = "EXAMPLE:\n    BUZZ_AGENT_PROVIDER=anthropic ANTHROPIC_API_KEY=... ANTHROPIC_MODEL=... waxlog agent"
)]
pub(crate) struct Agent {
    #[structopt(subcommand)]
    instead: Option<Instead>,
}

/// What it does instead of serving.
#[derive(StructOpt)]
enum Instead {
    /// Logs in to a provider with a browser and ends.
    #[structopt(after_help = "EXAMPLE:\n    DATABRICKS_HOST=https://... waxlog agent auth databricks")]
    Auth {
        /// The provider: databricks or databricks_v2.
        #[structopt(default_value = "")]
        provider: String,
    },
}

impl Agent {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        match &self.instead {
            Some(Instead::Auth { provider }) => log_in(provider),
            None => start(),
        }
    }
}

/// The agent under its link's name. It takes no other argument, so whatever else stands there is passed over.
pub(crate) fn linked(arguments: &[OsString]) -> Result<(), Failure> {
    match arguments.get(1) {
        Some(first) if first == "auth" => {
            log_in(&arguments.get(2).map(|word| word.to_string_lossy()).unwrap_or_default())
        }
        _ => start(),
    }
}

fn log_in(provider: &str) -> Result<(), Failure> {
    let logged_in =
        login(&Environment::of_process(), provider).map_err(|e| Failure::Linked(e.to_string()))?;
    eprintln!("{logged_in}");
    Ok(())
}

/// The operator's log goes to stderr at a fixed level: stdout belongs to the client.
fn start() -> Result<(), Failure> {
    env_logger::Builder::new()
        .filter_level(log::LevelFilter::Info)
        .format_target(false)
        .write_style(env_logger::WriteStyle::Never)
        .init();
    hidden::hide();
    serve(Environment::of_process(), env!("CARGO_PKG_VERSION")).map_err(|error| {
        log::error!("{error}");
        Failure::AgentStart
    })
}
