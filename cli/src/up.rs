//! `waxlog up`: everything that one machine needs, in one process.
//!
//! A relay, an identity, a channel, an agent of that identity and the harness between them. Nothing of it is
//! special: each could be started by its own command, with the keys that lie in the home.

mod crew;
mod room;
mod show;
mod watch;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use async_std::task;
use structopt::StructOpt;
use waxlog_agent::config::Environment;
use waxlog_relay::Server;
use waxlog_scripted::model_server::ModelServer;
use waxlog_scripted::recording::Recording;

use self::crew::{Crew, Model};
use self::room::{Room, Wanted};
use self::show::Show;
use self::watch::Watch;
use crate::failure::Failure;
use crate::hidden;
use crate::home::HomeOption;
use crate::relay;

/// What an agent is called that has no name yet.
const DEFAULT_NAME: &str = "Waxlog";

/// Makes what is not there: an identity, a key for the agent, a relay, a channel that both are in.
///
/// The agent works in the folder that this is started in, and answers you alone unless BUZZ_ACP_RESPOND_TO says
/// otherwise. All variables of `waxlog acp`, `waxlog agent` and `waxlog relay` count.
#[derive(StructOpt)]
#[structopt(
    after_help = "EXAMPLE:\n    BUZZ_AGENT_PROVIDER=anthropic ANTHROPIC_API_KEY=... ANTHROPIC_MODEL=... waxlog up"
)]
pub(crate) struct Up {
    #[structopt(flatten)]
    home: HomeOption,
    /// Where the relay listens; port 0 takes a free one [default: $BUZZ_BIND_ADDR, else 127.0.0.1:3000]
    #[structopt(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Another relay, in place of an own one
    #[structopt(long, value_name = "URL", conflicts_with = "listen")]
    relay: Option<String>,
    /// The channel's name
    #[structopt(long, value_name = "NAME", default_value = "general")]
    channel: String,
    /// What the agent is called [default: what it was called before, else Waxlog]
    #[structopt(long, value_name = "NAME")]
    name: Option<String>,
    /// Answers from this recording instead of a provider's model: a chat completion a line
    #[structopt(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Prints a JSON object a line
    #[structopt(long)]
    json: bool,
}

impl Up {
    /// Runs until it is told to stop.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        log_to_stderr();
        hidden::hide();
        let env = Environment::of_process();
        let home = self.home.folder()?;
        let model = self.model.as_deref().map(recorded).transpose()?;
        let crew = Crew::of(&home, &env, model.as_ref())?;
        let relay = match &self.relay {
            Some(_) => None,
            None => Some(self.start_relay(&home, &env)?),
        };
        let url = self.url(relay.as_ref());
        let ended = self.serve(&crew, &url);
        if let Some(relay) = relay {
            task::block_on(relay.stop());
        }
        match ended? {
            0 => Ok(()),
            code => Err(Failure::Said(u8::try_from(code).unwrap_or(1))),
        }
    }

    /// Furnishes the room and runs the harness in it. Gives its exit code.
    fn serve(&self, crew: &Crew, url: &str) -> Result<i32, Failure> {
        let wanted =
            Wanted { channel: &self.channel, name: self.name.as_deref(), default_name: DEFAULT_NAME };
        let room = Room::furnish(crew, url, &wanted)?;
        let config = crew.config(url)?;
        let show = Show::new(room, crew.variables(url), self.json);
        let watch = task::block_on(Watch::connect(crew.person.clone(), show)).map_err(|error| {
            Failure::SetUp(format!("waxlog: what happens on {url} cannot be shown: {error}"))
        })?;
        let watching = task::spawn(watch::watch(watch));
        let ended = task::block_on(waxlog_harness::run(config));
        task::block_on(watching.cancel());
        ended.map_err(|error| Failure::SetUp(error.to_string()))
    }

    fn start_relay(&self, home: &Path, env: &Environment) -> Result<Server, Failure> {
        let listen = relay::address(self.listen.as_deref(), env)?;
        let settings = relay::settings(home, listen, env)?;
        relay::warn_of_exposure(&settings);
        task::block_on(Server::start(settings)).map_err(|error| Failure::SetUp(error.to_string()))
    }

    /// The relay's URL, for HTTP.
    fn url(&self, own: Option<&Server>) -> String {
        match (own, &self.relay) {
            (Some(server), _) => format!("http://{}", reachable(server.address())),
            (None, typed) => waxlog_nostr::client::http::http_url(typed.as_deref().unwrap_or_default()),
        }
    }
}

/// Where this machine itself reaches what listens at an address.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

/// Serves a recording.
fn recorded(file: &Path) -> Result<Model, Failure> {
    let shown = file.display();
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::io(format!("cannot read the recording {shown}"), &error))?;
    let recording =
        Recording::parse(&text).map_err(|error| Failure::Check(format!("the recording {shown}: {error}")))?;
    let server = ModelServer::start_recorded(recording)
        .map_err(|error| Failure::io("cannot serve the recording", &error))?;
    Ok(Model { server })
}

/// Troubles go to stderr, more of it as far as RUST_LOG says. curl's own trace would show keys and is off.
fn log_to_stderr() {
    env_logger::Builder::new()
        .filter_level(log::LevelFilter::Warn)
        .parse_env("RUST_LOG")
        .filter_module("isahc", log::LevelFilter::Off)
        .format_target(false)
        .write_style(env_logger::WriteStyle::Never)
        .init();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_that_listens_everywhere_is_reached_on_loopback() {
        for (listens, reached) in [
            ("0.0.0.0:7", "127.0.0.1:7"),
            ("[::]:7", "[::1]:7"),
            ("127.0.0.2:7", "127.0.0.2:7"),
            ("10.1.2.3:7", "10.1.2.3:7"),
        ] {
            let reached_at: SocketAddr = reached.parse().unwrap();
            assert_eq!(reachable(listens.parse().unwrap()), reached_at, "{listens}");
        }
    }
}
