//! One HTTP request: what was answered, or in what way it failed.
//!
//! HTTP comes from surf, over isahc and curl, joined by a client of our own (`curl`). A failed request is a
//! value, retried or not by whoever sent it; nothing is retried in here, and no text holds a header's value.
//! Only curl's own trace of the wire would: a logger must not let targets below `isahc` through.
//!
//! With a body beyond 1 MiB curl asks for leave first (`Expect: 100-continue`) and waits a second for servers
//! that do not know the question. An empty `expect` header keeps it from asking, but some servers (Node's,
//! for one) refuse that header with 417: then the body is sent again with the question, and the client asks
//! from there on.

mod chunks;
mod curl;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_std::future::timeout;
use futures_lite::AsyncReadExt;
use isahc::http::{HeaderName, HeaderValue, StatusCode};
pub use surf::http::Method;
use surf::http::Url;

use self::chunks::Chunks;
use self::curl::{Curl, Follows, TrueStatus, Within};

use waxlog_core::rope::Rope;
use waxlog_core::secret::Secret;

/// How long it may take to reach the server, name and TLS included, unless a client says otherwise.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Largest body of a successful answer unless a client says otherwise, in bytes.
pub const SUCCESS_BODY_MAX_BYTES: usize = 16 * 1024 * 1024;

/// How much is kept of the body of any other answer unless a client says otherwise, in bytes.
pub const ERROR_BODY_MAX_BYTES: usize = 4096;

/// The response headers that are kept.
pub const KEPT_HEADERS: [&str; 4] = ["content-type", "request-id", "retry-after", "x-request-id"];

/// Larger bodies are what curl asks leave for, in bytes.
const ASKED_FOR_ABOVE_BYTES: usize = 1024 * 1024;

/// The status of a server that cannot do what an `expect` header says.
const EXPECTATION_FAILED: u16 = 417;

/// How much is asked of the body at a time, in bytes.
const READ_BYTES: usize = 64 * 1024;

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server answered, with whatever status.
    Answered(Answer),
    /// There is no answer.
    Failed(Failure),
}

impl From<Result<Answer, Failure>> for Outcome {
    fn from(exchanged: Result<Answer, Failure>) -> Outcome {
        match exchanged {
            Ok(answer) => Outcome::Answered(answer),
            Err(failure) => Outcome::Failed(failure),
        }
    }
}

/// What a server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status, registered or not.
    pub status: u16,
    /// What the status is called; `<unknown status code>` if it is not registered.
    pub reason: &'static str,
    /// The headers of [`KEPT_HEADERS`] that were there, by lower-case name.
    pub headers: Vec<(String, String)>,
    /// The body: whole after a success, else its first [`Limits::error_body_max_bytes`].
    pub body: Vec<u8>,
}

/// How a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// In what way.
    pub kind: FailureKind,
    /// In words, for people; never with the value of a header.
    pub text: String,
}

/// The ways to fail, as far as it matters whether to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The request cannot be built: the address or a header is malformed. It will not get better.
    Request,
    /// The server could not be reached.
    Connect,
    /// The server was silent for too long before its answer.
    Timeout,
    /// The connection broke before the answer.
    Transport,
    /// The body of a successful answer broke off or fell silent.
    BodyRead,
    /// The body of a successful answer is beyond [`Limits::success_body_max_bytes`].
    TooLarge,
}

impl Failure {
    fn new(kind: FailureKind, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { kind, text }
    }
}

/// What a client bears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long it may take to reach the server, name and TLS included.
    pub connect_timeout: Duration,
    /// How long there may be no byte: from sending to the answer's headers, then between any two reads.
    pub silence_max: Duration,
    /// Largest body of a successful answer, in bytes.
    pub success_body_max_bytes: usize,
    /// How much is kept of the body of any other answer, in bytes.
    pub error_body_max_bytes: usize,
    /// Whether connections are kept for later requests. A server may close one just as it is used again,
    /// which fails the request and leaves open whether it arrived.
    pub keeps_connections: bool,
}

/// An HTTP client. Clones share connections.
#[derive(Clone, Debug)]
pub struct Client {
    /// Replaced when an exchange is given up, see [`Underway`].
    client: Arc<Mutex<surf::Client>>,
    limits: Limits,
    /// Set once a server has refused a large body that came without the question.
    asks_leave: Arc<AtomicBool>,
}

/// The HTTP client could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("http: client cannot be set up: {0}")]
pub struct SetupError(String);

impl Client {
    /// A client that bears `silence_max` without a byte: from sending to the answer's headers, then between
    /// any two reads. There is no limit on the whole.
    pub fn new(silence_max: Duration) -> Result<Self, SetupError> {
        Self::with_limits(Limits {
            connect_timeout: CONNECT_TIMEOUT,
            silence_max,
            success_body_max_bytes: SUCCESS_BODY_MAX_BYTES,
            error_body_max_bytes: ERROR_BODY_MAX_BYTES,
            keeps_connections: true,
        })
    }

    /// A client with limits of its own.
    pub fn with_limits(limits: Limits) -> Result<Self, SetupError> {
        let client = Arc::new(Mutex::new(fresh_client(&limits)?));
        Ok(Self { client, limits, asks_leave: Arc::default() })
    }

