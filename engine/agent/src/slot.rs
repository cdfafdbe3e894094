//! Where an agent's log lies: the slot that is kept for it, or the first below the home that nobody holds.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use waxlog_store::{Durability, Log, OpenError, Options, Reader};

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

/// How long a command that only reads may hold an agent up.
const READERS_MAX: Duration = Duration::from_secs(5);
/// How often the lock is tried meanwhile: there is nothing to wait on.
const READERS_POLL: Duration = Duration::from_millis(10);

/// Opens a log; one that is locked by a command that only reads is waited for, since its turns are this
/// agent's to recover.
fn open_past_readers(dir: &Path, options: Options) -> Result<Log, OpenError> {
    let begun = Instant::now();
    loop {
        match Log::open(dir, options.clone()) {
            Err(OpenError::Locked { .. }) if begun.elapsed() < READERS_MAX && is_only_read(dir) => {
                std::thread::sleep(READERS_POLL);
            }
            opened => return opened,
        }
    }
}

/// Whether whoever holds the log only reads it. What cannot be told counts as a writer.
fn is_only_read(dir: &Path) -> bool {
    Reader::open(dir).and_then(|reader| Ok(!reader.has_writer()?)).unwrap_or(false)
}

/// How long the slot that is kept for an agent is waited for: the agent before it may still be ending.
const OWN_SLOT_MAX: Duration = Duration::from_secs(10);

/// Opens the log of the slot called `name`, or of the first that nobody holds.
///
/// A damaged log is left as it is, with an error in the operator's log, and another slot is taken: what is
/// wrong with an old log must not keep new turns from being recorded.
pub fn open(home: &Path, name: Option<&str>, durability: config::Durability) -> Result<Log, SlotError> {
    let durability = match durability {
        config::Durability::Process => Durability::Process,
        config::Durability::Power => Durability::Power,
    };
    let options = Options { durability, ..Options::default() };
    match name {
        Some(name) => open_own(home, name, options),
        None => open_first(home, options),
    }
}

fn open_own(home: &Path, name: &str, options: Options) -> Result<Log, SlotError> {
    let dir = agents_folder(home).join(name);
    let begun = Instant::now();
    loop {
        match open_past_readers(&dir, options.clone()) {
            Ok(log) => return Ok(log),
            Err(OpenError::Locked { .. }) if begun.elapsed() < OWN_SLOT_MAX => {
                std::thread::sleep(READERS_POLL)
            }
            Err(OpenError::Locked { .. }) => {
                log::error!("the slot {name} is held by another agent; taking the first that is free");
                return open_first(home, options);
            }
            Err(damaged @ OpenError::Damaged(_)) => {
                log::error!("{damaged}; taking the first slot that is free");
                return open_first(home, options);
            }
            Err(other) => return Err(SlotError::Open(other)),
        }
    }
}

fn open_first(home: &Path, options: Options) -> Result<Log, SlotError> {
    let folder = agents_folder(home);
    for slot in 0..SLOTS_MAX {
        match open_past_readers(&folder.join(slot.to_string()), options.clone()) {
            Ok(log) => return Ok(log),
            Err(OpenError::Locked { .. }) => {}
            Err(damaged @ OpenError::Damaged(_)) => log::error!("{damaged}; taking the next slot"),
            Err(other) => return Err(SlotError::Open(other)),
        }
    }
    Err(SlotError::Full(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(home: &Path) -> Log {
        super::open(home, None, config::Durability::Process).expect("a slot")
    }

    #[test]
    fn an_agent_takes_the_slot_that_is_kept_for_it_when_the_one_before_has_ended() {
        let home = tempfile::tempdir().expect("a folder");
        let own = |home: &Path| super::open(home, Some("me-0"), config::Durability::Process).expect("a slot");
        let before = own(home.path());
        assert!(before.dir().ends_with("agent/me-0"));
        let opening = std::thread::spawn({
            let home = home.path().to_owned();
            move || own(&home).dir().to_owned()
        });
        std::thread::sleep(READERS_POLL * 3);
        drop(before);
        assert!(opening.join().expect("opened").ends_with("agent/me-0"));
    }

    #[test]
    fn agents_side_by_side_take_slots_of_their_own() {
        let home = tempfile::tempdir().expect("a folder");
        let (first, second) = (open(home.path()), open(home.path()));
        assert!(first.dir().ends_with("agent/0") && second.dir().ends_with("agent/1"));
        drop(first);
        assert!(open(home.path()).dir().ends_with("agent/0"));
    }

    #[test]
    fn a_reader_is_waited_for_and_does_not_move_the_agent() {
        let home = tempfile::tempdir().expect("a folder");
        drop(open(home.path()));
        let reader = Reader::open(&home.path().join("agent/0")).expect("reads");
        let opening = std::thread::spawn({
            let home = home.path().to_owned();
            move || open(&home).dir().to_owned()
        });
        std::thread::sleep(READERS_POLL * 3);
        drop(reader);
        assert!(opening.join().expect("opened").ends_with("agent/0"));
    }
}
