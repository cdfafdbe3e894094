//! A connection to a relay over a WebSocket.
//!
//! [`Socket::connect`] gives a connection that is logged in, [`Socket::connect_lazily`] one that logs in once the
//! relay asks. Its methods may be dropped while they wait and
//! called again: nothing that came or was to be sent is lost, though a frame may then be sent twice, which
//! no relay minds. What comes while a method waits for something else is kept, up to
//! [`MAX_BUFFERED_FRAMES`], for [`Socket::next`].

use std::collections::VecDeque;
use std::future::Future;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_std::future::timeout;
use async_tungstenite::tungstenite::protocol::WebSocketConfig;
use async_tungstenite::tungstenite::{Error as WsError, Message};
use async_tungstenite::{client_async_with_config, WebSocketStream};
use futures_lite::StreamExt;
use url::Url;

use super::backoff::{Backoff, UNIT_MS};
use super::session::{Dropped, Incoming, Login, Session, SessionError, Step, AUTH_REQUIRED};
use super::transport::{self, ByteStream};
use crate::event::Event;
use crate::filter::Filter;
use crate::frame::ClientFrame;

/// The longest frame that is taken, in bytes. Relays take half of it.
pub const MAX_FRAME_BYTES: usize = 1_048_576;
/// The most frames that are kept while something else is waited for.
pub const MAX_BUFFERED_FRAMES: usize = 4_096;

/// How long each thing may take.
#[derive(Debug, Clone)]
pub struct Limits {
    /// TCP, TLS and the upgrade to a WebSocket.
    pub connect: Duration,
    /// The relay's challenge.
    pub challenge: Duration,
    /// The relay's word on the login.
    pub login: Duration,
    /// The relay's word on an event.
    pub publish: Duration,
    /// One frame's way out.
    pub send: Duration,
    /// Silence after which the relay is asked for a sign of life.
    pub quiet: Duration,
    /// Silence after that, after which the connection counts as lost.
    pub sign_of_life: Duration,
    /// The unit of the waits before connecting again, in milliseconds.
    pub backoff_unit_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            challenge: Duration::from_secs(20),
            login: Duration::from_secs(20),
            publish: Duration::from_secs(30),
            send: Duration::from_secs(10),
            quiet: Duration::from_secs(30),
            sign_of_life: Duration::from_secs(10),
            backoff_unit_ms: UNIT_MS,
        }
    }
}

/// Why a connection is none, or none any more.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Not the URL of a relay.
    #[error("{0:?} is not a ws:// or wss:// URL with a host")]
    Url(String),
    /// No way to the relay.
    #[error("cannot connect to {relay}: {source}")]
    Connect {
        /// The relay.
        relay: String,
        /// Why.
        source: std::io::Error,
    },
    /// The relay answers, but not with a WebSocket.
    #[error("{relay} answered with status {status} instead of a WebSocket")]
    Status {
        /// The relay.
        relay: String,
        /// The HTTP status.
        status: u16,
    },
    /// Something took too long.
    #[error("{what} did not come within {} ms", .limit.as_millis())]
    Timeout {
        /// What.
        what: &'static str,
        /// How long it was waited for.
        limit: Duration,
    },
    /// The login failed, or a limit of the session was reached.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The relay has closed the connection.
    #[error("the relay closed the connection{}", .0.as_ref().map(|why| format!(": {why}")).unwrap_or_default())]
    Closed(Option<String>),
    /// More came than is kept.
    #[error("more than {MAX_BUFFERED_FRAMES} frames came while another was waited for; connect again")]
    Overflow,
    /// The relay does not take more events for now.
    #[error("the relay did not take the event: {0}")]
    RateLimited(String),
    /// The WebSocket broke.
    #[error("the connection broke: {0}")]
    Broken(Box<WsError>),
}

/// A relay's word on an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Whether it was taken.
    pub is_accepted: bool,
    /// Why not, or a note.
    pub message: String,
}

