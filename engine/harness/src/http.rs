//! The relay over HTTP, as the harness asks it: short budgets, few attempts, a proof of its own for each.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_channel::{Receiver, Sender};
use async_std::task;
use serde_json::{json, Value};
use waxlog_harness_core::record::HttpOutcome;
use waxlog_http::{Client, FailureKind, Limits, Method, Outcome, SetupError};
use waxlog_nostr::client::http::http_url;
use waxlog_nostr::{auth, kind, Draft, Event};

use crate::config::Config;
use crate::effects::Shared;
use crate::journal::now_ms;
use waxlog_core::secret::Secret;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Largest answer that is taken, in bytes.
const ANSWER_MAX_BYTES: usize = 16 * 1024 * 1024;
const ERROR_MAX_BYTES: usize = 4_096;
/// Waits before each further attempt to submit.
const SUBMIT_WAITS_MS: [u64; 3] = [500, 1_000, 2_000];
/// How many marks and signs are on their way at a time.
const SUBMITS_MAX: usize = 10;

/// The client.
pub(crate) struct RelayHttp {
    client: Client,
    base: String,
    /// What requests say that they are addressed to.
    named_base: String,
    host: Option<String>,
    keys: waxlog_nostr::Keys,
    owner_tag: Option<String>,
    permits: (Sender<()>, Receiver<()>),
}

impl RelayHttp {
    pub(crate) fn new(config: &Config) -> Result<Self, SetupError> {
        let client = Client::with_limits(Limits {
            connect_timeout: CONNECT_TIMEOUT,
            silence_max: Duration::from_secs(30),
            success_body_max_bytes: ANSWER_MAX_BYTES,
            error_body_max_bytes: ERROR_MAX_BYTES,
            // A connection that the relay has closed meanwhile would cost an attempt.
            keeps_connections: false,
        })?;
        let base = http_url(&config.settings.relay_url);
        let named_base = config.http_base.as_deref().map_or_else(|| base.clone(), http_url);
        Ok(Self {
            client,
            base,
            named_base,
            host: config.host_header.clone(),
            keys: config.secrets.keys.clone(),
            owner_tag: config.secrets.owner_tag.as_ref().map(|tag| tag.to_json()),
            permits: async_channel::bounded(SUBMITS_MAX),
        })
    }

    /// Asks `/query` or `/count`: the outcome, the body, and the ids of events in it that are not what they
    /// say they are. A query is repeated after an empty answer as well, since a relay may lag.
    pub(crate) async fn ask(
        &self,
        path: &str,
        filters: &[Value],
        timeout_ms: u64,
        retries: u32,
        wait_ms: u64,
    ) -> (HttpOutcome, Vec<u8>, Vec<String>) {
        let body: Arc<[u8]> = Value::from(filters.to_vec()).to_string().into_bytes().into();
        let mut left = retries;
        loop {
            let (outcome, raw) = self.post(path, body.clone(), Duration::from_millis(timeout_ms)).await;
            let is_empty = raw == b"[]";
            let is_done = match outcome {
                HttpOutcome::Answered { status: 200 } => !is_empty,
                HttpOutcome::Answered { status } => !is_passing(status),
                HttpOutcome::Failed { .. } | HttpOutcome::TimedOut => false,
            };
            if is_done || left == 0 {
                let forged = forged(&raw);
                return (outcome, raw, forged);
            }
            left -= 1;
            task::sleep(Duration::from_millis(wait_ms)).await;
        }
    }

    /// Submits an event, within a budget for all attempts.
    pub(crate) async fn submit(&self, event: &Event, budget_ms: u64) -> (HttpOutcome, Vec<u8>) {
        // Marks come in bursts; the queue of permits keeps the relay from seeing them all at once.
        let _ = self.permits.0.send(()).await;
        let submitted = self.submit_raw(event.to_json().into_bytes(), budget_ms).await;
        let _ = self.permits.1.try_recv();
        submitted
    }