    /// Sends `body`, chunk after chunk as it is, and waits for the answer. Dropping the future ends the
    /// request.
    pub async fn post(&self, url: &str, headers: &[(&str, Secret<String>)], body: &Rope) -> Outcome {
        self.exchange(Method::Post, url, headers, body, None).await.into()
    }

    /// Sends `body`, chunk after chunk, by any method that has one and waits for the whole answer, for `within` at most.
    pub async fn send_body(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, Secret<String>)],
        body: &Rope,
        within: Duration,
    ) -> Outcome {
        let exchanged = self.exchange(method, url, headers, body, Some(Within(within))).await;
        exchanged.map_err(|failure| late(failure, url, within)).into()
    }

    /// Sends the fields of a form and waits for the whole answer, for `within` at most.
    pub async fn post_form(&self, url: &str, fields: &[(&str, Secret<String>)], within: Duration) -> Outcome {
        let exposed: Vec<_> = fields.iter().map(|(name, value)| (*name, value.expose().as_str())).collect();
        let request = surf::Body::from_form(&exposed)
            .map_err(|error| {
                Failure::new(FailureKind::Request, format!("form for {}: {error}", without_user(url)))
            })
            .and_then(|form| build(Method::Post, url, &[], Some(form)));
        self.send(url, request, within).await
    }

    /// Asks for a document and waits for the whole answer, for `within` at most.
    pub async fn get(&self, url: &str, headers: &[(&str, Secret<String>)], within: Duration) -> Outcome {
        self.send(url, build(Method::Get, url, headers, None), within).await
    }

    /// Asks for a document of the public, wherever up to `redirects_max` redirects lead, and waits for the whole
    /// answer, for `within` at most. There are no headers: they would go along to any host.
    pub async fn get_following(&self, url: &str, redirects_max: u32, within: Duration) -> Outcome {
        let request = build(Method::Get, url, &[], None).map(|mut request| {
            request.set_ext(Follows(redirects_max));
            request
        });
        self.send(url, request, within).await
    }

    /// curl is given the limit, and not a timer here: it goes on with a request whose future is dropped
    /// until the server says something.
    async fn send(&self, url: &str, request: Result<surf::Request, Failure>, within: Duration) -> Outcome {
        let mut request = match request {
            Ok(request) => request,
            Err(failure) => return Outcome::Failed(failure),
        };
        request.set_ext(Within(within));
        let exchanged = self.exchange_once(url, request).await;
        exchanged.map_err(|failure| late(failure, url, within)).into()
    }

    async fn exchange(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, Secret<String>)],
        body: &Rope,
        within: Option<Within>,
    ) -> Result<Answer, Failure> {
        let bytes = body.len();
        let unasked = bytes > ASKED_FOR_ABOVE_BYTES && !self.asks_leave.load(Ordering::Relaxed);
        let request = || {
            let body = surf::Body::from_reader(Chunks::new(body.clone()), Some(bytes));
            let mut request = build(method, url, headers, Some(body))?;
            if let Some(within) = within {
                request.set_ext(within);
            }
            Ok::<_, Failure>(request)
        };
        let mut first = request()?;
        if unasked {
            first.insert_header("expect", "");
        }
        let answer = self.exchange_once(url, first).await?;
        if unasked && answer.status == EXPECTATION_FAILED {
            self.asks_leave.store(true, Ordering::Relaxed);
            return self.exchange_once(url, request()?).await;
        }
        Ok(answer)
    }

    async fn exchange_once(&self, url: &str, request: surf::Request) -> Result<Answer, Failure> {
        let mut underway = Underway { client: self, given_up: true };
        let client = lock(&self.client).clone();
        let sent = timeout(self.limits.silence_max, client.send(request))
            .await
            .map_err(|_| Failure::new(FailureKind::Timeout, self.silence(url)))?;
        // From here on curl knows the end of the exchange, or notices with the next bytes that it is over.
        let response = sent.map_err(|error| {
            underway.given_up = false;
            dispatch_failure(url, &error)
        })?;
        let status = match response.ext::<TrueStatus>() {
            Some(TrueStatus(status)) => *status,
            None => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let headers = kept_headers(&response);
        let body = if status.is_success() {
            self.read_success(response).await?
        } else {
            self.read_start(response).await
        };
        underway.given_up = false;
        Ok(Answer {
            status: status.as_u16(),
            reason: status.canonical_reason().unwrap_or("<unknown status code>"),
            headers,
            body,
        })
    }

    /// The whole body, or why it cannot be had.
    async fn read_success(&self, mut response: surf::Response) -> Result<Vec<u8>, Failure> {
        let limit = self.limits.success_body_max_bytes;
        let announced = announced_bytes(&response).unwrap_or(0);
        if announced > limit {
            return Err(Failure::new(
                FailureKind::TooLarge,
                format!("response too large: {announced} > {limit}"),
            ));
        }
        let mut body = Vec::with_capacity(announced);
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let count = match timeout(self.limits.silence_max, response.read(&mut buffer)).await {
                Ok(Ok(0)) => return Ok(body),
                Ok(Ok(count)) => count,
                Ok(Err(error)) => {
                    return Err(Failure::new(FailureKind::BodyRead, format!("body broke off: {error}")))
                }
                Err(_) => {
                    let text = format!("no data for {}s", self.limits.silence_max.as_secs_f64());
                    return Err(Failure::new(FailureKind::BodyRead, text));
                }
            };
            if body.len() + count > limit {
                return Err(Failure::new(FailureKind::TooLarge, format!("response exceeded {limit} bytes")));
            }
            body.extend_from_slice(&buffer[..count]);
        }
    }

    /// The start of the body: it only explains an error, so whatever ends it early is good enough.
    async fn read_start(&self, mut response: surf::Response) -> Vec<u8> {
        let mut body = vec![0; self.limits.error_body_max_bytes];
        let mut filled = 0;
        while filled < body.len() {
            match timeout(self.limits.silence_max, response.read(&mut body[filled..])).await {
                Ok(Ok(count)) if count > 0 => filled += count,
                _ => break,
            }
        }
        body.truncate(filled);
        body
    }

    fn silence(&self, url: &str) -> String {
        format!("no answer from {} within {}s", without_user(url), self.limits.silence_max.as_secs_f64())
    }
}

