//! Which token of a login counts: the one in memory, the one that another process has put in the file, one
//! that a refresh token buys, or one that the user fetches with a browser.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use async_std::future::timeout;
use async_std::sync::Mutex;

use super::callback::Callback;
use super::pkce::Proof;
use super::service::{self, Grant, Service, CALL_MAX};
use super::surroundings::{Machine, Surroundings};
use super::tokens::{TokenFile, Tokens};
use super::AuthError;
use crate::http::{without_user, ModelClient};
use crate::scrub::Scrubber;
use crate::secret::Secret;

/// How long the user may take to log in.
const LOGIN_MAX: Duration = Duration::from_secs(60);
/// How long another process may take to renew the login: two calls, and some for its disk.
const LOCK_MAX: Duration = Duration::from_secs(45);

/// Whether the user may be asked to log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Browser {
    /// Yes, if there is no other way.
    Allowed,
    /// No.
    Never,
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waits {
    /// A call to the service.
    pub(super) call: Duration,
    /// The user.
    pub(super) login: Duration,
    /// Another process that holds the lock.
    pub(super) lock: Duration,
}

/// The login of one user at one workspace.
pub(crate) struct Oauth {
    host: String,
    discovery_url: String,
    file: TokenFile,
    client: ModelClient,
    scrubber: Scrubber,
    pub(super) surroundings: Arc<dyn Surroundings>,
    pub(super) waits: Waits,
    memory: Mutex<Memory>,
    /// How many browser logins have ended.
    logins: AtomicU64,
}

#[derive(Default)]
struct Memory {
    tokens: Option<Tokens>,
    /// Why the file, which could not be written, is older than the tokens.
    unsaved: Option<String>,
    /// The last browser login that failed, by its number.
    failed_login: Option<(u64, AuthError)>,
}

impl fmt::Debug for Oauth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Oauth").field("host", &self.host).finish_non_exhaustive()
    }
}

impl Oauth {
    /// The login at `host`, kept below `home`.
    pub(super) fn new(host: &str, home: &Path, client: ModelClient, scrubber: Scrubber) -> Oauth {
        let discovery_url = service::discovery_url(host);
        Oauth {
            host: without_user(host),
            file: TokenFile::new(home, &discovery_url, service::CLIENT_ID, &service::SCOPES),
            discovery_url,
            client,
            scrubber,
            surroundings: Arc::new(Machine),
            waits: Waits { call: CALL_MAX, login: LOGIN_MAX, lock: LOCK_MAX },
            memory: Mutex::default(),
            logins: AtomicU64::new(0),
        }
    }

    /// The workspace.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// The file that keeps the tokens.
    pub(super) fn file(&self) -> &Path {
        self.file.path()
    }

    /// A token that is fresh and not `rejected`. One caller at a time: the others find what it got.
    pub(super) async fn token(
        &self,
        rejected: Option<&Secret<String>>,
        browser: Browser,
    ) -> Result<Secret<String>, AuthError> {
        let logins_before = self.logins.load(Ordering::Acquire);
        let mut memory = self.memory.lock().await;
        if let Some(token) = self.at_hand(&mut memory, rejected) {
            return Ok(token);
        }
        match self.renew(&mut memory, rejected).await {
            Err(error @ (AuthError::NotLoggedIn { .. } | AuthError::Refused { .. }))
                if browser == Browser::Allowed =>
            {
                // Whoever waited while somebody did not log in need not make the user wait again.
                match &memory.failed_login {
                    Some((number, failure)) if *number > logins_before => return Err(failure.clone()),
                    _ => log::info!("{error}"),
                }
                self.fetch(&mut memory).await
            }
            renewed => renewed,
        }
    }

    /// Asks the user to log in, whatever tokens there are, and keeps what it gives.
    pub(super) async fn log_in(&self) -> Result<(), AuthError> {
        let mut memory = self.memory.lock().await;
        self.fetch(&mut memory).await?;
        match &memory.unsaved {
            Some(reason) => {
                let (file, reason) = (self.file.path().display().to_string(), reason.clone());
                Err(AuthError::NotKept { file, reason })
            }
            None => Ok(()),
        }
    }

    /// The token in memory or in the file, if it can be used.
    fn at_hand(&self, memory: &mut Memory, rejected: Option<&Secret<String>>) -> Option<Secret<String>> {
        let now_secs = self.surroundings.now_secs();
        let usable = |tokens: &Tokens| tokens.is_fresh(now_secs) && Some(&tokens.access) != rejected;
        if !memory.tokens.as_ref().is_some_and(usable) {
            let stored = self.file.load().filter(usable)?;
            self.adopt(memory, stored);
            memory.unsaved = None;
        }
        memory.tokens.as_ref().map(|tokens| tokens.access.clone())
    }

