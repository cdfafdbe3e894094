//! Keeps the secrets that the agent knows out of the log, wherever they come back from outside: in a
//! provider's error text, in a tool's output.
//!
//! What is masked here is masked before it is recorded, so the model, the client and a replay all see the
//! same masked bytes.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};

use waxlog_core::provider::Provider;

use crate::config::Environment;
use crate::secret::Secret;

/// Shorter values are not masked: they occur in ordinary text, and no real key is that short.
pub const SCRUBBED_SECRET_MIN_BYTES: usize = 16;

/// Secrets learned while the agent runs that are kept; the oldest goes first. A login renews two an hour.
const LEARNED_MAX: usize = 32;

/// What stands in a secret's place.
const MASK: &[u8] = b"***";

/// Variables whose values are secrets whoever set them, beside the providers' keys.
const SECRET_VARIABLES: [&str; 3] = ["BUZZ_PRIVATE_KEY", "NOSTR_PRIVATE_KEY", "BUZZ_AUTH_TAG"];

/// Words that make a variable's value a secret.
const SECRET_WORDS: [&str; 6] = ["KEY", "SECRET", "TOKEN", "PASSWORD", "CRED", "AUTH"];

/// Masks a set of secrets.
#[derive(Clone, Debug, Default)]
pub struct Scrubber {
    secrets: Vec<Secret<String>>,
    /// Shared with every scrubber that was made of this one.
    learned: Arc<RwLock<VecDeque<Secret<String>>>>,
}

impl Scrubber {
    /// The secrets of the agent's own environment.
    pub fn of_environment(env: &Environment) -> Scrubber {
        let mut scrubber = Scrubber::default();
        let keys = Provider::all().map(|provider| provider.spec().key_variable);
        for name in SECRET_VARIABLES.into_iter().chain(keys) {
            if let Some(value) = env.get(name) {
                scrubber.add(value);
            }
        }
        scrubber
    }

    /// This scrubber with what a server was given beside it.
    pub fn with_variables<'a>(&self, env: impl Iterator<Item = (&'a str, &'a str)>) -> Scrubber {
        let mut scrubber = self.clone();
        for (name, value) in env {
            let name = name.to_ascii_uppercase();
            if SECRET_WORDS.iter().any(|word| name.contains(word)) {
                scrubber.add(value);
            }
        }
        scrubber
    }

    /// Masks `secret` from now on, here and in every scrubber that was made of this one.
    pub fn learn(&self, secret: &Secret<String>) {
        if secret.expose().len() < SCRUBBED_SECRET_MIN_BYTES {
            return;
        }
        let mut learned = self.learned.write().unwrap_or_else(PoisonError::into_inner);
        if learned.contains(secret) {
            return;
        }
        if learned.len() == LEARNED_MAX {
            learned.pop_front();
        }
        learned.push_back(secret.clone());
    }

    fn add(&mut self, value: &str) {
        let value = value.trim();
        if value.len() >= SCRUBBED_SECRET_MIN_BYTES {
            self.secrets.push(Secret::new(value.to_owned()));
        }
    }

    /// `bytes` with every known secret masked.
    pub fn scrub(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        let learned = self.learned.read().unwrap_or_else(PoisonError::into_inner);
        for secret in self.secrets.iter().chain(learned.iter()) {
            let secret = secret.expose().as_bytes();
            if memchr::memmem::find(&bytes, secret).is_some() {
                bytes = replace(&bytes, secret);
            }
        }
        bytes
    }

    /// `text` with every known secret masked.
    pub fn scrub_text(&self, text: String) -> String {
        String::from_utf8_lossy(&self.scrub(text.into_bytes())).into_owned()
    }
}

fn replace(bytes: &[u8], secret: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut from = 0;
    for at in memchr::memmem::find_iter(bytes, secret) {
        out.extend_from_slice(&bytes[from..at]);
        out.extend_from_slice(MASK);
        from = at + secret.len();
    }
    out.extend_from_slice(&bytes[from..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_secrets_are_masked_wherever_they_stand() {
        let env: Environment =
            [("ANTHROPIC_API_KEY", "sk-ant-0123456789"), ("PATH", "/usr/bin:/usr/local/bin")]
                .into_iter()
                .collect();
        let scrubber = Scrubber::of_environment(&env);
        let text = b"a sk-ant-0123456789, sk-ant-0123456789 \xff /usr/bin:/usr/local/bin".to_vec();
        assert_eq!(scrubber.scrub(text), b"a ***, *** \xff /usr/bin:/usr/local/bin");
    }

    #[test]
    fn what_a_server_is_given_counts_by_its_name() {
        let given = [("MY_TOKEN", "tttttttttttttttttttt"), ("COLOUR", "cccccccccccccccccccc")];
        let scrubber = Scrubber::default().with_variables(given.into_iter());
        let text = "tttttttttttttttttttt cccccccccccccccccccc".to_owned();
        assert_eq!(scrubber.scrub_text(text), "*** cccccccccccccccccccc");
    }

    #[test]
    fn what_is_learned_later_is_masked_by_every_scrubber_of_the_family() {
        let agent = Scrubber::default();
        let session = agent.with_variables([("MY_TOKEN", "tttttttttttttttttttt")].into_iter());
        agent.learn(&Secret::new("access-0123456789".to_owned()));
        let text = || "access-0123456789 tttttttttttttttttttt".to_owned();
        assert_eq!(session.scrub_text(text()), "*** ***");
        for n in 0..LEARNED_MAX {
            agent.learn(&Secret::new(format!("another-secret-{n:03}")));
        }
        assert!(session.scrub_text(text()).starts_with("access-"), "the oldest is forgotten");
    }

    #[test]
    fn a_short_value_is_no_secret() {
        let scrubber = Scrubber::default().with_variables([("KEY", "key")].into_iter());
        assert_eq!(scrubber.scrub_text("a key".to_owned()), "a key");
    }
}