    /// As [`RelayHttp::submit`], with an event as the bytes that it has.
    pub(crate) async fn submit_raw(&self, event: Vec<u8>, budget_ms: u64) -> (HttpOutcome, Vec<u8>) {
        let body: Arc<[u8]> = event.into();
        let until = Instant::now() + Duration::from_millis(budget_ms);
        for wait_ms in SUBMIT_WAITS_MS.into_iter().map(Some).chain([None]) {
            let left = until.saturating_duration_since(Instant::now());
            let (outcome, raw) = self.post("/events", body.clone(), left).await;
            let may_pass = match &outcome {
                HttpOutcome::Answered { status } => is_passing(*status),
                HttpOutcome::Failed { .. } => true,
                HttpOutcome::TimedOut => false,
            };
            let wait =
                wait_ms.map(|wait_ms| Duration::from_millis(wait_ms).mul_f64(0.8 + 0.4 * fastrand::f64()));
            match wait.filter(|wait| may_pass && Instant::now() + *wait < until) {
                Some(wait) => task::sleep(wait).await,
                None => return (outcome, raw),
            }
        }
        (HttpOutcome::TimedOut, Vec::new())
    }

    /// Finds own reactions with this content on an event, and deletes them.
    pub(crate) async fn unreact(&self, shared: &Shared, event: &str, content: &str, budget_ms: u64) {
        let _ = self.permits.0.send(()).await;
        let filter = json!({"kinds": [kind::REACTION], "authors": [self.keys.public_key()], "#e": [event]});
        let (outcome, raw, _) = self.ask("/query", &[filter], budget_ms, 0, 0).await;
        let _ = self.permits.1.try_recv();
        if !matches!(outcome, HttpOutcome::Answered { status: 200 }) {
            log::debug!("own reactions on {event} were not found: {outcome:?}");
            return;
        }
        let found: Vec<Event> = serde_json::from_slice(&raw).unwrap_or_default();
        let own = |one: &Event| one.pubkey == self.keys.public_key() && one.content == content;
        for reaction in found.into_iter().filter(own) {
            let draft = Draft::new(kind::DELETION, "", now_ms() / 1000).tag(["e", &reaction.id.to_hex()]);
            let deletion = shared.sign(draft.into());
            let (outcome, _) = self.submit(&deletion, budget_ms).await;
            if !matches!(outcome, HttpOutcome::Answered { status: 200 }) {
                log::debug!("a reaction on {event} was not taken back: {outcome:?}");
            }
        }
    }

    async fn post(&self, path: &str, body: Arc<[u8]>, within: Duration) -> (HttpOutcome, Vec<u8>) {
        let nonce = uuid::Uuid::new_v4().to_string();
        let named = format!("{}{path}", self.named_base);
        let proof =
            auth::http_authorization(&self.keys, "POST", &named, Some(&body), &nonce, now_ms() / 1000);
        let mut headers = vec![
            ("authorization", Secret::new(proof)),
            ("content-type", Secret::new("application/json".to_owned())),
        ];
        headers.extend(self.owner_tag.clone().map(|tag| ("x-auth-tag", Secret::new(tag))));
        headers.extend(self.host.clone().map(|host| ("host", Secret::new(host))));
        let url = format!("{}{path}", self.base);
        match self.client.send_body(Method::Post, &url, &headers, &[body].into_iter().collect(), within).await
        {
            Outcome::Answered(answer) => (HttpOutcome::Answered { status: answer.status }, answer.body),
            Outcome::Failed(failure) if matches!(failure.kind, FailureKind::Timeout) => {
                (HttpOutcome::TimedOut, Vec::new())
            }
            Outcome::Failed(failure) => (HttpOutcome::Failed { reason: failure.text }, Vec::new()),
        }
    }
}

fn is_passing(status: u16) -> bool {
    matches!(status, 429 | 502 | 503 | 504)
}

/// The ids of those events of an answer that fail their checks.
fn forged(raw: &[u8]) -> Vec<String> {
    let rows: Vec<Value> = serde_json::from_slice(raw).unwrap_or_default();
    let events = rows.into_iter().filter_map(|row| serde_json::from_value::<Event>(row).ok());
    events.filter(|event| event.verify().is_err()).map(|event| event.id.to_hex()).collect()
}
