//! Tokens for a model's endpoint: a key that is given, or an OAuth login that is kept and renewed.
//!
//! A login belongs to a workspace, not to a process: its tokens lie in a file that all processes share
//! (`tokens`), and a lock beside it sees to it that a refresh token is spent once. `oauth` decides which
//! token counts, `service` speaks to the workspace, `callback` waits for the browser to come back.
//! Tokens are [`Secret`]s, and the scrubber learns each of them before it is used.

mod callback;
mod login;
mod oauth;
mod pkce;
mod service;
mod surroundings;
mod tokens;

use std::sync::Arc;

use async_std::task;

pub use login::{login, LoggedIn, LoginError};

use self::oauth::{Browser, Oauth};
use crate::config::{ConfigError, Environment, Provider};
use crate::http::ModelClient;
use crate::scrub::Scrubber;
use crate::secret::Secret;

/// What helps when a login is missing or spent.
const LOG_IN: &str = "run `waxlog agent auth databricks`, or set DATABRICKS_TOKEN";

/// Why no token can be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// There is no login that could be renewed.
    #[error("not logged in to {host}; {LOG_IN}")]
    NotLoggedIn {
        /// The workspace.
        host: String,
    },
    /// The workspace refused what it was given.
    #[error("{what} was refused: {answer}; {LOG_IN}")]
    Refused {
        /// What was asked of it.
        what: &'static str,
        /// What it answered, without secrets.
        answer: String,
    },
    /// The workspace did not answer, or with something that cannot be used.
    #[error("{what} failed: {reason}; check DATABRICKS_HOST and the network, and try again")]
    Failed {
        /// What was asked of it.
        what: &'static str,
        /// What came instead.
        reason: String,
    },
    /// Another process holds the lock on the token file.
    #[error("{file} has been locked by another process for {seconds} s; end that process and try again")]
    Locked {
        /// The lock file.
        file: String,
        /// How long was waited, in seconds.
        seconds: u64,
    },
    /// Nobody came back from the browser.
    #[error("nobody logged in within {seconds} s; {LOG_IN}")]
    NobodyCame {
        /// How long was waited, in seconds.
        seconds: u64,
    },
    /// The login was made but cannot be kept.
    #[error("the login cannot be kept in {file}: {reason}; see to the folder and log in again")]
    NotKept {
        /// The token file.
        file: String,
        /// What the system says.
        reason: String,
    },
    /// The login cannot be started on this machine.
    #[error("cannot start a login: {reason}; set DATABRICKS_TOKEN instead")]
    NoLogin {
        /// What the system says.
        reason: String,
    },
}

/// Where the token of a request comes from. Clones share one login.
#[derive(Clone, Debug)]
pub struct TokenSource(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Fixed(Secret<String>),
    Login(Arc<Oauth>),
}

impl TokenSource {
    /// The key of `provider`, or the user's login where it has none. What a login gives is made known to
    /// `scrubber`.
    pub fn of(
        provider: &Provider,
        env: &Environment,
        client: &ModelClient,
        scrubber: &Scrubber,
    ) -> Result<TokenSource, ConfigError> {
        if let Some(key) = &provider.key {
            return Ok(TokenSource::fixed(key.clone()));
        }
        let key_variable = provider.provider.spec().key_variable;
        let home = env.get_filled("HOME").ok_or(ConfigError::NoHomeForLogin { key_variable })?;
        let oauth = Oauth::new(&provider.base_url, home.as_ref(), client.clone(), scrubber.clone());
        Ok(TokenSource(Kind::Login(Arc::new(oauth))))
    }

    /// A source that always gives `token`.
    pub fn fixed(token: Secret<String>) -> TokenSource {
        TokenSource(Kind::Fixed(token))
    }

    #[cfg(test)]
    pub(crate) fn of_login(oauth: Oauth) -> TokenSource {
        TokenSource(Kind::Login(Arc::new(oauth)))
    }

    /// The token to use now. If there is no other way, the user is asked to log in with a browser.
    pub async fn bearer(&self) -> Result<Secret<String>, AuthError> {
        self.token(None, Browser::Allowed).await
    }

    /// The token to use now, for a request that nobody waits for with a browser at hand.
    pub async fn bearer_without_browser(&self) -> Result<Secret<String>, AuthError> {
        self.token(None, Browser::Never).await
    }

    /// The token to use after the endpoint has refused `rejected`: another one if there is one or if it can
    /// be had without the user. A fixed token stays what it is.
    pub async fn renewed(&self, rejected: &Secret<String>) -> Result<Secret<String>, AuthError> {
        self.token(Some(rejected.clone()), Browser::Never).await
    }

    async fn token(
        &self,
        rejected: Option<Secret<String>>,
        browser: Browser,
    ) -> Result<Secret<String>, AuthError> {
        let oauth = match &self.0 {
            Kind::Fixed(token) => return Ok(token.clone()),
            Kind::Login(oauth) => Arc::clone(oauth),
        };
        // A task of its own: whoever asked may be cancelled between the moment the workspace takes the old
        // refresh token back and the moment the new one is kept, and then neither would be left.
        task::spawn(async move { oauth.token(rejected.as_ref(), browser).await }).await
    }
}

#[cfg(test)]
mod tests;
