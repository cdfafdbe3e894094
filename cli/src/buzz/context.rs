//! What every command of these groups works with: who it is, the relay, the clock, stdin.

use std::io::{IsTerminal, Read, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_std::future::timeout;
use async_std::task::block_on;
use serde_json::{json, Value};
use structopt::StructOpt;
use waxlog_nostr::build::{complete, time_after};
use waxlog_nostr::client::http::{HttpError, RelayHttp, Settings, DEFAULT_CONNECT_TIMEOUT, DEFAULT_TIMEOUT};
use waxlog_nostr::client::session::Login;
use waxlog_nostr::client::socket::{Limits, Receipt, Socket};
use waxlog_nostr::owner::OwnerTag;
use waxlog_nostr::{Draft, Event, Filter, Keys, PublicKey, Secret};

use super::failure::Failure;
use super::output::{written, Format, Output};
use crate::keys::stored_identity;

/// How many events a page of a longer query has.
pub(crate) const PAGE_EVENTS: usize = 500;
/// The longest input that is read from stdin, in bytes.
pub(crate) const MAX_STDIN_BYTES: u64 = 16 * 1024 * 1024;

/// How long it may take to send an event over a WebSocket, from connecting to closing.
const SOCKET_TIMEOUT: Duration = Duration::from_secs(75);

// The options before the group's name. (A doc comment here would become the help of the command that takes
// them in.)
#[derive(StructOpt)]
pub(crate) struct Options {
    /// The relay, as http, https, ws or wss
    #[structopt(
        long,
        env = "BUZZ_RELAY_URL",
        value_name = "URL",
        default_value = "http://localhost:3000",
        hide_env_values = true
    )]
    relay: String,
    /// Your secret key: 64 hex digits or nsec1... [default: the identity of `waxlog keys`]
    #[structopt(long, env = "BUZZ_PRIVATE_KEY", value_name = "KEY", hide_env_values = true)]
    private_key: Option<String>,
    /// Your owner's tag as JSON, if you are an agent
    #[structopt(long, env = "BUZZ_AUTH_TAG", value_name = "JSON", hide_env_values = true)]
    auth_tag: Option<String>,
    /// How lists are printed: json or compact
    #[structopt(long, default_value = "json", value_name = "FORMAT", possible_values = &["json", "compact"])]
    format: Format,
}

/// What every command of these groups works with.
pub(crate) struct Context {
    keys: Keys,
    owner: Option<OwnerTag>,
    relay: RelayHttp,
    format: Format,
}

impl Context {
    /// Reads who this is, and for whom.
    pub(crate) fn new(options: Options) -> Result<Context, Failure> {
        let keys = identity(options.private_key.map(Secret::new))?;
        let tag = options.auth_tag.filter(|tag| !tag.is_empty());
        let owner = tag.as_deref().map(|tag| owner(tag, &keys.public_key())).transpose()?;
        // A tag that is laid out over lines is no header.
        let is_header = |tag: &String| !tag.chars().any(char::is_control);
        let header = tag.filter(is_header);
        Self::with(keys, owner, header, options.relay, options.format)
    }

    /// Somebody who is known, at a relay.
    pub(crate) fn of(keys: Keys, owner: Option<OwnerTag>, relay: String) -> Result<Context, Failure> {
        Self::with(keys, owner, None, relay, Format::Json)
    }

    fn with(
        keys: Keys,
        owner: Option<OwnerTag>,
        header: Option<String>,
        relay: String,
        format: Format,
    ) -> Result<Context, Failure> {
        let canonical = owner.as_ref().map(OwnerTag::to_json);
        let relay = RelayHttp::new(Settings {
            relay,
            keys: keys.clone(),
            owner_tag: header.or(canonical).map(Secret::new),
            timeout: seconds("BUZZ_TIMEOUT_SECS", DEFAULT_TIMEOUT),
            connect_timeout: seconds("BUZZ_CONNECT_TIMEOUT_SECS", DEFAULT_CONNECT_TIMEOUT),
            watcher: Some(progress),
        })
        .map_err(|error| Failure::Other(error.to_string()))?;
        Ok(Context { keys, owner, relay, format })
    }

    /// The identity.
    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The identity's public key.
    pub(crate) fn me(&self) -> PublicKey {
        self.keys.public_key()
    }

