//! Where the log lies, and how hard it is written.

use std::path::PathBuf;

use super::environment::Environment;
use super::error::ConfigError;

/// What a record must survive before the agent acts on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// A kill of the process; a loss of power from the end of the turn on.
    Process,
    /// A loss of power too: each flush waits for the disk.
    Power,
}

/// The folder of all logs: `WAXLOG_HOME`, else `waxlog` in the state folder of the user. Blank is absent.
pub fn read_home(env: &Environment) -> Result<PathBuf, ConfigError> {
    let folder = |name| env.get_filled(name).map(PathBuf::from);
    folder("WAXLOG_HOME")
        .or_else(|| folder("XDG_STATE_HOME").map(|state| state.join("waxlog")))
        .or_else(|| folder("HOME").map(|home| home.join(".local/state/waxlog")))
        .ok_or(ConfigError::NoHome)
}

pub(super) fn read_durability(env: &Environment) -> Result<Durability, ConfigError> {
    match env.get_filled("WAXLOG_DURABILITY").map(str::trim) {
        None | Some("process") => Ok(Durability::Process),
        Some("power") => Ok(Durability::Power),
        Some(typed) => Err(ConfigError::DurabilityUnknown { typed: typed.to_owned() }),
    }
}

/// Longest name of a slot, in bytes.
pub const SLOT_NAME_MAX_BYTES: usize = 64;

/// The slot that the agent is to take, if whoever started it has one for it.
pub(super) fn read_slot(env: &Environment) -> Result<Option<String>, ConfigError> {
    let Some(name) = env.get_filled("WAXLOG_SLOT") else { return Ok(None) };
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    match is_plain && name.len() <= SLOT_NAME_MAX_BYTES {
        true => Ok(Some(name.to_owned())),
        false => Err(ConfigError::SlotName { typed: name.to_owned() }),
    }
}
