//! What a killed agent leaves running: its servers and whatever they started, which nobody else would end.
//!
//! A process cannot clean up after its own SIGKILL, so the next agent on the same log does. Every server gets
//! a variable with a mark of its agent, which its descendants inherit wherever they move; at the start, whoever
//! still carries the mark of the agent before is ended. A mark is drawn at random, so a process number that
//! was given out again is never mistaken for one of ours.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::process::{kill_process, Pid, Signal};

use crate::ids;

/// The variable that carries the mark.
pub const MARK_VARIABLE: &str = "WAXLOG_AGENT_MARK";
/// The file in the log's folder that holds the mark of the last agent.
const MARK_FILE: &str = "mark";
const MARK_FILE_MODE: u32 = 0o600;
/// Where the next mark is written before it takes its place.
const NEW_MARK_FILE: &str = "mark.new";

/// Ends what the last agent on the log in `dir` has left running, and gives the mark for this one.
pub fn sweep(dir: &Path) -> io::Result<String> {
    let file = dir.join(MARK_FILE);
    match fs::read_to_string(&file) {
        Ok(last) => end_marked(last.trim()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(e),
    }
    let mark = ids::draw("mark");
    // A kill in the middle of a write must not leave an empty mark, which would spare the leftovers.
    let new = dir.join(NEW_MARK_FILE);
    let mut options = fs::OpenOptions::new();
    options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(MARK_FILE_MODE)
        .open(&new)?
        .write_all(mark.as_bytes())?;
    fs::rename(&new, &file)?;
    Ok(mark)
}

fn end_marked(mark: &str) {
    let wanted = format!("{MARK_VARIABLE}={mark}");
    for pid in processes().filter(|pid| !mark.is_empty() && carries(*pid, wanted.as_bytes())) {
        match kill_process(pid, Signal::KILL) {
            Ok(()) => log::warn!("process {pid}, left running by a killed agent, was ended"),
            // Gone by itself in the meantime.
            Err(rustix::io::Errno::SRCH) => {}
            Err(e) => log::warn!("process {pid}, left running by a killed agent, cannot be ended: {e}"),
        }
    }
}

/// The processes of the machine, where it lists them: elsewhere nothing can be found, and nothing is.
fn processes() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
}

/// Whether the environment that a process was started with holds `variable`. Other users' are unreadable.
fn carries(pid: Pid, variable: &[u8]) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry == variable)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn sleeper(mark: Option<&str>) -> Child {
        let mut command = Command::new("sleep");
        command.arg("600").envs(mark.map(|mark| (MARK_VARIABLE, mark)));
        command.spawn().expect("sleeps")
    }

    #[test]
    fn c51_what_carries_the_last_mark_is_ended_and_nothing_else() {
        let dir = tempfile::tempdir().expect("a folder");
        let first = sweep(dir.path()).expect("a mark");
        let (mut ours, mut other) = (sleeper(Some(&first)), sleeper(Some("mark_of_somebody_else")));
        let mut unmarked = sleeper(None);
        let second = sweep(dir.path()).expect("a mark");
        assert_ne!(first, second);
        assert!(!ours.wait().expect("ended").success());
        for child in [&mut other, &mut unmarked] {
            assert!(child.try_wait().expect("asked").is_none());
            child.kill().expect("killed");
            child.wait().expect("waited");
        }
    }
}
