//! The settings of the agent: read once from the environment, checked, and constant from then on.
//!
//! There are no flags and no file. The first setting that is wrong ends the process, so the order in which
//! they are read is part of the contract: provider, prompt, numbers, and then what they mean to each other.

mod effort;
mod environment;
mod error;
mod home;
mod hooks;
mod limits;
mod prompt;
mod provider;

use std::path::PathBuf;

pub use environment::Environment;
pub use error::ConfigError;
pub use home::{read_home, Durability, SLOT_NAME_MAX_BYTES};
pub use hooks::HookServers;
pub use limits::{Limits, RestartPolicy};
pub use prompt::{PromptSource, SystemPrompt};
pub use provider::Provider;
use waxlog_core::effort::Effort;

/// All settings. Printing it shows no key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Who answers.
    pub provider: Provider,
    /// The system prompt of sessions whose client brings none.
    pub system_prompt: SystemPrompt,
    /// The numbers.
    pub limits: Limits,
    /// Which MCP servers may run hooks.
    pub hook_servers: HookServers,
    /// How hard the model is asked to think; nothing is sent if unset.
    pub effort: Option<Effort>,
    /// The folder of all logs.
    pub home: PathBuf,
    /// The slot of the log, if one is kept for this agent.
    pub slot: Option<String>,
    /// What records must survive.
    pub durability: Durability,
}

impl Config {
    /// Reads and checks the settings.
    pub fn read(env: &Environment) -> Result<Self, ConfigError> {
        let provider = Provider::read(env)?;
        let system_prompt = SystemPrompt::read(env)?;
        let limits = Limits::read(env)?;
        let hook_servers = HookServers::read(env);
        let effort = effort::read(env)?;
        limits.check()?;
        if let Some(effort) = effort {
            effort::check(effort, provider.provider)?;
        }
        Ok(Self {
            provider,
            system_prompt,
            limits,
            hook_servers,
            effort,
            home: home::read_home(env)?,
            slot: home::read_slot(env)?,
            durability: home::read_durability(env)?,
        })
    }
}

#[cfg(test)]
mod tests;
