//! The guard: a process beside the server that cleans up after it when it is killed.
//!
//! Nothing runs in a process that gets SIGKILL, which is how agents stop a server. So the server tells its
//! guard through a pipe which groups run and which folders are its own; when the pipe ends, whatever the
//! reason, the guard kills those groups, removes those folders and ends. It stands in a group of its own and
//! knows no secret.
//!
//! A server may be killed before it could tell of a group. So every command carries a mark of its server in its
//! environment, and where there is a `/proc` the guard also ends whoever carries the mark in the server's
//! session. Who has left the session has done so on purpose.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{kill_process, kill_process_group, Pid, Signal};

/// The variable that carries the mark.
pub(crate) const MARK_VARIABLE: &str = "WAXLOG_MCP_MARK";
/// How often the marked are looked for: they may have had children meanwhile.
const SEARCHES_MAX: usize = 20;

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
    /// Starts `program` as the guard of `folders` and of those that carry `mark`. Without one the server works all
    /// the same.
    pub(crate) fn start(program: &Path, mark: &OsStr, folders: &[&Path]) -> Self {
        match Process::start(program, mark, folders) {
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
    fn start(program: &Path, mark: &OsStr, folders: &[&Path]) -> io::Result<Self> {
        let mut child = Command::new(program)
            .arg0(GUARD_LINK)
            .arg(mark)
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

/// The guard's side: waits for the end of stdin, then cleans up what its server has left. `arguments` are the mark
/// and the folders that go at the end.
pub fn stand(arguments: &[OsString]) -> io::Result<()> {
    let (mark, folders) = arguments.split_first().ok_or_else(|| io::Error::other("no mark was given"))?;
    let left = follow(io::stdin().lock())?;
    for group in left {
        // The one way to fail is that nobody is left.
        let _ = kill_process_group(group, Signal::KILL);
    }
    end_marked(mark);
    for folder in folders {
        match fs::remove_dir_all(folder) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Ends whoever carries the mark in this session, until there is nobody.
fn end_marked(mark: &OsStr) {
    let wanted = [MARK_VARIABLE.as_bytes(), b"=", mark.as_bytes()].concat();
    let Some(own) = session("self") else { return };
    for _ in 0..SEARCHES_MAX {
        let marked: Vec<_> =
            processes().filter(|pid| session(pid).as_ref() == Some(&own) && carries(pid, &wanted)).collect();
        for pid in marked.iter().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)) {
            // The one way to fail is that it has ended by itself.
            let _ = kill_process(pid, Signal::KILL);
        }
        if marked.is_empty() {
            break;
        }
    }
}

/// The numbers of the machine's processes, where it lists them.
fn processes() -> impl Iterator<Item = String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_number = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit());
    entries.filter_map(|entry| entry.file_name().into_string().ok()).filter(is_number)
}

/// The session of a process, as text: it may be 0, that of a process from outside of this container. Read from
/// what stands behind the program's name, which may hold anything.
fn session(pid: &str) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    // One that has ended has left nothing to end.
    fields.next().filter(|state| !matches!(*state, "Z" | "X"))?;
    fields.nth(2).map(str::to_owned)
}

/// Whether the environment that a process was started with holds `variable`. One that has ended has none.
fn carries(pid: &str, variable: &[u8]) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry == variable)
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

    fn sleeper(command: &mut Command, mark: &str) -> Child {
        command.arg("600").env(MARK_VARIABLE, mark).spawn().expect("sleeps")
    }

    #[test]
    fn the_marked_of_the_session_are_ended_and_nobody_else() {
        let mut ours = sleeper(&mut Command::new("sleep"), "/tmp/a");
        let mut grouped = sleeper(Command::new("sleep").process_group(0), "/tmp/a");
        let others = [
            sleeper(&mut Command::new("sleep"), "/tmp/a-other"),
            sleeper(Command::new("setsid").arg("sleep"), "/tmp/a"),
        ];
        // setsid has left the session when its process is the sleep that it becomes.
        let away = others[1].id().to_string();
        while session(&away) == session("self") {
            std::thread::yield_now();
        }
        end_marked(OsStr::new("/tmp/a"));
        for child in [&mut ours, &mut grouped] {
            assert!(!child.wait().expect("ended").success());
        }
        for mut child in others {
            assert!(child.try_wait().expect("asked").is_none());
            child.kill().expect("it runs");
            child.wait().expect("waited");
        }
    }
}