    /// The owner's word, if this is an agent that has it.
    pub(crate) fn owner(&self) -> Option<&OwnerTag> {
        self.owner.as_ref()
    }

    /// Whose agents and teams are one's own: the owner's, else the identity's.
    pub(crate) fn effective_owner(&self) -> PublicKey {
        self.owner.as_ref().map_or(self.me(), |tag| tag.owner)
    }

    /// How lists are printed.
    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// The relay, for what is neither query nor event.
    pub(crate) fn relay(&self) -> &RelayHttp {
        &self.relay
    }

    /// Seconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
    }

    /// The events that answer any of the filters, verified, in the relay's order.
    pub(crate) fn query(&self, filters: &[Filter]) -> Result<Vec<Event>, Failure> {
        let found = block_on(self.relay.query(filters))?;
        warn_of_left_out(found.left_out);
        Ok(found.events)
    }

    /// The first event that answers the filter; asks for no more than one.
    pub(crate) fn first(&self, filter: Filter) -> Result<Option<Event>, Failure> {
        Ok(self.query(&[filter.limit(1)])?.into_iter().next())
    }

    /// Up to `limit` events, page after page.
    pub(crate) fn pages(&self, filter: &Filter, limit: usize) -> Result<Vec<Event>, Failure> {
        let mut events: Vec<Event> = Vec::new();
        let mut page = filter.clone();
        while events.len() < limit {
            let asked = PAGE_EVENTS.min(limit - events.len());
            let found = block_on(self.relay.query(&[page.limit(asked)]))?;
            warn_of_left_out(found.left_out);
            let is_last = found.events.len() + found.left_out < asked;
            let last = found.events.last().map(|event| (event.created_at, event.id));
            events.extend(found.events);
            if is_last {
                break;
            }
            let Some((created_at, id)) = last else {
                return Err(Failure::Other(format!(
                    "a page of {asked} events from {} has no valid one, so the next cannot be asked for",
                    self.relay.shown()
                )));
            };
            progress(&format!("{} events so far", events.len()));
            page = filter.clone().until(created_at).extension("before_id", id.to_hex());
        }
        Ok(events)
    }

    /// Signs a draft, with the owner's tag.
    pub(crate) fn sign(&self, draft: Draft) -> Result<Event, Failure> {
        Ok(self.keys.sign(complete(draft, &self.me(), self.owner.as_ref())?))
    }

    /// Sends an event as it is. Gives the relay's object.
    pub(crate) fn submit(&self, event: &Event) -> Result<Value, Failure> {
        Ok(block_on(self.relay.publish(event))?)
    }

    /// Signs a draft with the owner's tag and sends it. Gives the relay's object.
    pub(crate) fn send(&self, draft: Draft) -> Result<Value, Failure> {
        self.submit(&self.sign(draft)?)
    }

    /// Signs, sends, and gives what most writes print.
    pub(crate) fn publish(&self, draft: Draft) -> Result<Output, Failure> {
        Ok(written(&self.send(draft)?).into())
    }

    /// Signs a draft with the owner's tag and sends it over a WebSocket, which kinds that are never stored
    /// take.
    pub(crate) fn publish_over_socket(&self, draft: Draft) -> Result<Output, Failure> {
        Ok(self.submit_over_socket(&self.sign(draft)?)?.into())
    }

    /// Sends an event as it is over a WebSocket. Gives what writes print.
    pub(crate) fn submit_over_socket(&self, event: &Event) -> Result<Value, Failure> {
        let login =
            Login { relay: self.relay.socket_url(), keys: self.keys.clone(), owner: self.owner.clone() };
        let sent = block_on(timeout(SOCKET_TIMEOUT, send_over_socket(login, event)));
        let receipt = sent
            .unwrap_or_else(|_| Err(format!("the relay took longer than {} s", SOCKET_TIMEOUT.as_secs())))
            .map_err(Failure::Other)?;
        match receipt.is_accepted {
            true => Ok(json!({"event_id": event.id, "accepted": true, "message": receipt.message})),
            false => Err(HttpError::Status { status: 400, message: receipt.message }.into()),
        }
    }

    /// The time for a write that takes the place of `head`: now, or just past it.
    pub(crate) fn time_after(&self, head: Option<&Event>) -> u64 {
        time_after(self.now(), head.map(|event| event.created_at))
    }

    /// The time for a write that takes the place of the newest event that answers `head`.
    pub(crate) fn time_past(&self, head: Filter) -> Result<u64, Failure> {
        Ok(self.time_after(self.first(head)?.as_ref()))
    }
}

