//! What a session is opened with, and what may be chosen for it later.

use serde::{Deserialize, Serialize};

use crate::acp::frame::Id;
use crate::acp::params::ServerSpec;
use crate::acp::Profile;
use crate::mcp::Catalogue;
use crate::settings::Settings;

/// The head of a session's first record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionOpened {
    /// The request to answer.
    pub id: Id,
    /// The session's id.
    pub session: String,
    /// Whose dialect the client speaks.
    pub profile: Profile,
    /// The working folder.
    pub cwd: String,
    /// The settings in force.
    pub settings: Settings,
    /// The servers as the client gave them, variables by name only.
    pub servers: Vec<ServerSpec>,
    /// Their tools.
    pub catalogue: Catalogue,
    /// Whether the endpoint is known to want the Responses wire, from another session of the process.
    pub upgraded: bool,
    /// The models that may be chosen, as far as the provider tells.
    pub models: Vec<String>,
    /// The files that went into the system prompt, in order.
    pub sources: Vec<Source>,
    /// The skills that the model may load, in order.
    pub skills: Vec<Skill>,
    /// The servers whose hooks may run, by index.
    pub hook_servers: Vec<usize>,
    /// Where the system prompt came from: `client`, `variable`, `file <path>` or `built-in`.
    pub prompt_source: String,
}

/// What a client may choose per session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionOption {
    /// The model.
    Model,
    /// The thinking effort.
    ThoughtLevel,
}

impl SessionOption {
    /// Its id on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            SessionOption::Model => "model",
            SessionOption::ThoughtLevel => "thought_level",
        }
    }
}

/// A file that went into the system prompt; its text stands there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Where it lay.
    pub path: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// SHA-256 of its content, in hex.
    pub sha256: String,
}

/// A skill as it was found when the session was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skill {
    /// The name that the model loads it by.
    pub name: String,
    /// What it is for, possibly empty.
    pub description: String,
    /// Its folder.
    pub folder: String,
    /// Its supporting files, relative to the folder, sorted.
    pub files: Vec<String>,
}
