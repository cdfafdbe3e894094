//! Talks to a relay: a frame of JSON on each line of stdin, a frame of JSON on each line of stdout.
//!
//!     cargo run --example talk -- [--login] ws://127.0.0.1:3000
//!
//! `["EVENT",event]`, `["REQ",id,filter...]`, `["COUNT",id,filter...]` and `["CLOSE",id]` go to the relay as they
//! are. `["SIGN",kind,content,[tag...]]` signs an event with the key of this run and publishes it. What comes back
//! is what the relay says; events are verified before they are printed. The first line is `["KEY",public key]`,
//! the last, after the end of stdin, `["DROPPED",forged events,malformed frames]`. With `--login` nothing is sent
//! before the relay has let this key in.

use std::error::Error;
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use async_std::io::prelude::BufReadExt;
use async_std::io::{stdin, BufReader};
use async_std::task::block_on;
use futures_lite::{FutureExt, StreamExt};
use serde_json::{json, Value};
use waxlog_nostr::client::session::{Incoming, Login};
use waxlog_nostr::client::socket::{Limits, Socket, SocketError};
use waxlog_nostr::frame::{ClientFrame, RelayFrame};
use waxlog_nostr::{Draft, Event, Keys};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// What happens next.
enum Next {
    Line(Option<std::io::Result<String>>),
    Heard(Result<Incoming, SocketError>),
}

fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn heard(incoming: Incoming) -> RelayFrame {
    match incoming {
        Incoming::Event(id, event) => RelayFrame::Event(id, event),
        Incoming::Eose(id) => RelayFrame::Eose(id),
        Incoming::Closed(id, why) => RelayFrame::Closed(id, why),
        Incoming::Ok(id, is_accepted, why) => RelayFrame::Ok(id, is_accepted, why),
        Incoming::Count(id, count) => RelayFrame::Count(id, count),
        Incoming::Notice(text) => RelayFrame::Notice(text),
    }
}

/// The event of a `SIGN` line.
fn sign(keys: &Keys, items: &[Value]) -> Outcome<Event> {
    let [_, kind, content, tags] = items else { return Err("SIGN needs a kind, a content and tags".into()) };
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let kind = serde_json::from_value(kind.clone())?;
    let draft = Draft::new(kind, content.as_str().ok_or("the content is no text")?, now);
    let tags: Vec<Vec<String>> = serde_json::from_value(tags.clone())?;
    Ok(keys.sign(tags.into_iter().fold(draft, Draft::tag)))
}

async fn publish(socket: &mut Socket, event: &Event) -> Outcome<()> {
    let receipt = socket.publish(event).await?;
    Ok(say(&RelayFrame::Ok(event.id, receipt.is_accepted, receipt.message).to_json())?)
}

async fn act(socket: &mut Socket, keys: &Keys, line: &str) -> Outcome<()> {
    let items: Vec<Value> = serde_json::from_str(line)?;
    if items.first() == Some(&json!("SIGN")) {
        return publish(socket, &sign(keys, &items)?).await;
    }
    match ClientFrame::parse(line)? {
        ClientFrame::Event(event) => publish(socket, &event).await,
        ClientFrame::Req(id, filters) => Ok(socket.subscribe(&id, filters).await?),
        ClientFrame::Count(id, filters) => Ok(socket.count(&id, filters).await?),
        ClientFrame::Close(id) => Ok(socket.unsubscribe(&id).await?),
        ClientFrame::Auth(_) => Err("the answer to a challenge is given without being told".into()),
    }
}

async fn talk(url: String, waits_for_login: bool) -> Outcome<()> {
    let keys = Keys::generate();
    say(&json!(["KEY", keys.public_key()]).to_string())?;
    let login = Login { relay: url, keys: keys.clone(), owner: None };
    let mut socket = match waits_for_login {
        true => Socket::connect(login, Limits::default()).await?,
        false => Socket::connect_lazily(login, Limits::default()).await?,
    };
    let mut lines = BufReader::new(stdin()).lines();
    loop {
        let line = async { Next::Line(lines.next().await) };
        let incoming = async { Next::Heard(socket.next().await) };
        match line.or(incoming).await {
            Next::Line(Some(line)) => act(&mut socket, &keys, &line?).await?,
            Next::Line(None) => break,
            Next::Heard(incoming) => say(&heard(incoming?).to_json())?,
        }
    }
    let dropped = socket.dropped();
    socket.close().await?;
    Ok(say(&json!(["DROPPED", dropped.forged, dropped.malformed]).to_string())?)
}

fn main() -> Outcome<()> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let waits_for_login = words.first().is_some_and(|word| word == "--login");
    if waits_for_login {
        words.remove(0);
    }
    let [url] = words.as_slice() else { return Err("usage: talk [--login] ws://HOST:PORT".into()) };
    block_on(talk(url.clone(), waits_for_login))
}
