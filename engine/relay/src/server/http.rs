//! HTTP: which request goes where, and the only file that knows the HTTP library's requests.

use std::sync::Arc;

use async_std::net::TcpStream;
use async_tungstenite::tungstenite::handshake::derive_accept_key;
use futures_lite::AsyncReadExt;
use serde_json::{json, Value};
use trillium_http::{Body, Conn, HttpConfig, Method, ReceivedBody, Upgrade};

use super::transport::Watched;
use super::{bridge, info, linger, media, socket, Relay};

const SOCKET_VERSION: &str = "13";
/// How much of a body that was refused is still read, so that the client can read why.
const MAX_LINGER_BYTES: usize = 4 << 20;
/// How much of a body is read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// A connection under HTTP.
pub(crate) type HttpConn = Conn<Watched>;

/// An answer.
pub(crate) struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Body,
}

impl Answer {
    /// An answer without a body.
    pub(crate) fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Body::default() }
    }

    /// A short text.
    fn text(text: &'static str) -> Self {
        Self { body: Body::new_static(text.as_bytes()), ..Self::empty(200) }
            .header("content-type", "text/plain")
    }

    /// A JSON value.
    pub(crate) fn json(status: u16, value: &Value) -> Self {
        Self::json_text(status, value.to_string())
    }

    /// A text that is JSON.
    pub(crate) fn json_text(status: u16, text: String) -> Self {
        Self { body: Body::new_static(text.into_bytes()), ..Self::empty(status) }
            .header("content-type", "application/json")
    }

    /// An error.
    pub(crate) fn error(status: u16, why: impl ToString) -> Self {
        Self::json(status, &json!({"error": why.to_string()}))
    }

    /// A stream of `len` bytes.
    pub(crate) fn stream(
        status: u16,
        content: impl futures_lite::AsyncRead + Send + Sync + 'static,
        len: u64,
    ) -> Self {
        Self { body: Body::new_streaming(content, Some(len)), ..Self::empty(status) }
    }

    /// The answer with one more header.
    pub(crate) fn header(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }
}

/// The text of a header, if it has one.
pub(crate) fn header<'a>(conn: &'a HttpConn, name: &'static str) -> Option<&'a str> {
    conn.request_headers().get_str(name)
}

/// Why a body could not be read.
pub(crate) enum BodyError {
    /// It is longer than allowed.
    TooLong,
    /// It ended early, or the client is too slow.
    Broken,
}

/// A body that is being read.
pub(crate) struct RequestBody<'conn> {
    body: ReceivedBody<'conn, Watched>,
    stated: Option<u64>,
    read: u64,
    max_bytes: u64,
}

impl<'conn> RequestBody<'conn> {
    /// Begins to read a body of at most `max_bytes`.
    pub(crate) async fn of(conn: &'conn mut HttpConn, max_bytes: usize) -> Result<Self, BodyError> {
        let max_bytes = max_bytes as u64;
        let stated = header(conn, "content-length").and_then(|length| length.parse::<u64>().ok());
        if stated.is_some_and(|stated| stated > max_bytes) {
            return Err(BodyError::TooLong);
        }
        Ok(Self { body: conn.request_body().await, stated, read: 0, max_bytes })
    }

    /// The next piece; an empty one is the end.
    pub(crate) async fn next(&mut self) -> Result<Vec<u8>, BodyError> {
        let mut piece = vec![0; CHUNK_BYTES];
        let length = self.body.read(&mut piece).await.map_err(|_| BodyError::Broken)?;
        piece.truncate(length);
        self.read += length as u64;
        match self.stated {
            _ if self.read > self.max_bytes => Err(BodyError::TooLong),
            Some(stated) if length == 0 && stated != self.read => Err(BodyError::Broken),
            _ => Ok(piece),
        }
    }

    /// All of it.
    pub(crate) async fn all(&mut self) -> Result<Vec<u8>, BodyError> {
        let mut all = Vec::new();
        loop {
            let piece = self.next().await?;
            if piece.is_empty() {
                return Ok(all);
            }
            all.extend(piece);
        }
    }
}

