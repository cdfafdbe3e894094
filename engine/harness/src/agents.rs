//! Agent processes: each at the head of a process group of its own, read and written line by line.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command as StdCommand;
use std::sync::Arc;
use std::time::Duration;

use async_channel::{Receiver, Sender};
use async_process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use async_std::future::timeout;
use async_std::task::{self, JoinHandle};
use futures_lite::io::BufReader;
use futures_lite::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use rustix::process::{kill_process_group, Pid, Signal};
use waxlog_harness_core::acp::LINE_MAX_BYTES;
use waxlog_harness_core::record::{AgentEnd, Happened};

use crate::effects::Shared;

/// How long writing one line may take.
const WRITE: Duration = Duration::from_secs(30);
/// How long a killed process may take to be gone.
const REAP: Duration = Duration::from_secs(5);
/// How many lines wait to be written.
const LINES_MAX: usize = 256;

/// An agent, or one that is being started.
pub(crate) struct Agent {
    number: u64,
    lines: Sender<String>,
    child: Option<Group>,
    tasks: Vec<JoinHandle<()>>,
}

/// A process and its group. Dropping it kills the whole group.
struct Group {
    child: Child,
    group: Option<Pid>,
}

impl Agent {
    /// Starts the agent of a slot. What comes of it is told to the loop.
    pub(crate) fn start(number: u64, slot: usize, shared: Arc<Shared>) -> Self {
        let (lines, waiting) = async_channel::bounded(LINES_MAX);
        let mut agent = Self { number, lines, child: None, tasks: Vec::new() };
        match spawn(slot, &shared) {
            Ok((group, stdin, stdout)) => {
                let pid = group.child.id();
                agent.child = Some(group);
                agent.tasks.push(task::spawn({
                    let shared = shared.clone();
                    async move {
                        shared.tell(Happened::AgentSpawned { child: number, pid }, Vec::new()).await;
                        let how = read(number, stdout, &shared).await;
                        shared.tell(Happened::AgentEnded { child: number, how }, Vec::new()).await;
                    }
                }));
                agent.tasks.push(task::spawn(async move {
                    if let Err(reason) = write(stdin, &waiting).await {
                        let how = AgentEnd::WriteFailed { reason };
                        shared.tell(Happened::AgentEnded { child: number, how }, Vec::new()).await;
                    }
                }));
            }
            Err(error) => {
                let program = shared.config.settings.agent_command.program.clone();
                let reason = format!("{program}: {error}");
                task::spawn(async move {
                    shared.tell(Happened::AgentNotSpawned { child: number, reason }, Vec::new()).await;
                });
            }
        }
        agent
    }

    /// Writes a line. A queue that is full means that the agent does not read: it is told as one that ended.
    pub(crate) fn write(&self, line: String) {
        if self.lines.try_send(line).is_err() {
            self.lines.close();
        }
    }

    /// Kills the group and waits until its head is gone.
    pub(crate) async fn end(mut self) {
        for task in std::mem::take(&mut self.tasks) {
            task.cancel().await;
        }
        let Some(mut group) = self.child.take() else { return };
        group.kill();
        if timeout(REAP, group.child.status()).await.is_err() {
            log::warn!("agent process {} (child {}) does not end", group.child.id(), self.number);
        }
    }
}

impl Group {
    /// Kills the group, once: its head is not reaped before, so its number cannot belong to others yet.
    fn kill(&mut self) {
        if let Some(group) = self.group.take() {
            // The one way to fail is that nobody is left.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(slot: usize, shared: &Shared) -> io::Result<(Group, ChildStdin, ChildStdout)> {
    let config = &shared.config;
    let mut command = StdCommand::new(&config.settings.agent_command.program);
    command.args(&config.settings.agent_command.args).process_group(0);
    for (name, value) in extra_environment(slot, shared) {
        if std::env::var_os(&name).is_none() {
            command.env(name, value);
        }
    }
    for (name, value) in &config.agent_overrides {
        match value {
            Some(value) => command.env(name, value.expose()),
            None => command.env_remove(name),
        };
    }
    let mut child = Command::from(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()?;
    let pipes = child.stdin.take().zip(child.stdout.take());
    let group = Group { group: i32::try_from(child.id()).ok().and_then(Pid::from_raw), child };
    let (stdin, stdout) = pipes.ok_or_else(|| io::Error::other("no pipes to the process"))?;
    Ok((group, stdin, stdout))
}

/// What an agent gets beside what the harness itself was given.
fn extra_environment(slot: usize, shared: &Shared) -> BTreeMap<String, String> {
    let mut extra = shared.config.agent_environment.clone();
    extra.insert("WAXLOG_SLOT".to_owned(), shared.config.slot_name(slot));
    extra
}

/// Reads lines until there are no more.
async fn read(child: u64, stdout: ChildStdout, shared: &Shared) -> AgentEnd {
    let mut reader = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        let limit = u64::try_from(LINE_MAX_BYTES + 1).unwrap_or(u64::MAX);
        let count = match (&mut reader).take(limit).read_until(b'\n', &mut line).await {
            Ok(count) => count,
            Err(error) => {
                return AgentEnd::WriteFailed { reason: format!("its output cannot be read: {error}") }
            }
        };
        if count == 0 {
            return AgentEnd::Exited { code: None };
        }
        let is_whole = line.pop_if(|byte| *byte == b'\n').is_some();
        if !is_whole && line.len() > LINE_MAX_BYTES {
            return AgentEnd::LineTooLong { limit_bytes: LINE_MAX_BYTES };
        }
        shared.tell(Happened::AgentLine { child }, line).await;
    }
}

/// Writes lines until there are no more to come.
async fn write(mut stdin: ChildStdin, lines: &Receiver<String>) -> Result<(), String> {
    while let Ok(mut line) = lines.recv().await {
        line.push('\n');
        let writing = async {
            stdin.write_all(line.as_bytes()).await?;
            stdin.flush().await
        };
        match timeout(WRITE, writing).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => {
                return Err(format!("it does not read what is written to it within {} s", WRITE.as_secs()))
            }
        }
    }
    Ok(())
}
