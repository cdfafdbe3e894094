//! The demo's ACP client: an agent as a child process, with its lines.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use serde_json::{json, Value};

use crate::failure::Failure;

/// How long the processes of an agent may take to be gone.
const GONE_LIMIT: Duration = Duration::from_secs(20);
/// What an agent of the demo inherits: with all of the environment, settings and proxies would come along.
const INHERITED: [&str; 3] = ["PATH", "HOME", "TMPDIR"];

/// An agent under way. Dropping it kills it.
pub(super) struct AgentProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    /// Gives what was written to stderr once every process that could write there is gone.
    stderr: Receiver<String>,
}

impl AgentProcess {
    /// Starts this same binary as an agent whose model is at `model_url`.
    pub(super) fn start(home: &Path, model_url: &str) -> Result<AgentProcess, Failure> {
        let failed = |error| Failure::io("cannot start the agent", &error);
        let program = std::env::current_exe().map_err(failed)?;
        let inherited = INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        let mut child = Command::new(program)
            .arg("agent")
            .env_clear()
            .envs(inherited)
            .env("WAXLOG_HOME", home)
            .envs([
                ("BUZZ_AGENT_PROVIDER", "openai"),
                ("OPENAI_COMPAT_API", "chat"),
                ("OPENAI_COMPAT_API_KEY", "not-needed"),
                ("OPENAI_COMPAT_MODEL", "recorded-model"),
                ("OPENAI_COMPAT_BASE_URL", model_url),
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdout), Some(mut stderr)) = (stdout, stderr) else {
            return Err(Failure::SetUp("the agent has no pipes; start the demo again".to_owned()));
        };
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let mut bytes = Vec::new();
            // What was read up to an error is still worth showing.
            let _ = stderr.read_to_end(&mut bytes);
            let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
        });
        Ok(AgentProcess { child, stdin, stdout: BufReader::new(stdout), stderr: receiver })
    }

    /// The process id.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a request.
    pub(super) fn send(&mut self, id: u64, method: &str, params: &Value) -> Result<(), Failure> {
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let Some(stdin) = self.stdin.as_mut() else { return Ok(()) };
        writeln!(stdin, "{line}").map_err(|error| Failure::io("cannot write to the agent", &error))
    }

    /// The next line.
    pub(super) fn next(&mut self) -> Result<Value, Failure> {
        let mut line = String::new();
        let read = self.stdout.read_line(&mut line);
        let read = read.map_err(|error| Failure::io("cannot read from the agent", &error))?;
        if read == 0 {
            let _ = self.child.kill();
            let log = self.stderr.recv_timeout(GONE_LIMIT).unwrap_or_default();
            return Err(Failure::Check(format!("the agent ended too early; its log: {log}")));
        }
        serde_json::from_str(&line)
            .map_err(|error| Failure::Check(format!("the agent wrote {line:?}: {error}")))
    }

    /// Sends a request and waits for its result.
    pub(super) fn ask(&mut self, id: u64, method: &str, params: &Value) -> Result<Value, Failure> {
        self.send(id, method, params)?;
        loop {
            let mut line = self.next()?;
            match (line["id"].as_u64() == Some(id), line.get("error")) {
                (true, None) => return Ok(line["result"].take()),
                (true, Some(error)) => return Err(Failure::Check(format!("{method} was refused: {error}"))),
                (false, _) => {}
            }
        }
    }

    /// Kills the agent as no program can prevent, and waits until its tools are gone as well.
    pub(super) fn kill(mut self) -> Result<(), Failure> {
        let killed = self.child.kill().and_then(|()| self.child.wait());
        killed.map_err(|error| Failure::io("cannot kill the agent", &error))?;
        self.gone().map(drop)
    }

    /// Ends the agent as a client does that goes away; gives what it wrote to its log.
    pub(super) fn close(mut self) -> Result<String, Failure> {
        self.stdin = None;
        let status = self.child.wait().map_err(|error| Failure::io("cannot wait for the agent", &error))?;
        let log = self.gone()?;
        match status.success() {
            true => Ok(log),
            false => Err(Failure::Check(format!("the agent ended with {status}; its log: {log}"))),
        }
    }

    fn gone(&self) -> Result<String, Failure> {
        self.stderr.recv_timeout(GONE_LIMIT).map_err(|_| {
            let seconds = GONE_LIMIT.as_secs();
            Failure::Check(format!("what the agent had started still runs {seconds} s after its end"))
        })
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        // Both fail only for a process that has ended and been waited for already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
