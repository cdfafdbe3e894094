//! A server of its own for each test, and a client that shows every frame.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_std::future::timeout;
use async_std::net::TcpStream;
use async_tungstenite::tungstenite::{Error, Message};
use async_tungstenite::WebSocketStream;
use futures_lite::StreamExt;
use serde_json::{json, Value};
use waxlog_nostr::auth::answer_challenge;
use waxlog_nostr::{Draft, Event, Keys};
use waxlog_relay::server::limits::Limits;
use waxlog_relay::{Server, ServerSettings};

/// How long a test waits for what must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A relay with its folder, both gone at the end of the test.
pub(crate) struct TestRelay {
    pub(crate) server: Server,
    _folder: tempfile::TempDir,
}

/// Limits under which no quota is in the way.
pub(crate) fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.quotas.are_on = false;
    limits
}

impl TestRelay {
    pub(crate) async fn start() -> Self {
        Self::with(limits()).await
    }

    pub(crate) async fn with(limits: Limits) -> Self {
        Self::set_up(|settings| settings.limits = limits).await
    }

    pub(crate) async fn set_up(change: impl FnOnce(&mut ServerSettings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = ServerSettings::on_loopback(folder.path().to_owned(), Keys::generate());
        settings.limits = limits();
        change(&mut settings);
        Self { server: Server::start(settings).await.unwrap(), _folder: folder }
    }

    pub(crate) fn url(&self) -> String {
        format!("ws://{}", self.server.address())
    }

    /// A connection without an identity, and its challenge.
    pub(crate) async fn connect(&self) -> (Client, String) {
        let mut client = Client::connect(&self.url()).await;
        let challenge = client.next().await;
        assert_eq!(challenge[0], "AUTH", "{challenge}");
        (client, challenge[1].as_str().unwrap().to_owned())
    }

    /// A connection of `keys`.
    pub(crate) async fn login(&self, keys: &Keys) -> Client {
        let (mut client, challenge) = self.connect().await;
        client.authenticate(keys, &self.url(), &challenge).await;
        client
    }
}

/// One socket.
pub(crate) struct Client {
    pub(crate) socket: WebSocketStream<TcpStream>,
    pub(crate) stream: TcpStream,
}

impl Client {
    pub(crate) async fn connect(url: &str) -> Self {
        let stream = TcpStream::connect(url.trim_start_matches("ws://")).await.unwrap();
        let (socket, _) = async_tungstenite::client_async(url, stream.clone()).await.unwrap();
        Self { socket, stream }
    }

    pub(crate) async fn authenticate(&mut self, keys: &Keys, url: &str, challenge: &str) {
        let proof = answer_challenge(keys, url, challenge, None, now());
        self.say(&json!(["AUTH", proof])).await;
        assert_eq!(self.next().await, json!(["OK", proof.id, true, ""]));
    }

    pub(crate) async fn say(&mut self, frame: &Value) {
        self.say_text(&frame.to_string()).await;
    }

    pub(crate) async fn say_text(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    /// The next message; none when the relay has ended the connection.
    pub(crate) async fn message(&mut self) -> Option<Message> {
        match timeout(PATIENCE, self.socket.next()).await.expect("nothing came in time") {
            Some(Ok(message)) => Some(message),
            None
            | Some(Err(Error::ConnectionClosed | Error::AlreadyClosed | Error::Io(_) | Error::Protocol(_))) => {
                None
            }
            Some(Err(error)) => panic!("{error}"),
        }
    }

    /// The next frame.
    pub(crate) async fn next(&mut self) -> Value {
        loop {
            match self.message().await.expect("the connection has ended") {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// All frames up to the end of the connection.
    pub(crate) async fn rest(&mut self) -> Vec<Value> {
        let mut rest = Vec::new();
        while let Some(message) = self.message().await {
            if let Message::Text(text) = message {
                rest.push(serde_json::from_str(&text).unwrap());
            }
        }
        rest
    }

    /// Publishes and gives what the relay says to it: accepted, and the text.
    pub(crate) async fn publish(&mut self, event: &Event) -> (bool, String) {
        self.say(&json!(["EVENT", event])).await;
        let answer = self.next().await;
        assert_eq!((&answer[0], &answer[1]), (&json!("OK"), &json!(event.id)), "{answer}");
        (answer[2].as_bool().unwrap(), answer[3].as_str().unwrap().to_owned())
    }

    /// Subscribes and gives the ids of the stored events.
    pub(crate) async fn subscribe(&mut self, id: &str, filters: &[Value]) -> Vec<Value> {
        let mut frame = vec![json!("REQ"), json!(id)];
        frame.extend_from_slice(filters);
        self.say(&Value::from(frame)).await;
        let mut ids = Vec::new();
        loop {
            let answer = self.next().await;
            assert_eq!(answer[1], id, "{answer}");
            match answer[0].as_str() {
                Some("EVENT") => ids.push(answer[2]["id"].clone()),
                Some("EOSE") => return ids,
                _ => panic!("{answer}"),
            }
        }
    }

    /// Makes sure that nothing has come but the answer to a question asked now.
    pub(crate) async fn is_quiet(&mut self) {
        self.say(&json!(["CLOSE", "is it quiet"])).await;
        assert_eq!(self.next().await, json!(["CLOSED", "is it quiet", ""]));
    }
}

/// A note of now.
pub(crate) fn note(keys: &Keys, content: &str) -> Event {
    keys.sign(Draft::new(1, content, now()))
}