/// Says of a request that was given a time what curl says in its own words.
fn late(failure: Failure, url: &str, within: Duration) -> Failure {
    match failure.kind {
        FailureKind::Timeout => {
            let (url, limit) = (without_user(url), within.as_secs_f64());
            Failure { text: format!("no answer from {url} within {limit}s"), ..failure }
        }
        _ => failure,
    }
}

/// A URL as it may be shown and kept: user and password may be secrets.
pub fn without_user(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

fn fresh_client(limits: &Limits) -> Result<surf::Client, SetupError> {
    let curl = Curl::new(limits).map_err(|error| SetupError(error.to_string()))?;
    Ok(surf::Client::with_http_client(curl))
}

fn lock(client: &Mutex<surf::Client>) -> MutexGuard<'_, surf::Client> {
    // Nothing is left half done under this lock.
    client.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An exchange under way.
///
/// curl goes on with a request that nobody waits for any more until the server says something, and the
/// provider goes on working and billing. Only the end of a client closes its connections at once, so an
/// exchange that is given up leaves a fresh client behind; the old one ends with the last exchange that still
/// uses it.
struct Underway<'a> {
    client: &'a Client,
    given_up: bool,
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        if !self.given_up {
            return;
        }
        match fresh_client(&self.client.limits) {
            Ok(fresh) => *lock(&self.client.client) = fresh,
            Err(error) => log::warn!("a request that was given up may go on at the server: {error}"),
        }
    }
}

fn build(
    method: Method,
    url: &str,
    headers: &[(&str, Secret<String>)],
    body: Option<surf::Body>,
) -> Result<surf::Request, Failure> {
    let malformed = |text| Failure::new(FailureKind::Request, text);
    let shown = without_user(url);
    let parsed = Url::parse(url).map_err(|error| malformed(format!("address {shown:?}: {error}")))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(malformed(format!("address {shown:?}: use http or https")));
    }
    let mut request = surf::Request::new(method, parsed);
    for (name, value) in headers {
        check_header(name, value.expose()).map_err(malformed)?;
        request.insert_header(*name, value.expose().as_str());
    }
    if let Some(body) = body {
        request.set_body(body);
    }
    Ok(request)
}

/// Checks what curl takes, since the layers between panic at anything else. The text leaves the value out.
fn check_header(name: &str, value: &str) -> Result<(), String> {
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("header name {name:?} is malformed"))?;
    match HeaderValue::from_str(value) {
        Ok(value) if value.to_str().is_ok() => Ok(()),
        _ => Err(format!("header {name}: its value has characters other than visible ASCII; check the key")),
    }
}

fn kept_headers(response: &surf::Response) -> Vec<(String, String)> {
    let kept = |name: &&str| {
        let value = response.header(*name)?.last().as_str().to_owned();
        Some(((*name).to_owned(), value))
    };
    KEPT_HEADERS.iter().filter_map(kept).collect()
}

fn announced_bytes(response: &surf::Response) -> Option<usize> {
    response.header("content-length")?.last().as_str().parse().ok()
}

fn dispatch_failure(url: &str, error: &surf::Error) -> Failure {
    use isahc::Error as Isahc;
    let kind = match error.downcast_ref::<Isahc>() {
        Some(Isahc::Timeout) => FailureKind::Timeout,
        Some(Isahc::InvalidHttpFormat(_)) => FailureKind::Request,
        Some(
            Isahc::ConnectFailed
            | Isahc::CouldntResolveHost
            | Isahc::CouldntResolveProxy
            | Isahc::SSLConnectFailed(_)
            | Isahc::BadServerCertificate(_),
        ) => FailureKind::Connect,
        _ => FailureKind::Transport,
    };
    Failure::new(kind, format!("request to {}: {error}", without_user(url)))
}

#[cfg(test)]
mod tests;
