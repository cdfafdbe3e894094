//! `waxlog relay`: the embedded relay, on one port for HTTP and sockets.

use std::io::{self, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

use structopt::StructOpt;
use waxlog_agent::config::Environment;
use waxlog_nostr::{Keys, PublicKey};
use waxlog_relay::server::limits::Limits;
use waxlog_relay::{Server, ServerSettings};

use crate::failure::Failure;
use crate::home::HomeOption;
use crate::keys;

/// Where it listens unless told otherwise.
pub(crate) const DEFAULT_LISTEN: &str = "127.0.0.1:3000";
/// The relay's folder in the home.
const FOLDER: &str = "relay";
/// The file in it that holds the relay's secret key in hex.
const KEY_FILE: &str = "key";

/// Serves a relay for the agents and people of one machine.
#[derive(StructOpt)]
#[structopt(after_help = "EXAMPLE:\n    waxlog relay --listen 127.0.0.1:3000")]
pub(crate) struct Relay {
    /// Where to listen; port 0 takes a free one [default: $BUZZ_BIND_ADDR, else 127.0.0.1:3000]
    #[structopt(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    #[structopt(flatten)]
    home: HomeOption,
    /// Counts how often a key may do what; the default where others than this machine can connect
    #[structopt(long, conflicts_with = "no-rate-limit")]
    rate_limit: bool,
    /// Does not count how often a key does what; the default on loopback
    #[structopt(long)]
    no_rate_limit: bool,
}

impl Relay {
    /// Serves until it is told to stop.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        log_to_stderr();
        let env = Environment::of_process();
        let mut settings = settings(&self.home.folder()?, address(self.listen.as_deref(), &env)?, &env)?;
        if self.rate_limit || self.no_rate_limit {
            settings.limits.quotas.are_on = self.rate_limit;
        }
        // Signals that come from here on are kept until the server runs.
        let signals =
            signal_hook::iterator::Signals::new([signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT]);
        let mut signals = signals.map_err(|error| Failure::io("cannot listen for signals", &error))?;
        warn_of_exposure(&settings);
        let server = async_std::task::block_on(Server::start(settings))
            .map_err(|error| Failure::SetUp(error.to_string()))?;
        writeln!(io::stdout(), "http://{} and ws://{0}", server.address())?;
        io::stdout().flush()?;
        signals.forever().next();
        async_std::task::block_on(server.stop());
        Ok(())
    }
}

/// A home's relay, as the variables want it.
pub(crate) fn settings(
    home: &Path,
    listen: SocketAddr,
    env: &Environment,
) -> Result<ServerSettings, Failure> {
    let folder = home.join(FOLDER);
    let relay_keys = match secret(env, "BUZZ_RELAY_PRIVATE_KEY")? {
        Some(keys) => keys,
        None => keys::kept(&folder.join(KEY_FILE))?,
    };
    let variable = |name: &str| env.get_filled(name).map(str::to_owned);
    let mut limits = Limits::from_variables(variable).map_err(|error| Failure::SetUp(error.to_string()))?;
    limits.quotas.are_on = !listen.ip().is_loopback() || Limits::names_a_quota(variable);
    let reap_every = match variable("BUZZ_REAPER_INTERVAL_SECS") {
        None => None,
        Some(typed) => Some(typed.parse().ok().filter(|seconds| *seconds > 0).ok_or_else(|| {
            Failure::SetUp(format!("BUZZ_REAPER_INTERVAL_SECS={typed:?} is not a count of seconds above 0"))
        })?),
    };
    let trusted: Option<PublicKey> = secret(env, "BUZZ_ACP_PRIVATE_KEY")?.map(|keys| keys.public_key());
    let defaults = ServerSettings::on_loopback(folder, relay_keys);
    Ok(ServerSettings {
        listen,
        public_url: variable("RELAY_URL"),
        trusted,
        trusts_x_pubkey: env.get_filled("BUZZ_REQUIRE_AUTH_TOKEN") == Some("false"),
        reap_every: reap_every.map_or(defaults.reap_every, Duration::from_secs),
        limits,
        ..defaults
    })
}

/// Where to listen: as typed, else as the variable says, else at the default.
pub(crate) fn address(typed: Option<&str>, env: &Environment) -> Result<SocketAddr, Failure> {
    let typed = typed.or_else(|| env.get_filled("BUZZ_BIND_ADDR")).unwrap_or(DEFAULT_LISTEN);
    let mut found = typed
        .to_socket_addrs()
        .map_err(|error| Failure::Usage(format!("waxlog: {typed:?} is no address to listen at: {error}")))?;
    found.next().ok_or_else(|| Failure::Usage(format!("waxlog: {typed:?} is no address to listen at")))
}

/// The identity whose secret key a variable holds.
pub(crate) fn secret(env: &Environment, name: &str) -> Result<Option<Keys>, Failure> {
    let Some(typed) = env.get_filled(name) else { return Ok(None) };
    Keys::parse(typed.trim()).map(Some).map_err(|error| Failure::SetUp(format!("{name}: {error}")))
}

fn log_to_stderr() {
    env_logger::Builder::new()
        .filter_level(log::LevelFilter::Warn)
        .format_target(false)
        .write_style(env_logger::WriteStyle::Never)
        .init();
}

/// Says what others than this machine can reach.
pub(crate) fn warn_of_exposure(settings: &ServerSettings) {
    let address = settings.listen;
    if !address.ip().is_loopback() {
        eprintln!(
            "waxlog: {address} can be reached from other machines: whoever connects can make an identity, \
             read and write open channels and upload files, and nothing is encrypted on the way"
        );
        if settings.public_url.is_none() {
            eprintln!(
                "waxlog: RELAY_URL is not set, so a proof of identity counts under any host name; \
                 set it to the address that clients use"
            );
        }
    }
    if settings.trusts_x_pubkey {
        eprintln!("waxlog: BUZZ_REQUIRE_AUTH_TOKEN=false: HTTP requests may name any key without a proof");
    }
}