/// A connection, logged in or ready to log in.
pub struct Socket {
    stream: WebSocketStream<Box<dyn ByteStream>>,
    session: Session,
    login: Login,
    limits: Limits,
    outbox: VecDeque<String>,
    inbox: VecDeque<Incoming>,
    heard_at: Instant,
    is_asked: bool,
    connected_at: Instant,
    backoff: Backoff,
    greeting: Greeting,
}

/// When a relay asks who is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Greeting {
    /// With its first frame, always.
    AtOnce,
    /// When something needs a login, or never.
    WhenNeeded,
}

impl SocketError {
    /// Whether trying again cannot help: a wrong URL, a relay that is none, a refused login.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Url(_) => true,
            Self::Status { status, .. } => !matches!(status, 408 | 429 | 500..),
            Self::Connect { source, .. } => transport::is_final(source),
            Self::Session(SessionError::Refused(why)) => !why.starts_with("error:"),
            Self::Session(_) => true,
            Self::Broken(error) => matches!(**error, WsError::Url(_) | WsError::HttpFormat(_)),
            _ => false,
        }
    }
}

impl Socket {
    /// Connects and logs in.
    pub async fn connect(login: Login, limits: Limits) -> Result<Self, SocketError> {
        Self::greet(login, limits, Greeting::AtOnce).await
    }

    /// Connects to a relay that may ask for a login later, or never: NIP-42 leaves that to the relay. What was
    /// refused for want of a login is asked for again after it.
    pub async fn connect_lazily(login: Login, limits: Limits) -> Result<Self, SocketError> {
        Self::greet(login, limits, Greeting::WhenNeeded).await
    }

    async fn greet(login: Login, limits: Limits, greeting: Greeting) -> Result<Self, SocketError> {
        let stream = open(&login, &limits).await?;
        let now = Instant::now();
        let mut socket = Self {
            stream,
            session: Session::new(login.clone()),
            login,
            backoff: Backoff::with_unit_ms(limits.backoff_unit_ms),
            limits,
            outbox: VecDeque::new(),
            inbox: VecDeque::new(),
            heard_at: now,
            is_asked: false,
            connected_at: now,
            greeting,
        };
        socket.log_in().await?;
        Ok(socket)
    }

    async fn log_in(&mut self) -> Result<(), SocketError> {
        if self.greeting == Greeting::WhenNeeded {
            return Ok(());
        }
        let Limits { challenge, login, .. } = self.limits;
        within("the relay's challenge", challenge, self.advance_until(Session::is_challenged)).await?;
        within("the relay's word on the login", login, self.advance_until(Session::is_logged_in)).await
    }

    async fn advance_until(&mut self, is_reached: fn(&Session) -> bool) -> Result<(), SocketError> {
        while !is_reached(&self.session) {
            self.advance().await?;
        }
        self.flush().await
    }

    /// Publishes an event and waits for the relay's word on it. One that needs a login is sent again after it.
    pub async fn publish(&mut self, event: &Event) -> Result<Receipt, SocketError> {
        let logins = self.session.logins();
        let receipt = self.publish_once(event).await?;
        let wants_login = !receipt.is_accepted && receipt.message.starts_with(AUTH_REQUIRED);
        let is_settled = self.session.is_logged_in() && self.session.logins() == logins;
        if !wants_login || is_settled {
            return Ok(receipt);
        }
        match within("a login for the event", self.limits.login, self.advance_until(Session::is_logged_in))
            .await
        {
            Ok(()) => self.publish_once(event).await,
            Err(SocketError::Timeout { .. }) => Ok(receipt),
            Err(error) => Err(error),
        }
    }

    async fn publish_once(&mut self, event: &Event) -> Result<Receipt, SocketError> {
        self.outbox.push_back(ClientFrame::Event(event.clone()).to_json());
        within("the relay's word on the event", self.limits.publish, self.receipt(event)).await
    }

