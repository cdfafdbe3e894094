//! A connection to the relay: a socket, read and written by tasks that know nothing of what it is for.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_channel::{Receiver, Sender};
use async_std::future::timeout;
use async_std::task::{self, JoinHandle};
use async_tungstenite::tungstenite::client::IntoClientRequest;
use async_tungstenite::tungstenite::http::HeaderValue;
use async_tungstenite::tungstenite::protocol::WebSocketConfig;
use async_tungstenite::tungstenite::{Error, Message};
use async_tungstenite::WebSocketStream;
use futures_lite::{FutureExt, StreamExt};
use waxlog_harness_core::record::{Happened, LinkFailure};
use waxlog_nostr::client::transport::{self, ByteStream};
use waxlog_nostr::frame::RelayFrame;

use crate::effects::Shared;

/// How long opening may take.
const OPEN: Duration = Duration::from_secs(30);
/// How long writing one frame may take.
const WRITE: Duration = Duration::from_secs(10);
/// How long the relay may take to answer a good-bye.
const CLOSE: Duration = Duration::from_secs(5);
/// How many frames wait to be written. One more, and the connection is given up: the relay does not read.
const OUTGOING_MAX: usize = 1_024;
/// Largest frame that is taken, in bytes.
const FRAME_MAX_BYTES: usize = 4 * 1024 * 1024;
/// What a failed look-up of a name says, by system.
const DNS_TEXTS: [&str; 4] =
    ["nodename nor servname", "Name or service not known", "No such host", "failed to lookup address"];

/// A connection, or one that is being made.
pub(crate) struct Connection {
    outgoing: Sender<Message>,
    task: JoinHandle<()>,
}

impl Connection {
    /// Begins to connect. What comes of it is told to the loop.
    pub(crate) fn open(link: u64, shared: Arc<Shared>) -> Self {
        let (outgoing, waiting) = async_channel::bounded(OUTGOING_MAX);
        let task = task::spawn(async move {
            match timeout(OPEN, connect(&shared)).await {
                Ok(Ok(socket)) => {
                    shared.tell(Happened::RelayOpened, Vec::new()).await;
                    let reason = serve(link, socket, &waiting, &shared).await;
                    shared.tell(Happened::RelayLost { link, reason }, Vec::new()).await;
                }
                Ok(Err((class, reason))) => {
                    shared.tell(Happened::RelayRefused { class, reason }, Vec::new()).await
                }
                Err(_) => {
                    let reason = format!("no connection within {} s", OPEN.as_secs());
                    let class = LinkFailure::Transient;
                    shared.tell(Happened::RelayRefused { class, reason }, Vec::new()).await;
                }
            }
        });
        Self { outgoing, task }
    }

    /// Sends a frame. A queue that is full means that the relay does not read: the connection ends.
    pub(crate) fn send(&self, frame: String) {
        self.push(Message::text(frame));
    }

    pub(crate) fn ping(&self) {
        self.push(Message::Ping(Default::default()));
    }

    fn push(&self, message: Message) {
        if self.outgoing.try_send(message).is_err() {
            self.outgoing.close();
        }
    }

    /// Ends the connection; a clean end says good-bye after all that waits was written.
    pub(crate) async fn close(self, clean: bool) {
        if !clean {
            self.task.cancel().await;
            return;
        }
        if self.outgoing.try_send(Message::Close(None)).is_err() {
            self.outgoing.close();
        }
        // A relay that does not answer is left: dropping the task closes the socket.
        let _ = timeout(CLOSE, self.task).await;
    }
}

type Socket = WebSocketStream<Box<dyn ByteStream>>;

