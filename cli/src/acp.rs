//! `waxlog acp`: the harness, also under the name `buzz-acp`.

use std::ffi::OsString;
use std::io::Write;

use structopt::clap::ErrorKind;
use structopt::StructOpt;
use waxlog_agent::config::{read_home, Environment};
use waxlog_harness::{Config, Options, Surroundings};

use crate::failure::Failure;
use crate::hidden;

/// The name under which the binary stands in for the harness of the same name.
pub(crate) const LINK: &str = "buzz-acp";

/// Each option has a variable of its name with BUZZ_ACP_ before it, unless its help names another.
#[derive(StructOpt)]
#[structopt(
    after_help = "EXAMPLE:\n    BUZZ_PRIVATE_KEY=nsec1... waxlog acp --agent-command buzz-agent --mcp-command buzz-dev-mcp"
)]
pub(crate) struct Acp {
    #[structopt(flatten)]
    options: Options,
}

impl Acp {
    /// Runs until it is told to stop.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        log_to_stdout();
        hidden::hide();
        let code = match self.start() {
            Ok(code) => code,
            Err((code, error)) => {
                log::error!("{error}");
                code
            }
        };
        match code {
            0 => Ok(()),
            code => Err(Failure::Said(u8::try_from(code).unwrap_or(1))),
        }
    }

    fn start(&self) -> Result<i32, (i32, String)> {
        let env = Environment::of_process();
        let home = read_home(&env).map_err(|error| (1, error.to_string()))?;
        let cwd =
            std::env::current_dir().map_err(|error| (1, format!("the working folder is gone: {error}")))?;
        let around = Surroundings {
            env: &|name| env.get(name).map(str::to_owned),
            cwd,
            home,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let config =
            Config::read(&self.options, &around).map_err(|error| (error.code(), error.to_string()))?;
        async_std::task::block_on(waxlog_harness::run(config)).map_err(|error| (1, error.to_string()))
    }
}

/// The harness under its link's name.
pub(crate) fn linked(arguments: &[OsString]) -> Result<(), Failure> {
    match Acp::from_iter_safe(arguments) {
        Ok(acp) => acp.run(),
        Err(error) if error.kind == ErrorKind::HelpDisplayed => {
            Ok(writeln!(std::io::stdout(), "{}", error.message)?)
        }
        Err(error) => Err(Failure::Usage(error.message)),
    }
}

/// The operator's log goes to stdout, as far as RUST_LOG says. curl's own trace would show keys and is off.
fn log_to_stdout() {
    env_logger::Builder::new()
        .filter_level(log::LevelFilter::Info)
        .parse_env("RUST_LOG")
        .filter_module("isahc", log::LevelFilter::Off)
        .format_target(false)
        .target(env_logger::Target::Stdout)
        .write_style(env_logger::WriteStyle::Never)
        .init();
}