    async fn receipt(&mut self, event: &Event) -> Result<Receipt, SocketError> {
        loop {
            let known = self.inbox.len();
            self.advance().await?;
            let is_answer = |incoming: &Incoming| match incoming {
                Incoming::Ok(id, ..) => *id == event.id,
                Incoming::Notice(text) => text.starts_with("rate-limited:"),
                _ => false,
            };
            let Some(at) = self.inbox.iter().skip(known).position(is_answer) else { continue };
            match self.inbox.remove(known + at) {
                Some(Incoming::Ok(_, is_accepted, message)) => return Ok(Receipt { is_accepted, message }),
                Some(Incoming::Notice(text)) => return Err(SocketError::RateLimited(text)),
                _ => {}
            }
        }
    }

    /// Publishes an event without waiting: the relay's word comes as [`Incoming::Ok`].
    pub async fn send_event(&mut self, event: &Event) -> Result<(), SocketError> {
        self.send(&ClientFrame::Event(event.clone())).await
    }

    /// Opens a subscription, or replaces one.
    pub async fn subscribe(&mut self, id: &str, filters: Vec<Filter>) -> Result<(), SocketError> {
        let frame = self.session.subscribe(id, filters)?;
        self.send(&frame).await
    }

    /// Ends a subscription.
    pub async fn unsubscribe(&mut self, id: &str) -> Result<(), SocketError> {
        let frame = self.session.unsubscribe(id);
        self.send(&frame).await
    }

    /// Asks how many events answer filters: the answer comes as [`Incoming::Count`].
    pub async fn count(&mut self, id: &str, filters: Vec<Filter>) -> Result<(), SocketError> {
        self.send(&ClientFrame::Count(id.to_owned(), filters)).await
    }

    /// What the relay says next. Events are verified.
    pub async fn next(&mut self) -> Result<Incoming, SocketError> {
        loop {
            match self.inbox.pop_front() {
                Some(incoming) => return Ok(incoming),
                None => self.advance().await?,
            }
        }
    }

    /// What was dropped on this and earlier connections.
    pub fn dropped(&self) -> Dropped {
        self.session.dropped()
    }

    /// Says goodbye.
    pub async fn close(mut self) -> Result<(), SocketError> {
        self.flush().await?;
        match within("the end of the connection", self.limits.send, async {
            self.stream.close(None).await.map_err(broken)
        })
        .await
        {
            Err(SocketError::Closed(_)) => Ok(()),
            other => other,
        }
    }

    /// Connects again after a loss, waiting longer before each of at most `attempts`, and asks for the same
    /// subscriptions from the times that `since` gives. `draw` is a chance from 0 to 1. What came before the
    /// loss is still there for [`Socket::next`]; what was not sent is not sent any more.
    pub async fn reconnect(
        &mut self,
        attempts: usize,
        since: impl Fn(&str) -> Option<u64>,
        mut draw: impl FnMut() -> f64,
    ) -> Result<(), SocketError> {
        self.backoff.held_for(self.connected_at.elapsed().as_millis().try_into().unwrap_or(u64::MAX));
        let mut last = SocketError::Closed(None);
        for _ in 0..attempts {
            async_std::task::sleep(Duration::from_millis(self.backoff.next_delay_ms(draw()))).await;
            match self.try_again(&since).await {
                Ok(()) => return Ok(()),
                Err(error) if error.is_final() => return Err(error),
                Err(error) => {
                    log::warn!("cannot reach {} again: {error}", self.login.relay);
                    last = error;
                }
            }
        }
        Err(last)
    }

    async fn try_again(&mut self, since: &impl Fn(&str) -> Option<u64>) -> Result<(), SocketError> {
        self.stream = open(&self.login, &self.limits).await?;
        self.session.renew(since);
        self.outbox.clear();
        (self.heard_at, self.is_asked) = (Instant::now(), false);
        self.log_in().await?;
        self.connected_at = Instant::now();
        self.outbox.extend(self.session.requests().map(|request| request.to_json()));
        self.flush().await
    }

