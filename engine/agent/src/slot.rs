//! Where an agent's log lies: the first slot below the home that nobody holds.

use std::path::{Path, PathBuf};

use waxlog_store::{Durability, Log, OpenError, Options};

use crate::config;

/// How many agents may share one home.
pub const SLOTS_MAX: u32 = 256;

/// No slot could be had.
#[derive(Debug, thiserror::Error)]
pub enum SlotError {
    /// The log cannot be opened, and another slot would not help.
    #[error("log: {0}; WAXLOG_HOME says where logs lie")]
    Open(OpenError),
    /// Every slot is held.
    #[error(
        "log: all {SLOTS_MAX} slots below {} are in use or damaged; end an agent, run `waxlog log verify`, or set \
         WAXLOG_HOME to another folder",
        .0.display()
    )]
    Full(PathBuf),
}

/// The folder that holds the agents' logs of a home.
pub fn agents_folder(home: &Path) -> PathBuf {
    home.join("agent")
}

/// Opens the log of the first slot that nobody holds.
///
/// A damaged log is left as it is, with an error in the operator's log, and the next slot is taken: what is
/// wrong with an old log must not keep new turns from being recorded.
pub fn open_first(home: &Path, durability: config::Durability) -> Result<Log, SlotError> {
    let folder = agents_folder(home);
    let durability = match durability {
        config::Durability::Process => Durability::Process,
        config::Durability::Power => Durability::Power,
    };
    for slot in 0..SLOTS_MAX {
        let options = Options { durability, ..Options::default() };
        match Log::open(&folder.join(slot.to_string()), options) {
            Ok(log) => return Ok(log),
            Err(OpenError::Locked { .. }) => {}
            Err(damaged @ OpenError::Damaged(_)) => log::error!("{damaged}; taking the next slot"),
            Err(other) => return Err(SlotError::Open(other)),
        }
    }
    Err(SlotError::Full(folder))
}
