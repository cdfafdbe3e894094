//! A relay over HTTP: queries, events and documents, each request signed (NIP-98) and repeated as
//! [`super::retry`] says.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use waxlog_http::{Answer, Client, Limits, Method, Outcome, SetupError};

use super::retry::{is_passing, next_step, Call, Step, Trouble};
use crate::auth::http_authorization;
use crate::event::Event;
use crate::filter::Filter;
use crate::keys::Keys;
use crate::Secret;

/// How long a request may take as a whole unless the settings say otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long it may take to reach the relay unless the settings say otherwise.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Largest answer that is taken, in bytes: the longest page of the largest events.
pub const MAX_ANSWER_BYTES: usize = 256 * 1024 * 1024;
/// How much of an error's body is read, in bytes.
pub const MAX_ERROR_BYTES: usize = 64 * 1024;
/// From which wait on a watcher is told, so that a person knows why nothing happens.
const TOLD_FROM: Duration = Duration::from_secs(1);

/// Which relay, by whom, and for how long.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The relay's URL: `http`, `https`, `ws` or `wss`, with or without slashes at its end.
    pub relay: String,
    /// Who signs the requests.
    pub keys: Keys,
    /// The owner's tag as JSON, sent along as `x-auth-tag`.
    pub owner_tag: Option<Secret<String>>,
    /// How long a request may take as a whole.
    pub timeout: Duration,
    /// How long it may take to reach the relay.
    pub connect_timeout: Duration,
    /// Is told in words of waits of a second and more.
    pub watcher: Option<fn(&str)>,
}

/// A relay's HTTP side. Clones share connections.
#[derive(Debug, Clone)]
pub struct RelayHttp {
    pub(super) base: String,
    pub(super) settings: Settings,
    pub(super) client: Client,
}

/// What a query found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The events, in the relay's order, each of them verified.
    pub events: Vec<Event>,
    /// How many items of the answer were left out: no events, or with a wrong id or signature.
    pub left_out: usize,
}

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The relay answered with a status that is no success.
    #[error("relay error {status}: {message}")]
    Status {
        /// The status.
        status: u16,
        /// What the relay said: `error` or `message` of a JSON body, else the body.
        message: String,
    },
    /// There is no answer.
    #[error("network error: {text}")]
    Network {
        /// The way it failed, in words.
        text: String,
        /// Whether another attempt may have more luck.
        retryable: bool,
    },
    /// An event was sent, and its fate is not known.
    #[error("delivery unknown: {0}")]
    DeliveryUnknown(String),
    /// A success whose body is not what was asked for.
    #[error("the relay at {url} answered {wanted} with something else: {got}")]
    Answer {
        /// What was asked.
        url: String,
        /// What the body should have been.
        wanted: &'static str,
        /// The start of the body.
        got: String,
    },
}

/// How much of a strange body an error shows, in characters.
const SHOWN_CHARS: usize = 200;

impl HttpError {
    /// Whether the same request may succeed later, and does no harm if it has arrived already.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Status { status, message } => is_passing(Trouble::Status(*status, message)),
            Self::Network { retryable, .. } => *retryable,
            Self::DeliveryUnknown(_) | Self::Answer { .. } => false,
        }
    }
}

impl RelayHttp {
    /// A client of one relay. The URL is looked at with the first request.
    pub fn new(settings: Settings) -> Result<Self, SetupError> {
        let client = Client::with_limits(Limits {
            connect_timeout: settings.connect_timeout,
            silence_max: settings.timeout,
            success_body_max_bytes: MAX_ANSWER_BYTES,
            error_body_max_bytes: MAX_ERROR_BYTES,
            keeps_connections: false,
        })?;
        Ok(Self { base: http_url(&settings.relay), settings, client })
    }

    /// The relay's URL for HTTP, without a slash at its end.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The relay's URL as it may be shown: without a user or password.
    pub fn shown(&self) -> String {
        waxlog_http::without_user(&self.base)
    }

    /// The relay's URL for WebSocket.
    pub fn socket_url(&self) -> String {
        socket_url(&self.base)
    }

    /// The events that answer any of the filters.
    pub async fn query(&self, filters: &[Filter]) -> Result<Found, HttpError> {
        let url = format!("{}/query", self.base);
        let answer = self.post(Call::Read, &url, filter_list(filters)).await?;
        let items: Vec<Value> = read(&url, "a list of events", &answer)?;
        let count = items.len();
        let events: Vec<_> = items.into_iter().filter_map(verified).collect();
        Ok(Found { left_out: count - events.len(), events })
    }

    /// How many events answer any of the filters.
    pub async fn count(&self, filters: &[Filter]) -> Result<u64, HttpError> {
        let url = format!("{}/count", self.base);
        let answer = self.post(Call::Read, &url, filter_list(filters)).await?;
        let counted: Value = read(&url, "a count", &answer)?;
        counted["count"].as_u64().ok_or_else(|| strange(&url, "a count", &answer))
    }

    /// Publishes an event. Gives the relay's object: `event_id`, `accepted`, `message`.
    pub async fn publish(&self, event: &Event) -> Result<Value, HttpError> {
        let url = format!("{}/events", self.base);
        let body = Arc::from(event.to_json().into_bytes());
        let answer = self.post(Call::of_kind(event.kind), &url, body).await?;
        read::<serde_json::Map<_, _>>(&url, "an object", &answer).map(Value::Object)
    }

    /// A document below the relay's URL; `path` begins with a slash and may have a query.
    pub async fn get(&self, path: &str) -> Result<Value, HttpError> {
        let url = format!("{}{path}", self.base);
        let answer = self
            .attempts(Call::Read, async || {
                let headers = self.signed("GET", &url, None);
                self.client.get(&url, &headers, self.settings.timeout).await
            })
            .await?;
        read(&url, "JSON", &answer)
    }