    /// Buys a token with the refresh token, unless another process does so first.
    async fn renew(
        &self,
        memory: &mut Memory,
        rejected: Option<&Secret<String>>,
    ) -> Result<Secret<String>, AuthError> {
        let not_logged_in = || AuthError::NotLoggedIn { host: self.host.clone() };
        if self.refresh_token(memory).is_none() {
            return Err(not_logged_in());
        }
        let lock = self.file.lock(self.waits.lock).await?;
        if let Some(token) = self.at_hand(memory, rejected) {
            return Ok(token);
        }
        // Read again: another process may have spent the one that was there.
        let refresh = self.refresh_token(memory).ok_or_else(not_logged_in)?;
        let granted = self.grant(&Grant::Refresh { token: &refresh }, None).await;
        match granted {
            Ok(tokens) => {
                let token = self.keep(memory, tokens).await;
                drop(lock);
                Ok(token)
            }
            // A program that knows no lock may have been faster.
            Err(error) => self.at_hand(memory, rejected).ok_or(error),
        }
    }

    /// The refresh token to spend. The file's is the newest, unless it could not be written.
    fn refresh_token(&self, memory: &Memory) -> Option<Secret<String>> {
        let held = memory.tokens.as_ref().and_then(|tokens| tokens.refresh.clone());
        let stored = self.file.load().and_then(|tokens| tokens.refresh);
        let (first, second) = if memory.unsaved.is_some() { (held, stored) } else { (stored, held) };
        let token = first.or(second)?;
        self.scrubber.learn(&token);
        Some(token)
    }

    /// Has the user log in with a browser. The file is not locked meanwhile: others may renew what is there.
    async fn fetch(&self, memory: &mut Memory) -> Result<Secret<String>, AuthError> {
        let fetched = self.browse().await;
        let number = self.logins.fetch_add(1, Ordering::AcqRel) + 1;
        let tokens = match fetched {
            Ok(tokens) => tokens,
            Err(error) => {
                memory.failed_login = Some((number, error.clone()));
                return Err(error);
            }
        };
        let lock = self.file.lock(self.waits.lock).await;
        if let Err(error) = &lock {
            log::warn!("{error}");
        }
        let token = self.keep(memory, tokens).await;
        drop(lock);
        Ok(token)
    }

    async fn browse(&self) -> Result<Tokens, AuthError> {
        let impossible = |reason: String| AuthError::NoLogin { reason };
        let service = self.discover().await?;
        let proof = Proof::draw(self.surroundings.as_ref()).map_err(impossible)?;
        let callback = Callback::open().await.map_err(|error| impossible(error.to_string()))?;
        let redirect_uri = callback.redirect_uri();
        let address = proof.address(&service.authorization_endpoint, &redirect_uri).map_err(impossible)?;
        self.surroundings.show(&address);
        let brought = timeout(self.waits.login, callback.wait(&proof.state)).await;
        drop(callback);
        let code = brought
            .map_err(|_| AuthError::NobodyCame { seconds: self.waits.login.as_secs() })?
            .map_err(|error| impossible(error.to_string()))?
            .map_err(|answer| AuthError::Refused { what: "the login", answer })?;
        let (redirect_uri, verifier) = (redirect_uri.as_str(), &proof.verifier);
        self.grant(&Grant::Code { code: &code, redirect_uri, verifier }, Some(service)).await
    }

    async fn discover(&self) -> Result<Service, AuthError> {
        Service::discover(&self.client, &self.discovery_url, self.waits.call).await
    }

    async fn grant(&self, grant: &Grant<'_>, service: Option<Service>) -> Result<Tokens, AuthError> {
        let service = match service {
            Some(service) => service,
            None => self.discover().await?,
        };
        service.grant(&self.client, grant, self.surroundings.as_ref(), self.waits.call).await
    }

    /// Takes new tokens in, and puts them in the file.
    async fn keep(&self, memory: &mut Memory, tokens: Tokens) -> Secret<String> {
        let token = tokens.access.clone();
        let (file, saved) = (self.file.clone(), tokens.clone());
        self.adopt(memory, tokens);
        let written = async_std::task::spawn_blocking(move || file.save(&saved)).await;
        memory.unsaved = written.err().map(|error| error.to_string());
        if let Some(reason) = &memory.unsaved {
            let path = self.file.path().display();
            log::warn!("{path} cannot be written ({reason}); the login is lost when the process ends");
        }
        token
    }

    fn adopt(&self, memory: &mut Memory, tokens: Tokens) {
        for secret in [Some(&tokens.access), tokens.refresh.as_ref()].into_iter().flatten() {
            self.scrubber.learn(secret);
        }
        memory.tokens = Some(tokens);
    }
}
