//! What the harness was told, checked: options before variables before defaults.

mod answer;
mod read;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

use waxlog_core::secret::Secret;
use waxlog_harness_core::settings::Settings;
use waxlog_nostr::owner::OwnerTag;
use waxlog_nostr::Keys;

pub use crate::options::Options;
pub use read::Surroundings;

/// Why the harness cannot start as it was told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A value is not of the form that its option takes.
    #[error("{name}: {why}")]
    Form {
        /// The option or variable.
        name: String,
        /// What it takes, and what it got.
        why: String,
    },
    /// A value has the right form and cannot be used.
    #[error("{0}")]
    Value(String),
}

impl ConfigError {
    /// The exit code: 2 for what could not be read as what it must be, 1 for the rest.
    pub fn code(&self) -> i32 {
        match self {
            Self::Form { .. } => 2,
            Self::Value(_) => 1,
        }
    }
}

/// What must not be seen.
#[derive(Clone, Debug)]
pub struct Secrets {
    /// Who the agent is.
    pub keys: Keys,
    /// Its secret key for those that must have it.
    pub nsec: Secret<String>,
    /// Whose agent it is, attested.
    pub owner_tag: Option<OwnerTag>,
}

/// Everything that the harness needs.
#[derive(Clone, Debug)]
pub struct Config {
    /// What the fold depends on.
    pub settings: Settings,
    /// What must not be seen.
    pub secrets: Secrets,
    /// The folder of all logs.
    pub home: PathBuf,
    /// Whether each flush survives a loss of power.
    pub is_power_safe: bool,
    /// The relay's URL in the proof of who we are.
    pub auth_url: String,
    /// The relay's URL in the proofs of HTTP requests, if another than that of the relay.
    pub http_base: Option<String>,
    /// The `Host` of all requests, if another than the relay's.
    pub host_header: Option<String>,
    /// Variables that the agents get unless they are set.
    pub agent_environment: BTreeMap<String, String>,
    /// Variables that the agents get in place of those of this process; none takes one away.
    pub agent_overrides: BTreeMap<String, Option<Secret<String>>>,
}

impl Config {
    /// Where the harness's log lies.
    pub fn log_dir(&self) -> PathBuf {
        self.home.join("harness").join(self.settings.agent.to_hex())
    }

    /// The name of the slot of an agent's log.
    pub fn slot_name(&self, slot: usize) -> String {
        let hex = self.settings.agent.to_hex();
        format!("{}-{slot}", &hex[..8])
    }

    /// Where the log of our own agent lies, if it is one.
    pub fn agent_log_dir(&self, slot: usize) -> PathBuf {
        self.home.join("agent").join(self.slot_name(slot))
    }

    pub(crate) fn log_options(&self) -> waxlog_store::Options {
        let durability = match self.is_power_safe {
            true => waxlog_store::Durability::Power,
            false => waxlog_store::Durability::Process,
        };
        waxlog_store::Options { durability, ..waxlog_store::Options::default() }
    }
}