    /// The relay's information document (NIP-11). Asked once, without a signature.
    pub async fn information(&self) -> Result<Value, HttpError> {
        let url = format!("{}/", self.base);
        let accept = [("accept", Secret::new("application/nostr+json".to_owned()))];
        let outcome = self.client.get(&url, &accept, self.settings.timeout).await;
        let answer = success(outcome).map_err(|trouble| trouble.tell())?;
        read(&url, "a JSON document", &answer)
    }

    async fn post(&self, call: Call, url: &str, body: Arc<[u8]>) -> Result<Answer, HttpError> {
        self.attempts(call, async || {
            let mut headers = self.signed("POST", url, Some(&body));
            headers.push(("content-type", Secret::new("application/json".to_owned())));
            self.client
                .send_body(
                    Method::Post,
                    url,
                    &headers,
                    &[body.clone()].into_iter().collect(),
                    self.settings.timeout,
                )
                .await
        })
        .await
    }

    /// The headers that say who asks. New for each attempt: a relay takes a proof once.
    fn signed(&self, method: &str, url: &str, body: Option<&[u8]>) -> Vec<(&'static str, Secret<String>)> {
        let nonce = uuid::Uuid::new_v4().to_string();
        let proof = http_authorization(&self.settings.keys, method, url, body, &nonce, now());
        let mut headers = vec![("authorization", Secret::new(proof))];
        headers.extend(self.owner_header());
        headers
    }

    pub(super) fn owner_header(&self) -> Option<(&'static str, Secret<String>)> {
        self.settings.owner_tag.clone().map(|tag| ("x-auth-tag", tag))
    }

    /// Sends until there is a success or [`next_step`] says that it is over.
    pub(super) async fn attempts(
        &self,
        call: Call,
        mut send: impl AsyncFnMut() -> Outcome,
    ) -> Result<Answer, HttpError> {
        let mut attempt = 0;
        loop {
            let failed = match success(send().await) {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            match next_step(call, failed.trouble(), attempt, fastrand::f64()) {
                Step::Again(wait) => self.wait(wait, &failed).await,
                Step::Tell => return Err(failed.tell()),
                Step::Unknown => return Err(failed.unknown()),
            }
            attempt += 1;
        }
    }

    async fn wait(&self, wait: Duration, failed: &Failed) {
        if let Some(watcher) = self.settings.watcher.filter(|_| wait >= TOLD_FROM) {
            watcher(&format!("{}; next attempt in {:.0} s", failed.words(), wait.as_secs_f64()));
        }
        async_std::task::sleep(wait).await;
    }
}

/// An attempt that was no success.
enum Failed {
    Status(u16, String),
    Network(waxlog_http::Failure),
}

impl Failed {
    fn trouble(&self) -> Trouble<'_> {
        match self {
            Self::Status(status, message) => Trouble::Status(*status, message),
            Self::Network(failure) => Trouble::Failed(failure.kind),
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Status(status, message) => format!("relay error {status}: {message}"),
            Self::Network(failure) => failure.text.clone(),
        }
    }

    fn tell(self) -> HttpError {
        match self {
            Self::Status(status, message) => HttpError::Status { status, message },
            Self::Network(failure) => HttpError::Network {
                retryable: is_passing(Trouble::Failed(failure.kind)),
                text: failure.text,
            },
        }
    }

    fn unknown(self) -> HttpError {
        HttpError::DeliveryUnknown(format!(
            "{}; the event may have been stored, look before you send it again",
            self.words()
        ))
    }
}

fn success(outcome: Outcome) -> Result<Answer, Failed> {
    match outcome {
        Outcome::Answered(answer) if (200..300).contains(&answer.status) => Ok(answer),
        Outcome::Answered(answer) => Err(Failed::Status(answer.status, said(&answer.body))),
        Outcome::Failed(failure) => Err(Failed::Network(failure)),
    }
}

/// What a relay says in the body of an error.
fn said(body: &[u8]) -> String {
    let field = |value: &Value, name: &str| value[name].as_str().map(str::to_owned);
    serde_json::from_slice::<Value>(body)
        .ok()
        .and_then(|value| field(&value, "error").or_else(|| field(&value, "message")))
        .unwrap_or_else(|| String::from_utf8_lossy(body).into_owned())
}

pub(super) fn read<T: serde::de::DeserializeOwned>(
    url: &str,
    wanted: &'static str,
    answer: &Answer,
) -> Result<T, HttpError> {
    serde_json::from_slice(&answer.body).map_err(|_| strange(url, wanted, answer))
}

fn strange(url: &str, wanted: &'static str, answer: &Answer) -> HttpError {
    let got = String::from_utf8_lossy(&answer.body).chars().take(SHOWN_CHARS).collect();
    HttpError::Answer { url: waxlog_http::without_user(url), wanted, got }
}

fn verified(item: Value) -> Option<Event> {
    let event: Event = serde_json::from_value(item).ok()?;
    event.verify().is_ok().then_some(event)
}

fn filter_list(filters: &[Filter]) -> Arc<[u8]> {
    let list: Vec<_> = filters.iter().map(Filter::to_json).collect();
    Arc::from(Value::Array(list).to_string().into_bytes())
}

/// The URL of a relay's HTTP side: `wss` and `ws` become `https` and `http`, slashes at the end go.
pub fn http_url(relay: &str) -> String {
    relay.replace("wss://", "https://").replace("ws://", "http://").trim_end_matches('/').to_owned()
}

/// The URL of a relay's WebSocket: the reverse of [`http_url`].
pub fn socket_url(http: &str) -> String {
    http.replace("https://", "wss://").replace("http://", "ws://")
}

pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
