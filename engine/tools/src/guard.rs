//! The guard: a process beside the server that cleans up after it when it is killed.
//!
//! Nothing runs in a process that gets SIGKILL, which is how agents stop a server. So the server tells its
//! guard through a pipe which groups run and which folders are its own; when the pipe ends, whatever the
//! reason, the guard kills those groups, removes those folders and ends. It stands in a group of its own and
//! knows no secret.

use std::collections::HashSet;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{kill_process_group, Pid, Signal};

/// The name under which the server's own program is the guard.
pub const GUARD_LINK: &str = "waxlog-mcp-guard";

/// The server's side. Clones speak to the same guard.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guard {
    process: Option<Arc<Mutex<Process>>>,
}

#[derive(Debug)]
struct Process {
    child: Child,
    /// Taken at the end.
    pipe: Option<ChildStdin>,
}

impl Guard {
    /// Starts `program` as the guard of `folders`. Without one the server works all the same.
    pub(crate) fn start(program: &Path, folders: &[&Path]) -> Self {
        match Process::start(program, folders) {
            Ok(process) => Self { process: Some(Arc::new(Mutex::new(process))) },
            Err(error) => {
                log::warn!("no guard: {error}; after a SIGKILL of this server its commands will run on");
                Self::default()
            }
        }
    }

    /// A group runs.
    pub(crate) fn begin(&self, group: Pid) {
        self.tell(format!("+{}\n", group.as_raw_nonzero()).as_bytes());
    }

    /// A group has ended.
    pub(crate) fn end(&self, group: Pid) {
        self.tell(format!("-{}\n", group.as_raw_nonzero()).as_bytes());
    }

    fn tell(&self, line: &[u8]) {
        let Some(process) = &self.process else { return };
        let mut process = process.lock().unwrap_or_else(PoisonError::into_inner);
        let told = process.pipe.as_mut().map(|pipe| pipe.write_all(line));
        if let Some(Err(error)) = told {
            log::warn!("the guard is gone: {error}; after a SIGKILL of this server its commands will run on");
            process.pipe = None;
        }
    }

    /// Lets the guard end and waits for that.
    pub(crate) fn close(&self) {
        let Some(process) = &self.process else { return };
        let mut process = process.lock().unwrap_or_else(PoisonError::into_inner);
        process.pipe = None;
        if let Err(error) = process.child.wait() {
            log::warn!("the guard cannot be waited for: {error}");
        }
    }
}

impl Process {
    fn start(program: &Path, folders: &[&Path]) -> io::Result<Self> {
        let mut child = Command::new(program)
            .arg0(GUARD_LINK)
            .args(folders)
            .env_clear()
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        let pipe = child.stdin.take();
        Ok(Self { child, pipe })
    }
}

/// The guard's side: waits for the end of stdin, then cleans up what its server has left. `folders` are those
/// that go at the end.
pub fn stand(folders: impl Iterator<Item = PathBuf>) -> io::Result<()> {
    let left = follow(io::stdin().lock())?;
    for group in left {
        // The one way to fail is that nobody is left.
        let _ = kill_process_group(group, Signal::KILL);
    }
    for folder in folders {
        match fs::remove_dir_all(&folder) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads what the server tells until the pipe ends. Gives the groups that have not ended. A line without its end
/// was cut short by a kill, and its number with it.
fn follow(told: impl Read) -> io::Result<HashSet<Pid>> {
    let mut running = HashSet::new();
    let mut told = BufReader::new(told);
    let mut line = String::new();
    while told.read_line(&mut line)? > 0 {
        let group = line.strip_suffix('\n').and_then(|line| group(line.get(1..)?));
        match (line.as_bytes().first(), group) {
            (Some(b'+'), Some(group)) => running.insert(group),
            (Some(b'-'), Some(group)) => running.remove(&group),
            _ => false,
        };
        line.clear();
    }
    Ok(running)
}

/// A group by its number. Number 1 would stand for every process there is.
fn group(number: &str) -> Option<Pid> {
    Pid::from_raw(number.parse().ok().filter(|number| *number > 1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_begun_and_not_ended_is_left_and_half_a_number_is_none() {
        let left = follow(b"+10\n+11\n-10\n+12\n+1\n+0\n+-5\n?\n+13".as_slice()).expect("memory can be read");
        let mut numbers: Vec<_> = left.iter().map(|group| group.as_raw_nonzero().get()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [11, 12]);
    }
}
