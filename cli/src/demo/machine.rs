//! `waxlog up` as a child process, with the lines that it prints.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{kill_process, kill_process_group, Pid, Signal};
use serde_json::Value;
use waxlog_harness_core::record::Happened;

use crate::failure::Failure;
use crate::home::OpenLog;

/// How long anything may take that must come.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);
/// How long a process may take to be gone.
const GONE_LIMIT: Duration = Duration::from_secs(20);
const GONE_POLL: Duration = Duration::from_millis(20);
/// How many lines wait to be read.
const LINES_MAX: usize = 256;
/// What processes of the demo inherit: with all of the environment, settings and proxies would come along.
const INHERITED: [&str; 2] = ["PATH", "HOME"];
/// How the agent is told where its model is.
const PROVIDER: [(&str, &str); 4] = [
    ("BUZZ_AGENT_PROVIDER", "openai"),
    ("OPENAI_COMPAT_API", "chat"),
    ("OPENAI_COMPAT_API_KEY", "none"),
    ("OPENAI_COMPAT_MODEL", "recorded-model"),
];
/// Where the troubles of the child are written to.
const LOG_FILE: &str = "up.log";

/// Where the processes work.
pub(super) struct Site {
    /// The home of logs and keys.
    pub(super) home: PathBuf,
    /// The folder that the agent works in.
    pub(super) work: PathBuf,
    /// For what else there is to write.
    pub(super) folder: PathBuf,
    /// The model's URL.
    pub(super) model: String,
}

/// Relay, harness and agent under way. Dropping it kills them.
pub(super) struct Machine {
    child: Child,
    lines: Receiver<String>,
    log: PathBuf,
    home: PathBuf,
    /// The relay's URL.
    pub(super) relay: String,
    /// The channel's id.
    pub(super) channel: String,
    /// The agent's public key in hex.
    pub(super) agent: String,
}

impl Site {
    /// This same program with little of the environment, as the person of this home.
    pub(super) fn waxlog(&self) -> Result<Command, Failure> {
        let program =
            std::env::current_exe().map_err(|error| Failure::io("cannot find this program", &error))?;
        let mut command = Command::new(program);
        command.env_clear().current_dir(&self.work).stdin(Stdio::null());
        // What is killed leaves its temporary files, which go with the folder.
        command.env("WAXLOG_HOME", &self.home).env("TMPDIR", &self.folder);
        for name in INHERITED {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        Ok(command)
    }
}

impl Machine {
    /// Starts everything, and waits until the agent listens.
    pub(super) fn start(site: &Site) -> Result<Machine, Failure> {
        let log = site.folder.join(LOG_FILE);
        let failed = |error| Failure::io("cannot start waxlog up", &error);
        let troubles = File::create(&log).map_err(failed)?;
        let mut child = site
            .waxlog()?
            .args(["up", "--json", "--listen", "127.0.0.1:0"])
            .envs(PROVIDER)
            .env("OPENAI_COMPAT_BASE_URL", &site.model)
            .stdout(Stdio::piped())
            .stderr(troubles)
            .spawn()
            .map_err(failed)?;
        let (queue, lines) = mpsc::sync_channel(LINES_MAX);
        let stdout = child.stdout.take();
        // It ends with the child's output.
        thread::spawn(move || {
            let lines = stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).lines());
            for line in lines.map_while(Result::ok) {
                if queue.send(line).is_err() {
                    return;
                }
            }
        });
        let (home, unknown) = (site.home.clone(), String::new);
        let mut machine =
            Machine { child, lines, log, home, relay: unknown(), channel: unknown(), agent: unknown() };
        let ready = machine.next()?;
        let field = |name: &str| ready[name].as_str().unwrap_or_default().to_owned();
        (machine.relay, machine.channel, machine.agent) = (field("relay"), field("channel"), field("agent"));
        Ok(machine)
    }

    /// The next thing that it tells.
    pub(super) fn next(&self) -> Result<Value, Failure> {
        let line = self.lines.recv_timeout(PATIENCE).map_err(|error| match error {
            RecvTimeoutError::Timeout => {
                self.trouble(format!("nothing happened for {} s", PATIENCE.as_secs()))
            }
            RecvTimeoutError::Disconnected => self.trouble("waxlog up has ended".to_owned()),
        })?;
        serde_json::from_str(&line).map_err(|_| self.trouble(format!("waxlog up printed no JSON: {line}")))
    }

    /// Kills the agent, and then relay and harness, which are one process. None of them can prepare for it.
    /// Gives the process numbers.
    pub(super) fn kill(mut self) -> Result<[u32; 2], Failure> {
        let failed = |error: std::io::Error| Failure::io("cannot kill the processes", &error);
        let agent = self.agent_process()?;
        kill_group(agent).map_err(failed)?;
        self.child.kill().map_err(failed)?;
        self.child.wait().map_err(failed)?;
        Ok([agent, self.child.id()])
    }

    /// The agent's process, which the harness has recorded.
    fn agent_process(&self) -> Result<u32, Failure> {
        let log = OpenLog::open(&self.home.join("harness").join(&self.agent))?;
        let mut process = None;
        let read = waxlog_harness::read_log(&log.reader, |record| {
            if let Happened::AgentSpawned { pid, .. } = record.head.happened {
                process = Some(pid);
            }
        });
        read.map_err(|error| self.trouble(error.to_string()))?;
        process.ok_or_else(|| self.trouble("no agent was started".to_owned()))
    }

    /// Ends everything in order.
    pub(super) fn stop(mut self) -> Result<(), Failure> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)
            .map_err(|error| Failure::io("cannot end waxlog up", &error.into()))?;
        match self.wait()? {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(self.trouble(format!("waxlog up ended with {status}"))),
            None => Err(self.trouble(format!("waxlog up did not end within {} s", GONE_LIMIT.as_secs()))),
        }
    }

    fn wait(&mut self) -> Result<Option<ExitStatus>, Failure> {
        let begun = Instant::now();
        loop {
            let status = self.child.try_wait();
            let status = status.map_err(|error| Failure::io("cannot wait for waxlog up", &error))?;
            if status.is_some() || begun.elapsed() > GONE_LIMIT {
                return Ok(status);
            }
            thread::sleep(GONE_POLL);
        }
    }

    /// A failure with what the processes say of it.
    pub(super) fn trouble(&self, what: String) -> Failure {
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        Failure::Check(format!("{what}; its log says: {}", said.trim_end()))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // A failure on the way out has been told by whoever used it, and what has ended cannot be killed.
        if let Ok(None) = self.child.try_wait() {
            let _ = self.agent_process().map(kill_group);
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Kills an agent, which is at the head of its group.
fn kill_group(agent: u32) -> std::io::Result<()> {
    let group = i32::try_from(agent).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    Ok(kill_process_group(group, Signal::KILL)?)
}