async fn connect(shared: &Shared) -> Result<Socket, (LinkFailure, String)> {
    let config = &shared.config;
    let url = url::Url::parse(&config.settings.relay_url)
        .map_err(|error| (LinkFailure::Terminal, format!("the relay's URL is none: {error}")))?;
    if !matches!(url.scheme(), "ws" | "wss") {
        let reason = format!("the relay's URL must begin with ws:// or wss://, got {}://", url.scheme());
        return Err((LinkFailure::Terminal, reason));
    }
    let stream = transport::open(&url).await.map_err(|error| refused_by_system(&error))?;
    let mut request =
        url.as_str().into_client_request().map_err(|error| (LinkFailure::Terminal, error.to_string()))?;
    if let Some(host) = config.host_header.as_deref().and_then(|host| HeaderValue::from_str(host).ok()) {
        request.headers_mut().insert("host", host);
    }
    let limits = WebSocketConfig::default()
        .max_message_size(Some(FRAME_MAX_BYTES))
        .max_frame_size(Some(FRAME_MAX_BYTES));
    let connected = async_tungstenite::client_async_with_config(request, stream, Some(limits)).await;
    connected.map(|(socket, _)| socket).map_err(|error| refused_by_relay(&error))
}

fn refused_by_system(error: &io::Error) -> (LinkFailure, String) {
    let text = error.to_string();
    let class = match error.kind() {
        _ if DNS_TEXTS.iter().any(|known| text.contains(known)) => LinkFailure::Dns,
        io::ErrorKind::InvalidInput => LinkFailure::Terminal,
        // What a certificate lacks, no further try will give it.
        io::ErrorKind::InvalidData => LinkFailure::Terminal,
        _ => LinkFailure::Transient,
    };
    (class, text)
}

fn refused_by_relay(error: &Error) -> (LinkFailure, String) {
    let class = match error {
        Error::Http(answer) => match answer.status().as_u16() {
            408 | 429 | 500..=599 => LinkFailure::Transient,
            _ => LinkFailure::Terminal,
        },
        Error::Protocol(_) => {
            let text = error.to_string();
            let is_cut = text.contains("Handshake not finished") || text.contains("without closing");
            if is_cut {
                LinkFailure::Transient
            } else {
                LinkFailure::Terminal
            }
        }
        Error::Io(_) | Error::ConnectionClosed | Error::AlreadyClosed => LinkFailure::Transient,
        _ => LinkFailure::Terminal,
    };
    (class, error.to_string())
}

/// Reads and writes until one of them ends. Gives the reason.
async fn serve(link: u64, socket: Socket, outgoing: &Receiver<Message>, shared: &Shared) -> String {
    let (mut writer, mut reader) = socket.split();
    let reading = async {
        loop {
            match reader.next().await {
                None => return "the relay has ended the connection".to_owned(),
                Some(Err(error)) => return error.to_string(),
                Some(Ok(Message::Text(text))) => frame(link, text.as_str(), shared).await,
                Some(Ok(Message::Binary(bytes))) => match std::str::from_utf8(&bytes) {
                    Ok(text) => frame(link, text, shared).await,
                    Err(_) => log::warn!("the relay sent a binary frame that is no text; it is passed over"),
                },
                Some(Ok(Message::Pong(_))) => shared.tell(Happened::RelayPonged { link }, Vec::new()).await,
                Some(Ok(Message::Close(_))) => return "the relay said good-bye".to_owned(),
                Some(Ok(Message::Ping(_) | Message::Frame(_))) => {}
            }
        }
    };
    let writing = async {
        while let Ok(message) = outgoing.recv().await {
            match timeout(WRITE, writer.send(message)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return format!("a frame could not be written: {error}"),
                Err(_) => return format!("a frame could not be written within {} s", WRITE.as_secs()),
            }
        }
        "the relay does not read what is sent to it".to_owned()
    };
    reading.or(writing).await
}

/// Hands a frame on. An event in it is checked here, before anything else looks at it.
async fn frame(link: u64, text: &str, shared: &Shared) {
    let forged = match RelayFrame::parse(text) {
        Ok(RelayFrame::Event(_, event)) => event.verify().err().map(|error| error.to_string()),
        _ => None,
    };
    shared.tell(Happened::RelayFrame { link, forged }, text.as_bytes().to_vec()).await;
}
