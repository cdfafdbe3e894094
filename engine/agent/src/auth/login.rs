//! The login as a command: `waxlog agent auth PROVIDER`.

use std::fmt;
use std::path::PathBuf;

use async_std::task;
use waxlog_core::provider::Provider;

use super::oauth::Oauth;
use super::service::CALL_MAX;
use super::AuthError;
use crate::config::Environment;
use crate::http::{ModelClient, SetupError};
use crate::scrub::Scrubber;

/// A login that was made and kept. Its display form is what the user is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedIn {
    /// The workspace.
    pub host: String,
    /// The file that keeps the tokens.
    pub file: PathBuf,
}

impl fmt::Display for LoggedIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Logged in to {}; the tokens are kept in {}", self.host, self.file.display())
    }
}

/// Why no login was made. The process says so on stderr and exits with status 1.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The word names no provider that users log in to.
    #[error("auth: provider {typed:?} has no login; use databricks or databricks_v2")]
    Provider {
        /// The word as it was typed; empty if there was none.
        typed: String,
    },
    /// A variable that the login needs is absent or blank.
    #[error("auth: {name} required")]
    Required {
        /// The variable.
        name: &'static str,
    },
    /// The HTTP client cannot be set up.
    #[error(transparent)]
    Http(#[from] SetupError),
    /// The login failed.
    #[error("auth: {0}")]
    Auth(#[from] AuthError),
}

/// Has the user log in to the provider that `provider_word` chooses, with a browser and whatever tokens
/// there are already, and keeps what that gives for the agents of this user.
pub fn login(env: &Environment, provider_word: &str) -> Result<LoggedIn, LoginError> {
    let oauth = prepare(env, provider_word)?;
    task::block_on(oauth.log_in())?;
    Ok(LoggedIn { host: oauth.host().to_owned(), file: oauth.file().to_owned() })
}

fn prepare(env: &Environment, provider_word: &str) -> Result<Oauth, LoginError> {
    let no_login = || LoginError::Provider { typed: provider_word.to_owned() };
    let provider = Provider::of_word(provider_word).ok_or_else(no_login)?;
    if provider.spec().key_required {
        return Err(no_login());
    }
    let required = |name| env.get_filled(name).ok_or(LoginError::Required { name });
    let host = required(provider.spec().base_url_variable)?.trim_end_matches('/');
    let home = required("HOME")?;
    let client = ModelClient::new(CALL_MAX)?;
    Ok(Oauth::new(host, home.as_ref(), client, Scrubber::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(word: &str, env: &[(&str, &str)]) -> String {
        let env = env.iter().copied().collect();
        login(&env, word).expect_err(word).to_string()
    }

    #[test]
    fn only_databricks_has_a_login() {
        for word in ["", "openai", "anthropic", "nonsense"] {
            let text = refused(word, &[("DATABRICKS_HOST", "http://127.0.0.1:1"), ("HOME", "/nowhere")]);
            assert_eq!(
                text,
                format!("auth: provider {word:?} has no login; use databricks or databricks_v2")
            );
        }
    }

    #[test]
    fn a_login_needs_a_host_and_a_home() {
        for word in ["databricks", "databricks_v2", "databricks-v2", " Databricks "] {
            assert_eq!(refused(word, &[("HOME", "/nowhere")]), "auth: DATABRICKS_HOST required");
            let host = ("DATABRICKS_HOST", "http://127.0.0.1:1");
            assert_eq!(refused(word, &[host, ("HOME", " ")]), "auth: HOME required");
        }
    }

    #[test]
    fn both_providers_of_a_workspace_share_one_login() {
        let file = |word, host| {
            let env = [("DATABRICKS_HOST", host), ("HOME", "/home/u")].into_iter().collect();
            prepare(&env, word).expect("prepared").file().to_owned()
        };
        let one = file("databricks", "https://h.example/");
        assert_eq!(one, file("databricks_v2", "https://h.example"));
        assert_ne!(one, file("databricks", "https://other.example"));
    }
}
