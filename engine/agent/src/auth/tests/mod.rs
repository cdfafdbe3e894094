//! Logins against a scripted workspace, with a scripted clock and browser.

mod browser;
mod endpoint;
mod renewal;

use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicU8, Ordering};
use std::sync::Arc;
use std::time::Duration;

use async_channel::{Receiver, Sender};
use serde_json::{json, Value};
use waxlog_scripted::model_server::{Answer, ModelServer, Request};

use super::oauth::Oauth;
use super::surroundings::Surroundings;
use super::tokens::Tokens;
use super::TokenSource;
use crate::http::ModelClient;
use crate::scrub::Scrubber;
use crate::secret::Secret;

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time of every test.
const NOW_SECS: u64 = 1_700_000_000;

/// A machine whose clock stands still, whose randomness counts up, and whose browser is a channel.
#[derive(Debug)]
struct Scripted {
    now_secs: AtomicU64,
    next_byte: AtomicU8,
    shown: Sender<String>,
}

impl Surroundings for Scripted {
    fn now_secs(&self) -> u64 {
        self.now_secs.load(Ordering::Relaxed)
    }

    fn fill(&self, bytes: &mut [u8]) -> Result<(), String> {
        bytes.fill_with(|| self.next_byte.fetch_add(1, Ordering::Relaxed));
        Ok(())
    }

    fn show(&self, url: &str) {
        self.shown.try_send(url.to_owned()).expect("room for an address");
    }
}

/// A workspace, a home, and the machine between them.
struct Rig {
    server: ModelServer,
    home: tempfile::TempDir,
    machine: Arc<Scripted>,
    shown: Receiver<String>,
    scrubber: Scrubber,
}

impl Rig {
    /// A workspace that gives `answers` in turn.
    fn new(answers: Vec<Answer>) -> Rig {
        Rig::with(|_| answers)
    }

    /// A workspace that describes its login service, then gives `answers`.
    fn with_service(answers: Vec<Answer>) -> Rig {
        Rig::with(|url| [vec![service(url)], answers].concat())
    }

    fn with(answers: impl FnOnce(&str) -> Vec<Answer>) -> Rig {
        let (shown, addresses) = async_channel::bounded(8);
        let machine = Scripted { now_secs: NOW_SECS.into(), next_byte: 0.into(), shown };
        Rig {
            server: ModelServer::start_with(answers).expect("a port"),
            home: tempfile::tempdir().expect("a folder"),
            machine: Arc::new(machine),
            shown: addresses,
            scrubber: Scrubber::default(),
        }
    }

    /// The login as another process of the user would see it.
    fn oauth(&self) -> Oauth {
        let client = ModelClient::new(PATIENCE).expect("a client");
        let mut oauth = Oauth::new(&self.server.url(), self.home.path(), client, self.scrubber.clone());
        oauth.surroundings = self.machine.clone();
        oauth
    }

    fn source(&self) -> TokenSource {
        TokenSource::of_login(self.oauth())
    }

    /// Puts tokens in the file, as another process would.
    fn store(&self, access: &str, refresh: Option<&str>, expires_at: Option<u64>) {
        let tokens = Tokens { access: secret(access), refresh: refresh.map(secret), expires_at };
        let url = super::service::discovery_url(&self.server.url());
        let scopes = super::service::SCOPES;
        let file = super::tokens::TokenFile::new(self.home.path(), &url, "databricks-cli", &scopes);
        file.save(&tokens).expect("saved");
    }

    /// What the file holds.
    fn stored(&self) -> Value {
        let text = std::fs::read(self.oauth().file()).expect("a token file");
        serde_json::from_slice(&text).expect("json")
    }

    fn requests(&self) -> Vec<Request> {
        self.server.requests()
    }
}

fn secret(value: &str) -> Secret<String> {
    Secret::new(value.to_owned())
}

/// The description of a login service at `url`.
fn service(url: &str) -> Answer {
    let described = json!({
        "authorization_endpoint": format!("{url}/oidc/v1/authorize"),
        "token_endpoint": format!("{url}/oidc/v1/token"),
    });
    Answer::json(described.to_string())
}

/// A grant that lasts an hour.
fn grant(access: &str, refresh: Option<&str>) -> Answer {
    let mut reply = json!({"access_token": access, "expires_in": 3600, "token_type": "Bearer"});
    if let Some(refresh) = refresh {
        reply["refresh_token"] = json!(refresh);
    }
    Answer::json(reply.to_string())
}

/// The fields of a form, decoded.
fn form(request: &Request) -> Vec<(String, String)> {
    let body = String::from_utf8(request.body.clone()).expect("text");
    let url = surf::http::Url::parse(&format!("form:?{body}")).expect("a query");
    url.query_pairs().into_owned().collect()
}

fn fields(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).expect("there").permissions().mode() & 0o777
}