async fn send_over_socket(login: Login, event: &Event) -> Result<Receipt, String> {
    let mut socket = Socket::connect(login, Limits::default()).await.map_err(|error| error.to_string())?;
    let receipt = socket.publish(event).await.map_err(|error| error.to_string())?;
    if let Err(error) = socket.close().await {
        // The relay has said already what became of the event.
        log::debug!("the connection did not end as it should: {error}");
    }
    Ok(receipt)
}

/// Who this is: the key that was given, else the stored identity.
fn identity(given: Option<Secret<String>>) -> Result<Keys, Failure> {
    match given {
        Some(secret) => Keys::parse(secret.expose())
            .map_err(|error| Failure::Key(format!("{error}; check BUZZ_PRIVATE_KEY or --private-key"))),
        None => stored_identity().map_err(|error| Failure::Key(error.to_string()))?.ok_or_else(|| {
            let hint = "set BUZZ_PRIVATE_KEY, give --private-key, or make an identity with `waxlog keys new`";
            Failure::Auth(format!("there is no secret key: {hint}"))
        }),
    }
}

fn owner(tag: &str, agent: &PublicKey) -> Result<OwnerTag, Failure> {
    OwnerTag::from_json(tag)
        .and_then(|tag| tag.verify(agent).map(|()| tag))
        .map_err(|error| Failure::Auth(format!("BUZZ_AUTH_TAG or --auth-tag: {error}")))
}

/// A time from the environment, in whole seconds; anything else, and 0, is the default.
fn seconds(variable: &str, default: Duration) -> Duration {
    read_seconds(std::env::var(variable).ok().as_deref(), default)
}

fn read_seconds(text: Option<&str>, default: Duration) -> Duration {
    let seconds = text.and_then(|text| text.trim().parse().ok()).filter(|seconds| *seconds > 0);
    seconds.map_or(default, Duration::from_secs)
}

/// Says on a terminal what takes its time.
pub(crate) fn progress(text: &str) {
    if std::io::stderr().is_terminal() {
        // Nothing depends on it.
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}

/// Says on stderr what was done, for a person.
pub(crate) fn note(text: &str) {
    // Nothing depends on it.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// One line of warning on stderr.
pub(crate) fn warn(text: &str) {
    // Nothing depends on it.
    let _ = writeln!(std::io::stderr(), "{}", json!({ "warning": text }));
}

fn warn_of_left_out(count: usize) {
    if count > 0 {
        warn(&format!(
            "{count} items of the relay's answer are left out: not signed by whom they name, or no events"
        ));
    }
}

/// The text that was given, or stdin for `-`.
pub(crate) fn text_or_stdin(given: String) -> Result<String, Failure> {
    if given != "-" {
        return Ok(given);
    }
    read_text("stdin", std::io::stdin().lock())
}

/// A whole text from a file or stdin.
pub(crate) fn read_text(what: &str, from: impl Read) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    from.take(MAX_STDIN_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::Other(format!("cannot read {what}: {error}")))?;
    if bytes.len() as u64 > MAX_STDIN_BYTES {
        return Err(Failure::Usage(format!("{what} has more than {MAX_STDIN_BYTES} bytes; send less")));
    }
    String::from_utf8(bytes).map_err(|error| Failure::Other(format!("{what} is not UTF-8: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_limit_that_is_none_is_the_default() {
        let default = Duration::from_secs(30);
        for none in [None, Some(""), Some("0"), Some("soon"), Some("-1"), Some("1.5")] {
            assert_eq!(read_seconds(none, default), default, "{none:?}");
        }
        assert_eq!(read_seconds(Some("7"), default), Duration::from_secs(7));
    }

    #[test]
    fn a_text_that_is_too_long_or_no_text_is_refused() {
        assert_eq!(read_text("x", "a\n".as_bytes()).unwrap(), "a\n");
        assert!(matches!(read_text("x", &[0xff][..]), Err(Failure::Other(_))));
        let long = std::io::repeat(b'a').take(MAX_STDIN_BYTES + 1);
        assert!(matches!(read_text("x", long), Err(Failure::Usage(_))));
    }
}
