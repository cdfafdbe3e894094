//! The models that a provider offers, as `session/new` tells them.
//!
//! Most providers' list is the configured model; a Databricks workspace is asked. A list is a convenience:
//! it never opens a browser, never takes longer than [`DISCOVERY_MAX`], and its failure never fails a
//! session. What was found is kept for the life of the process, what failed is tried again.

mod lists;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_std::future::timeout;
use waxlog_core::provider::Models;

use crate::auth::{AuthError, TokenSource};
use crate::config::Config;
use crate::http::{without_user, Answer, ModelClient, Outcome};
use crate::secret::Secret;

use self::lists::{gateway_page, serving_endpoints, Gateway};

/// How long the search may take, all pages and the token included.
pub const DISCOVERY_MAX: Duration = Duration::from_secs(10);
/// Pages of an AI gateway's list that are read.
pub const PAGES_MAX: usize = 20;
/// Models that are told.
pub const MODELS_MAX: usize = 2000;
/// What is offered of an AI gateway that offers nothing.
const KNOWN_GATEWAY_MODELS: [&str; 2] = ["databricks-gpt-5-5", "databricks-claude-opus-4-7"];

/// Why no list was found.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum ListError {
    #[error(transparent)]
    Auth(#[from] AuthError),
    #[error("{url} answered {status}")]
    Status { url: String, status: String },
    #[error("{0}")]
    Transport(String),
    #[error("{url}: {reason}")]
    Body { url: String, reason: String },
    #[error("no list within {seconds} s")]
    TooSlow { seconds: u64 },
}

impl ListError {
    fn body(url: &str, reason: String) -> ListError {
        ListError::Body { url: without_user(url), reason }
    }
}

/// The models of the process's provider. Clones share what was found.
#[derive(Clone, Debug)]
pub struct ModelList {
    kind: Models,
    configured: String,
    base_url: String,
    client: ModelClient,
    tokens: TokenSource,
    patience: Duration,
    found: Arc<Mutex<Option<Vec<String>>>>,
}

impl ModelList {
    /// The list of the provider that `config` names.
    pub fn new(config: &Config, client: ModelClient, tokens: TokenSource) -> ModelList {
        ModelList {
            kind: config.provider.provider.spec().models,
            configured: config.provider.model.clone(),
            base_url: config.provider.base_url.clone(),
            client,
            tokens,
            patience: DISCOVERY_MAX,
            found: Arc::default(),
        }
    }

    /// The models: those found now or before, else those that are known without asking.
    pub async fn list(&self) -> Vec<String> {
        if self.kind == Models::Configured {
            return vec![self.configured.clone()];
        }
        if let Some(found) = self.found() {
            return found;
        }
        let seconds = self.patience.as_secs();
        let listed = timeout(self.patience, self.ask()).await;
        match listed.unwrap_or(Err(ListError::TooSlow { seconds })) {
            Ok(mut models) => {
                models.truncate(MODELS_MAX);
                *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Some(models.clone());
                models
            }
            Err(error) => {
                log::warn!("the list of models cannot be had: {error}; the known ones are offered");
                self.fallback()
            }
        }
    }

    fn found(&self) -> Option<Vec<String>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn fallback(&self) -> Vec<String> {
        if self.kind != Models::AiGateway {
            return vec![self.configured.clone()];
        }
        let configured = self.configured.trim();
        let known = KNOWN_GATEWAY_MODELS.into_iter().filter(|known| *known != configured);
        let first = (!configured.is_empty()).then_some(configured);
        first.into_iter().chain(known).map(str::to_owned).collect()
    }

    async fn ask(&self) -> Result<Vec<String>, ListError> {
        if self.kind == Models::ServingEndpoints {
            let url = format!("{}/api/2.0/serving-endpoints", self.base_url);
            let body = self.get(&url).await?;
            return serving_endpoints(&body).map_err(|reason| ListError::body(&url, reason));
        }
        let mut gateway = Gateway::default();
        let mut page_token: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let url = gateway_url(&self.base_url, page_token.as_deref());
            let body = self.get(&url).await?;
            let page = gateway_page(&body).map_err(|reason| ListError::body(&url, reason))?;
            gateway.add(page.endpoints);
            if page.next.is_none() || page.next == page_token {
                break;
            }
            page_token = page.next;
        }
        let names = gateway.into_names();
        if names.is_empty() {
            return Ok(KNOWN_GATEWAY_MODELS.map(str::to_owned).to_vec());
        }
        Ok(names)
    }

    /// The body of a good answer. A token that is refused is renewed once.
    async fn get(&self, url: &str) -> Result<Vec<u8>, ListError> {
        let token = self.tokens.bearer_without_browser().await?;
        let mut answer = self.get_with(url, &token).await?;
        if matches!(answer.status, 401 | 403) {
            let renewed = self.tokens.renewed(&token).await?;
            if renewed != token {
                answer = self.get_with(url, &renewed).await?;
            }
        }
        if !(200..300).contains(&answer.status) {
            let status = format!("{} {}", answer.status, answer.reason);
            return Err(ListError::Status { url: without_user(url), status });
        }
        Ok(answer.body)
    }

    async fn get_with(&self, url: &str, token: &Secret<String>) -> Result<Answer, ListError> {
        let bearer = Secret::new(format!("Bearer {}", token.expose()));
        match self.client.get(url, &[("authorization", bearer)], self.patience).await {
            Outcome::Answered(answer) => Ok(answer),
            Outcome::Failed(failure) => Err(ListError::Transport(failure.text)),
        }
    }
}

fn gateway_url(base_url: &str, page_token: Option<&str>) -> String {
    let first = format!("{base_url}/api/ai-gateway/v2/endpoints?page_size=100");
    match page_token {
        Some(token) => format!("{first}&page_token={}", percent_encoded(token)),
        None => first,
    }
}

/// `text` as a value of a query, by RFC 3986.
fn percent_encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests;
