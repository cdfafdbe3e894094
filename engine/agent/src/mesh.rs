//! The relay mesh behind the model `auto`: looks for it in the endpoint's list of models, once for all sessions
//! that ask at the same time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_std::sync::Mutex;
use waxlog_core::mesh::{seen, Mesh, Seen};

use crate::auth::TokenSource;
use crate::config::Config;
use crate::http::{Answer, ModelClient, Outcome};
use crate::secret::Secret;

/// How long the endpoint may take to tell its models. No list in that time changes nothing.
pub const PROBE_MAX: Duration = Duration::from_secs(2);
/// The largest list that is looked at, in bytes: it is kept in the log.
pub const LIST_MAX_BYTES: usize = 256 * 1024;

/// What is known of the mesh. Clones share it.
#[derive(Clone)]
pub struct MeshWatch {
    url: String,
    client: ModelClient,
    tokens: TokenSource,
    begun: Instant,
    mesh: Arc<Mutex<Mesh>>,
}

/// What a search came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Whether requests go to the mesh.
    pub available: bool,
    /// The list that was looked at; empty if none was asked for, or none came.
    pub list: Vec<u8>,
}

impl MeshWatch {
    /// A watch over the endpoint that `config` names.
    pub fn new(config: &Config, client: ModelClient, tokens: TokenSource) -> MeshWatch {
        let url = format!("{}/models", config.provider.base_url);
        MeshWatch { url, client, tokens, begun: Instant::now(), mesh: Arc::default() }
    }

    /// Whether requests go to the mesh now. Asks the endpoint if the last look is too old.
    pub async fn seek(&self) -> Found {
        self.seek_at(|| self.now_ms()).await
    }

    /// As [`MeshWatch::seek`], by the clock `now_ms`. The lock is held over the probe, so that it is shared.
    async fn seek_at(&self, now_ms: impl Fn() -> u64) -> Found {
        let mut mesh = self.mesh.lock().await;
        if let Some(available) = mesh.standing(now_ms()) {
            return Found { available, list: Vec::new() };
        }
        let list = self.list().await;
        let seen = list.as_deref().map_or(Seen::Unknown, seen);
        Found { available: mesh.probed(seen, now_ms()), list: list.unwrap_or_default() }
    }

    /// The mesh failed at a request.
    pub async fn failed(&self) {
        self.mesh.lock().await.failed(self.now_ms());
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    async fn list(&self) -> Option<Vec<u8>> {
        let token = match self.tokens.bearer_without_browser().await {
            Ok(token) => token,
            Err(error) => {
                log::warn!("the mesh cannot be looked for: {error}");
                return None;
            }
        };
        let bearer = Secret::new(format!("Bearer {}", token.expose()));
        match self.client.get(&self.url, &[("authorization", bearer)], PROBE_MAX).await {
            Outcome::Answered(Answer { status: 200..=299, body, .. }) if body.len() <= LIST_MAX_BYTES => {
                Some(body)
            }
            Outcome::Answered(Answer { status: status @ 200..=299, body, .. }) => {
                let bytes = body.len();
                log::warn!("the list of models ({status}) has {bytes} bytes, over {LIST_MAX_BYTES}; no mesh");
                None
            }
            Outcome::Answered(Answer { status, reason, .. }) => {
                log::warn!("the list of models cannot be had: {status} {reason}; the mesh stays as it was");
                None
            }
            Outcome::Failed(failure) => {
                log::warn!("the list of models cannot be had: {}; the mesh stays as it was", failure.text);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use async_std::task::block_on;
    use serde_json::json;
    use waxlog_scripted::model_server::{Answer, ModelServer};

    use super::*;
    use crate::config::Environment;

    fn watch(url: &str) -> MeshWatch {
        let env: Environment = [
            ("BUZZ_AGENT_PROVIDER", "openai"),
            ("OPENAI_COMPAT_API_KEY", "key"),
            ("OPENAI_COMPAT_BASE_URL", url),
            ("BUZZ_AGENT_MODEL", "auto"),
            ("WAXLOG_HOME", "/nowhere"),
        ]
        .into_iter()
        .collect();
        let config = Config::read(&env).expect("a config");
        let client = ModelClient::new(Duration::from_secs(10)).expect("a client");
        MeshWatch::new(&config, client, TokenSource::fixed(Secret::new("key".to_owned())))
    }

    fn models(ids: &[&str]) -> Answer {
        let models: Vec<_> = ids.iter().map(|id| json!({"id": id})).collect();
        Answer::json(json!({"data": models}).to_string())
    }

    #[test]
    fn the_mesh_appears_vanishes_and_comes_back() {
        let (there, gone) = (["mesh", "a", "b"], ["a", "b"]);
        let lists: [&[&str]; 7] = [&gone, &there, &gone, &there, &there, &gone, &there];
        let mut answers: Vec<Answer> = lists.into_iter().map(models).collect();
        answers.extend([Answer::status(500, "no list"), models(&there)]);
        let server = ModelServer::start(answers).expect("a port");
        let (watch, now_ms) = (watch(&server.url()), AtomicU64::new(0));
        let mut seek = |after_ms: u64| {
            now_ms.fetch_add(after_ms, Ordering::Relaxed);
            block_on(watch.seek_at(|| now_ms.load(Ordering::Relaxed))).available
        };
        assert_eq!([6_000; 5].map(&mut seek), [false, false, false, false, true]);
        assert!(seek(4_999), "a fresh look counts on");
        assert!(!seek(1), "gone");
        assert!(!seek(29_999), "it is left alone");
        assert_eq!(server.requests().len(), 6);
        assert!(!seek(1), "found once");
        assert!(!seek(6_000), "no list changes nothing");
        assert!(seek(6_000), "found twice");
        let request = &server.requests()[0];
        assert_eq!((request.method.as_str(), request.path.as_str()), ("GET", "/models"));
        assert_eq!(request.header("authorization"), Some("Bearer key"));
    }

    #[test]
    fn what_fails_is_left_alone_without_a_look() {
        let there = || models(&["mesh", "a", "b"]);
        let server = ModelServer::start(vec![there(), there()]).expect("a port");
        let watch = watch(&server.url());
        block_on(watch.seek_at(|| 0));
        let found = block_on(watch.seek_at(|| 6_000));
        assert!(found.available && !found.list.is_empty());
        block_on(watch.failed());
        assert_eq!(block_on(watch.seek_at(|| 12_000)), Found { available: false, list: Vec::new() });
        assert_eq!(server.requests().len(), 2);
    }
}
