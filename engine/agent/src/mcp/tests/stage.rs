//! What the tests share: a folder with scripts and logs, and ways to look at processes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use async_std::task;
use serde_json::{json, Value};
use tempfile::TempDir;

use super::super::*;
use crate::config::{Environment, RestartPolicy};
use crate::secret::Secret;

pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// A pause long enough to be seen, short enough to be waited for.
pub(super) const BASE_MS: u64 = 150;

/// A folder in which scripted servers run.
pub(super) struct Stage {
    folder: TempDir,
    pub(super) settings: ServerSettings,
}

impl Stage {
    pub(super) fn new() -> Self {
        let path = std::env::var("PATH").unwrap_or_default();
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            settings: ServerSettings {
                env: Environment::from_iter([("PATH", path)]),
                init_timeout: PATIENCE,
                restart: RestartPolicy { max_attempts: 3, base_ms: BASE_MS, max_ms: 10_000 },
            },
        }
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes the script of the server `name`, from its next start on.
    pub(super) fn write(&self, name: &str, script: Value) {
        std::fs::write(self.file(name, "json"), script.to_string()).expect("written");
    }

    /// A scripted server.
    pub(super) fn spec(&self, name: &str, script: Value) -> ServerSpec {
        self.write(name, script);
        let file = |kind| self.file(name, kind).display().to_string();
        self.program(name, scripted_mcp(), vec![file("json"), file("jsonl")])
    }

    /// A server that is a line of shell.
    pub(super) fn shell(&self, name: &str, line: &str) -> ServerSpec {
        let args = vec!["-c".to_owned(), line.to_owned()];
        self.program(name, PathBuf::from("/bin/sh"), args)
    }

    fn program(&self, name: &str, command: PathBuf, args: Vec<String>) -> ServerSpec {
        ServerSpec {
            name: name.to_owned(),
            command: command.display().to_string(),
            args,
            env: Vec::<(String, Secret<String>)>::new(),
            cwd: self.folder().to_owned(),
        }
    }

    pub(super) fn start(&self, specs: Vec<ServerSpec>) -> Result<Servers, StartError> {
        task::block_on(Servers::start(specs, &self.settings))
    }

    /// One scripted server with these tools, running.
    pub(super) fn server(&self, tools: Value) -> Arc<Server> {
        let spec = self.spec("s", json!({ "tools": tools }));
        Arc::clone(&self.start(vec![spec]).expect("starts").list[0])
    }

    /// All that the server `name` has logged.
    pub(super) fn log(&self, name: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.file(name, "jsonl")).unwrap_or_default();
        let entry = |line: &str| serde_json::from_str(line).expect("one entry");
        // A line that is being written is not read yet.
        text.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(entry).collect()
    }

    /// The process ids of all its starts.
    pub(super) fn starts(&self, name: &str) -> Vec<u64> {
        self.log(name).iter().filter_map(|entry| entry["start"].as_u64()).collect()
    }

    /// What it was sent, over all starts.
    pub(super) fn received(&self, name: &str) -> Vec<Value> {
        let log = self.log(name).into_iter();
        log.filter_map(|entry| entry.get("msg").cloned()).collect()
    }

    /// How often a tool was called, over all starts.
    pub(super) fn calls(&self, name: &str) -> usize {
        let received = self.received(name);
        received.iter().filter(|message| message["method"] == "tools/call").count()
    }

    /// The first child that it started.
    pub(super) fn child(&self, name: &str) -> u64 {
        eventually("a child", || self.log(name).iter().find_map(|entry| entry["child"].as_u64()))
    }

    fn file(&self, name: &str, kind: &str) -> PathBuf {
        self.folder().join(format!("{name}.{kind}"))
    }
}

pub(super) fn request(tool: &str, cancel: &CancelSignal) -> CallRequest {
    CallRequest { tool: tool.to_owned(), arguments: json!({}), cancel: cancel.clone(), timeout: PATIENCE }
}

/// Makes a call that nobody cancels.
pub(super) fn call(server: &Server, tool: &str) -> CallReport {
    let (_source, cancel) = cancel_pair();
    task::block_on(server.call(request(tool, &cancel)))
}

/// Makes a call that may take `timeout`.
pub(super) fn call_within(server: &Server, tool: &str, timeout: Duration) -> CallReport {
    let (_source, cancel) = cancel_pair();
    let request = CallRequest { timeout, ..request(tool, &cancel) };
    task::block_on(server.call(request))
}

/// The text that a tool answered with.
pub(super) fn answer(report: &CallReport) -> String {
    let CallOutcome::Returned { raw_line } = &report.outcome else {
        panic!("no answer: {report:?}");
    };
    let line: Value = serde_json::from_slice(raw_line).expect("JSON");
    line["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

pub(super) fn unavailable(report: &CallReport) -> &str {
    match &report.outcome {
        CallOutcome::Unavailable { text } => text,
        other => panic!("not refused: {other:?}"),
    }
}

/// Waits until `look` finds something.
pub(super) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the process is gone, reaped and all.
pub(super) fn gone(pid: u64) {
    let status = PathBuf::from(format!("/proc/{pid}"));
    eventually("the end of a process", || (!status.exists()).then_some(()));
}

/// Waits until the process, which others have to reap, runs no more.
pub(super) fn dead(pid: u64) {
    let status = PathBuf::from(format!("/proc/{pid}"));
    let ended = || !status.exists() || stat(pid)[0] == "Z";
    eventually("the death of a process", || ended().then_some(()));
}

/// The fields of `/proc/<pid>/stat` after the program's name: state, parent, group, ...
pub(super) fn stat(pid: u64) -> Vec<String> {
    // A process that is gone meanwhile counts as one that nobody has reaped yet.
    let gone = || "0 (gone) Z".to_owned();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_else(|_| gone());
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    fields.split_whitespace().map(str::to_owned).collect()
}

/// Waits out the longest pause after a first failure.
pub(super) fn sit_out_backoff() {
    thread::sleep(Duration::from_millis(BASE_MS * 12 / 10 + 20));
}

/// Cargo builds the examples of a package along with its tests, next to them.
fn scripted_mcp() -> PathBuf {
    let test = std::env::current_exe().expect("a test");
    let folder = test.parent().and_then(Path::parent).expect("a target folder");
    let program = folder.join("examples/scripted-mcp");
    assert!(program.exists(), "cargo build -p waxlog-agent --example scripted-mcp");
    program
}