    async fn send(&mut self, frame: &ClientFrame) -> Result<(), SocketError> {
        self.outbox.push_back(frame.to_json());
        self.flush().await
    }

    async fn flush(&mut self) -> Result<(), SocketError> {
        while let Some(text) = self.outbox.front() {
            let message = Message::text(text.clone());
            let sent = async { self.stream.send(message).await.map_err(broken) };
            within("the frame's way out", self.limits.send, sent).await?;
            self.outbox.pop_front();
        }
        Ok(())
    }

    /// Sends what waits, takes one message and does what follows from it.
    async fn advance(&mut self) -> Result<(), SocketError> {
        self.flush().await?;
        let limit = self.limits.quiet + if self.is_asked { self.limits.sign_of_life } else { Duration::ZERO };
        let left = limit.saturating_sub(self.heard_at.elapsed());
        match timeout(left, self.stream.next()).await {
            Ok(Some(Ok(message))) => self.on_message(message),
            Ok(Some(Err(error))) => Err(broken(error)),
            Ok(None) => Err(SocketError::Closed(None)),
            Err(_) if self.is_asked => {
                Err(SocketError::Timeout { what: "a sign of life of the relay", limit })
            }
            Err(_) => {
                self.is_asked = true;
                let ping =
                    async { self.stream.send(Message::Ping(Default::default())).await.map_err(broken) };
                within("the ping's way out", self.limits.send, ping).await
            }
        }
    }

    fn on_message(&mut self, message: Message) -> Result<(), SocketError> {
        (self.heard_at, self.is_asked) = (Instant::now(), false);
        let steps = match &message {
            Message::Text(text) => self.session.on_text(text, now())?,
            Message::Close(why) => {
                return Err(SocketError::Closed(why.as_ref().map(|why| why.reason.to_string())));
            }
            _ => Vec::new(),
        };
        for step in steps {
            match step {
                Step::Send(frame) => self.outbox.push_back(frame.to_json()),
                Step::Give(_) if self.inbox.len() >= MAX_BUFFERED_FRAMES => {
                    return Err(SocketError::Overflow)
                }
                Step::Give(incoming) => self.inbox.push_back(incoming),
            }
        }
        Ok(())
    }
}

async fn open(login: &Login, limits: &Limits) -> Result<WebSocketStream<Box<dyn ByteStream>>, SocketError> {
    let url =
        Url::parse(&login.relay).ok().filter(|url| matches!(url.scheme(), "ws" | "wss") && url.has_host());
    let url = url.ok_or_else(|| SocketError::Url(login.relay.clone()))?;
    within("the connection to the relay", limits.connect, upgrade(&login.relay, &url)).await
}

async fn upgrade(relay: &str, url: &Url) -> Result<WebSocketStream<Box<dyn ByteStream>>, SocketError> {
    let refused = |source| SocketError::Connect { relay: relay.to_owned(), source };
    let bytes = transport::open(url).await.map_err(refused)?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_FRAME_BYTES))
        .max_frame_size(Some(MAX_FRAME_BYTES));
    match client_async_with_config(url.as_str(), bytes, Some(config)).await {
        Ok((stream, _)) => Ok(stream),
        Err(WsError::Http(answer)) => {
            Err(SocketError::Status { relay: relay.to_owned(), status: answer.status().as_u16() })
        }
        Err(WsError::Io(source)) => Err(refused(source)),
        Err(error) => Err(broken(error)),
    }
}

fn broken(error: WsError) -> SocketError {
    match error {
        WsError::ConnectionClosed | WsError::AlreadyClosed => SocketError::Closed(None),
        other => SocketError::Broken(Box::new(other)),
    }
}

async fn within<T>(
    what: &'static str,
    limit: Duration,
    work: impl Future<Output = Result<T, SocketError>>,
) -> Result<T, SocketError> {
    timeout(limit, work).await.unwrap_or(Err(SocketError::Timeout { what, limit }))
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

#[cfg(test)]
#[path = "socket_tests.rs"]
mod tests;