/// Serves a connection until it ends.
pub(crate) async fn serve(relay: Arc<Relay>, stream: TcpStream) {
    let config = HttpConfig::default().with_head_max_len(relay.limits.http_head_bytes);
    let watched = Watched::new(stream.clone(), relay.limits.http_idle);
    let handle = |conn: HttpConn| answer(relay.clone(), conn);
    match Conn::map_with_config(config, watched, relay.stopper.clone(), handle).await {
        Ok(Some(upgrade)) => upgraded(relay, upgrade).await,
        Ok(None) => linger::linger(&stream, MAX_LINGER_BYTES).await,
        Err(error) => log::debug!("an HTTP connection ended: {error}"),
    }
}

async fn upgraded(relay: Arc<Relay>, upgrade: Upgrade<Watched>) {
    let host = upgrade.request_headers.get_str("host").and_then(|host| relay.names.host(host));
    if let Some(host) = host {
        let early = upgrade.buffer.unwrap_or_default();
        socket::serve(relay, upgrade.transport.into_inner(), early, host).await;
    }
}

async fn answer(relay: Arc<Relay>, mut conn: HttpConn) -> HttpConn {
    let Answer { status, headers, body } = route(&relay, &mut conn).await;
    let must_close = matches!(status, 400 | 408 | 413);
    conn.set_status(status);
    let response = conn.response_headers_mut();
    response.insert("server", "waxlog");
    if must_close {
        response.insert("connection", "close");
    }
    for (name, value) in headers {
        response.insert(name, value);
    }
    conn.set_response_body(body);
    conn
}

async fn route(relay: &Arc<Relay>, conn: &mut HttpConn) -> Answer {
    let (method, path) = (conn.method(), conn.path().to_owned());
    let is_read = matches!(method, Method::Get | Method::Head);
    match path.as_str() {
        "/" if is_read => root(relay, conn),
        "/info" if is_read => information(relay),
        "/health" | "/_liveness" if is_read => Answer::text("ok"),
        "/_readiness" if is_read => bridge::readiness(relay).await,
        "/.well-known/nostr.json" if is_read => bridge::names(relay, conn).await,
        "/events" if method == Method::Post => bridge::events(relay, conn).await,
        "/query" if method == Method::Post => bridge::query(relay, conn).await,
        "/count" if method == Method::Post => bridge::count(relay, conn).await,
        "/upload" if method == Method::Put => media::upload(relay, conn, media::Takes::Any).await,
        "/media/upload" if method == Method::Put => media::upload(relay, conn, media::Takes::Pictures).await,
        "/"
        | "/info"
        | "/health"
        | "/_liveness"
        | "/_readiness"
        | "/.well-known/nostr.json"
        | "/events"
        | "/query"
        | "/count"
        | "/upload"
        | "/media/upload" => Answer::empty(405),
        _ => match path.strip_prefix("/media/") {
            Some(name) if is_read => media::download(relay, conn, name).await,
            Some(_) => Answer::empty(405),
            None => Answer::empty(404),
        },
    }
}

fn information(relay: &Relay) -> Answer {
    Answer::json(200, &info::document(&relay.limits, &relay.relay_key))
        .header("access-control-allow-origin", "*")
}

fn root(relay: &Relay, conn: &mut HttpConn) -> Answer {
    let has = |name, wanted: &str| {
        let words = header(conn, name).unwrap_or_default().split(',');
        words.map(str::trim).any(|word| word.eq_ignore_ascii_case(wanted))
    };
    if !has("upgrade", "websocket") {
        return information(relay);
    }
    if !known_host(relay, conn) {
        return unknown_host();
    }
    let is_sound =
        has("connection", "upgrade") && header(conn, "sec-websocket-version") == Some(SOCKET_VERSION);
    match header(conn, "sec-websocket-key") {
        Some(key) if is_sound => {
            let accept = derive_accept_key(key.as_bytes());
            Answer::empty(101)
                .header("upgrade", "websocket")
                .header("connection", "Upgrade")
                .header("sec-websocket-accept", accept)
        }
        _ => Answer::empty(426).header("sec-websocket-version", SOCKET_VERSION),
    }
}

fn known_host(relay: &Relay, conn: &HttpConn) -> bool {
    header(conn, "host").is_some_and(|host| relay.names.host(host).is_some())
}

/// The answer to a request that names another host.
pub(crate) fn unknown_host() -> Answer {
    Answer::error(404, "relay: no community is configured for this host; its operator can set RELAY_URL")
}
