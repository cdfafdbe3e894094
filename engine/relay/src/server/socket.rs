//! One socket from its upgrade to its end: a task that reads frames and one that writes what waits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_std::future::timeout;
use async_std::net::TcpStream;
use async_std::task;
use async_tungstenite::tungstenite::error::CapacityError;
use async_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use async_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use async_tungstenite::tungstenite::{Error as SocketError, Message};
use async_tungstenite::{WebSocketReceiver, WebSocketSender, WebSocketStream};
use futures_lite::StreamExt;
use futures_util::SinkExt;
use waxlog_nostr::frame::RelayFrame;

use super::connection::Connection;
use super::linger::linger;
use super::outbox::Outgoing;
use super::session::Session;
use super::Relay;

/// What is read from the kernel at once; each connection has so much.
const READ_BUFFER_BYTES: usize = 8 << 10;
/// What is gathered before it is handed to the kernel.
const WRITE_BUFFER_BYTES: usize = 16 << 10;
/// How much of a frame that was refused is still read, so that the client can read why.
const MAX_LINGER_BYTES: usize = 16 << 20;

/// Codes of RFC 6455.
const NORMAL: u16 = 1000;
const GOING_AWAY: u16 = 1001;
const POLICY: u16 = 1008;
const TOO_BIG: u16 = 1009;

/// Serves an upgraded stream. `early` are bytes that came behind the upgrade's head.
pub(crate) async fn serve(relay: Arc<Relay>, stream: TcpStream, early: Vec<u8>, host: String) {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(WRITE_BUFFER_BYTES)
        .max_frame_size(Some(relay.limits.frame_bytes))
        .max_message_size(Some(relay.limits.frame_bytes));
    let socket =
        WebSocketStream::from_partially_read(stream.clone(), early, Role::Server, Some(config)).await;
    let (sender, receiver) = socket.split();
    let connection = Connection::new(&relay.limits);
    let writer = task::spawn(write(relay.clone(), connection.clone(), sender));
    let mut session = Session::open(relay.clone(), connection.clone(), host);
    let end = read(&relay, &connection, receiver, &mut session).await;
    session.close().await;
    match end {
        End::Gone => connection.outbox.kill(),
        End::Closed => connection.outbox.close(NORMAL, ""),
        End::Stopping => connection.outbox.close(GOING_AWAY, "relay restarting"),
        End::NoIdentity => connection.outbox.close(POLICY, "authentication timed out"),
        End::TooBig(frame) => {
            connection.say(&RelayFrame::Notice(frame));
            connection.outbox.close(TOO_BIG, "frame too large");
        }
    }
    writer.await;
    linger(&stream, MAX_LINGER_BYTES).await;
}

/// Why reading has ended.
enum End {
    /// The client is gone, or is not worth a word any more.
    Gone,
    /// The client has said goodbye.
    Closed,
    /// The relay stops.
    Stopping,
    /// The client did not say in time who it is.
    NoIdentity,
    /// A frame over the limit, with what the client is told.
    TooBig(String),
}

async fn read(
    relay: &Relay,
    connection: &Connection,
    mut receiver: WebSocketReceiver<TcpStream>,
    session: &mut Session,
) -> End {
    let deadline = Instant::now() + relay.limits.auth_deadline;
    loop {
        let next = async {
            connection.outbox.room().await;
            receiver.next().await
        };
        let next = relay.stopper.stop_future(connection.outbox.killed().stop_future(next));
        let next = match session.has_identity() {
            true => next.await,
            false => match timeout(deadline.saturating_duration_since(Instant::now()), next).await {
                Ok(next) => next,
                Err(_) => return End::NoIdentity,
            },
        };
        let message = match next {
            None => return End::Stopping,
            Some(None | Some(None)) => return End::Gone,
            Some(Some(Some(message))) => message,
        };
        let handled = match message {
            Ok(Message::Text(text)) => session.handle(text.as_str()).await,
            Ok(Message::Binary(bytes)) => match std::str::from_utf8(&bytes) {
                Ok(text) => session.handle(text).await,
                Err(_) => {
                    session.malformed("not UTF-8");
                    Ok(())
                }
            },
            Ok(Message::Close(_)) => return End::Closed,
            Ok(Message::Ping(_) | Message::Frame(_)) => Ok(()),
            Ok(Message::Pong(_)) => {
                session.ponged();
                Ok(())
            }
            Err(SocketError::Capacity(CapacityError::MessageTooLong { size, max_size })) => {
                let text = format!("error: frame too large ({size} bytes, limit {max_size})");
                return End::TooBig(text);
            }
            Err(SocketError::ConnectionClosed | SocketError::AlreadyClosed) => return End::Closed,
            Err(error) => {
                log::debug!("a socket failed: {error}");
                return End::Gone;
            }
        };
        if handled.is_err() {
            return End::Stopping;
        }
    }
}

/// Writes what waits until the line ends, the client is gone or too slow, or does not answer pings.
async fn write(relay: Arc<Relay>, connection: Arc<Connection>, mut sender: WebSocketSender<TcpStream>) {
    let outbox = &connection.outbox;
    let mut ping_at = Instant::now() + relay.limits.ping_every;
    loop {
        let Some(frame) = outbox.take() else {
            match stalls(&relay, &connection, sender.flush()).await {
                Ok(()) => {}
                Err(Stalled) => break,
            }
            let wait = ping_at.saturating_duration_since(Instant::now());
            match outbox.killed().stop_future(timeout(wait, outbox.ready())).await {
                None => break,
                Some(Ok(())) => {}
                Some(Err(_)) => {
                    ping_at = Instant::now() + relay.limits.ping_every;
                    if connection.count_ping() > relay.limits.unanswered_pings {
                        break;
                    }
                    outbox.control(Outgoing::Ping);
                }
            }
            continue;
        };
        let is_last = matches!(frame, Outgoing::Close(..));
        if stalls(&relay, &connection, sender.feed(message(frame))).await.is_err() {
            break;
        }
        if is_last {
            // The client may be gone already, in which case there is nobody to tell.
            let _ = stalls(&relay, &connection, sender.flush()).await;
            break;
        }
    }
    outbox.kill();
}

/// The client takes nothing any more.
struct Stalled;

async fn stalls(
    relay: &Relay,
    connection: &Connection,
    write: impl std::future::Future<Output = Result<(), SocketError>>,
) -> Result<(), Stalled> {
    let limit: Duration = relay.limits.write_stall;
    match connection.outbox.killed().stop_future(timeout(limit, write)).await {
        Some(Ok(Ok(()))) => Ok(()),
        _ => Err(Stalled),
    }
}

fn message(frame: Outgoing) -> Message {
    match frame {
        Outgoing::Text(text) => Message::text(text),
        Outgoing::Event { head, json } => {
            let mut text = String::with_capacity(head.len() + json.len() + 1);
            text.push_str(&head);
            text.push_str(&json);
            text.push(']');
            Message::text(text)
        }
        Outgoing::Ping => Message::Ping(Vec::new().into()),
        Outgoing::Close(code, reason) => {
            Message::Close(Some(CloseFrame { code: CloseCode::from(code), reason: reason.into() }))
        }
    }
}
