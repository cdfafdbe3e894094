//! An MCP client: a tool server as a child process, in a workspace and with a temp folder of its own.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{json, Value};
use tempfile::TempDir;

/// The binary under test.
pub(crate) const WAXLOG: &str = env!("CARGO_BIN_EXE_waxlog");
/// How long a test waits for anything: far more than it takes, far less than for ever.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// How often a thing that cannot be awaited is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Where a server works. It goes with the value.
pub(crate) struct Stage {
    folder: TempDir,
}

impl Stage {
    pub(crate) fn new() -> Stage {
        let folder = tempfile::tempdir().expect("temp dir");
        for name in ["work", "tmp", "home"] {
            fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        Stage { folder }
    }

    /// A path in the workspace.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.folder.path()).expect("there").join("work").join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).expect("written");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("readable")
    }

    /// A folder of links to programs that are installed, to be a `PATH` with nothing else on it.
    pub(crate) fn programs(&self, names: &[&str]) -> PathBuf {
        let folder = self.folder.path().join("bin");
        fs::create_dir(&folder).expect("a folder");
        let path = std::env::var_os("PATH").expect("a PATH");
        for name in names {
            let mut found = std::env::split_paths(&path).map(|folder| folder.join(name));
            let program = found.find(|program| program.is_file()).expect("installed");
            symlink(program, folder.join(name)).expect("a link");
        }
        folder
    }

    /// What servers have left outside of the workspace.
    pub(crate) fn leftovers(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.path().join("tmp")).expect("there");
        entries.map(|entry| entry.expect("an entry").path()).collect()
    }

    /// The processes that run in this stage: its folder is in their environment.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let folder = self.folder.path().to_string_lossy().into_owned().into_bytes();
        let numbers = fs::read_dir("/proc").expect("a /proc").flatten();
        let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let is_here = |pid: &u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            runs(*pid) && environment.windows(folder.len()).any(|part| part == folder)
        };
        numbers.filter(is_here).collect()
    }

    /// The binary with little more than `PATH` in its environment.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.env("TMPDIR", self.folder.path().join("tmp")).env("HOME", self.folder.path().join("home"));
        command.env("GIT_CONFIG_NOSYSTEM", "1").current_dir(self.path(""));
        command
    }

    /// A server that has been greeted.
    pub(crate) fn server(&self) -> Server {
        self.server_with(&[])
    }

    pub(crate) fn server_with(&self, settings: &[(&str, &str)]) -> Server {
        let mut server = self.silent_server_with(settings);
        server.greet();
        server
    }

    /// A server that nobody has spoken to.
    pub(crate) fn silent_server_with(&self, settings: &[(&str, &str)]) -> Server {
        let mut command = self.command(WAXLOG);
        command.arg("mcp").envs(settings.iter().copied());
        Server::start(command)
    }

    /// Waits until a command has written a number to a file of the workspace.
    pub(crate) fn wait_for_pid(&self, name: &str) -> u32 {
        let begun = Instant::now();
        loop {
            let text = fs::read_to_string(self.path(name)).unwrap_or_default();
            // Without its line feed it may be half a number.
            if let Some(pid) = text.strip_suffix('\n').and_then(|text| text.trim().parse().ok()) {
                return pid;
            }
            assert!(begun.elapsed() < PATIENCE, "{name} was never written");
            thread::sleep(POLL_INTERVAL);
        }
    }
}

/// A server under way. It is killed with the value.
pub(crate) struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// Its log, once it and all that it started are gone.
    stderr: Receiver<String>,
    /// Answers that came while another was waited for.
    early: HashMap<String, Value>,
    next_id: u64,
}

impl Server {
    pub(crate) fn start(mut command: Command) -> Server {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().expect("starts");
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("piped");
        let mut stderr = child.stderr.take().expect("piped");
        let (to_lines, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // A test that has ended listens no more.
                let _ = to_lines.send(serde_json::from_str(&line).expect("a line of JSON"));
            }
        });
        let (to_log, log) = mpsc::channel();
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stderr.read_to_end(&mut bytes);
            let _ = to_log.send(String::from_utf8_lossy(&bytes).into_owned());
        });
        Server { child, stdin, lines, stderr: log, early: HashMap::new(), next_id: 0 }
    }

    /// Introduces a client; gives the answer's result.
    pub(crate) fn greet(&mut self) -> Value {
        let info = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
        let id = self.ask("initialize", &params);
        let answer = self.answer(&id);
        self.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        answer["result"].clone()
    }

    pub(crate) fn write(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().expect("open"), "{line}").expect("written");
    }

    /// Sends a request; gives its id.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.next_id += 1;
        let id = json!(self.next_id);
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        id
    }

    /// Begins a call; gives its id.
    pub(crate) fn begin(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    pub(crate) fn cancel(&mut self, id: &Value) {
        let params = json!({"requestId": id, "reason": "not needed"});
        self.write(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).to_string(),
        );
    }

    /// The next line, whatever it is.
    pub(crate) fn next(&mut self) -> Value {
        self.lines.recv_timeout(PATIENCE).expect("a line in time")
    }

    /// The answer to a request, result or error.
    pub(crate) fn answer(&mut self, id: &Value) -> Value {
        loop {
            if let Some(answer) = self.early.remove(&id.to_string()) {
                return answer;
            }
            let line = self.next();
            assert!(
                self.early.insert(line["id"].to_string(), line.clone()).is_none(),
                "answered twice: {line}"
            );
        }
    }

    /// Makes a call and gives its answer.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.begin(tool, arguments);
        self.answer(&id)
    }

    /// Makes a call that must succeed; gives its text.
    #[track_caller]
    pub(crate) fn text(&mut self, tool: &str, arguments: Value) -> String {
        text_of(&self.call(tool, arguments))
    }

    /// Makes a call that must be refused with this code; gives the message.
    #[track_caller]
    pub(crate) fn refused(&mut self, code: i64, tool: &str, arguments: Value) -> String {
        let answer = self.call(tool, arguments);
        assert_eq!(answer["error"]["code"], code, "{answer}");
        answer["error"]["message"].as_str().expect("a message").to_owned()
    }

    /// Makes a call whose result must be an error; gives its text.
    #[track_caller]
    pub(crate) fn failed(&mut self, tool: &str, arguments: Value) -> String {
        let answer = self.call(tool, arguments);
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        answer["result"]["content"][0]["text"].as_str().expect("a text").to_owned()
    }

    /// Runs a command; gives what is told of it.
    #[track_caller]
    pub(crate) fn shell(&mut self, command: &str) -> Value {
        body_of(&self.call("shell", json!({"command": command})))
    }

    /// Runs a command that must succeed; gives what it has printed.
    #[track_caller]
    pub(crate) fn stdout(&mut self, command: &str) -> String {
        let body = self.shell(command);
        assert_eq!((&body["exit_code"], &body["stderr"]), (&json!(0), &json!("")), "{body}");
        body["stdout"].as_str().expect("text").to_owned()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends stdin.
    pub(crate) fn close(&mut self) {
        self.stdin = None;
    }

    /// Waits for the end of the process.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("asked") {
                return status;
            }
            assert!(begun.elapsed() < PATIENCE, "still running");
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Ends stdin and waits; gives the exit code and the log.
    pub(crate) fn finish(mut self) -> (Option<i32>, String) {
        self.close();
        let status = self.wait();
        (status.code(), self.stderr.recv_timeout(PATIENCE).expect("stderr ends"))
    }

    /// The lines that nobody has waited for, once there will be no more.
    pub(crate) fn rest(&mut self) -> Vec<Value> {
        self.lines.iter().collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended cannot be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The text of a result that is no error.
#[track_caller]
pub(crate) fn text_of(answer: &Value) -> String {
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    answer["result"]["content"][0]["text"].as_str().expect("a text").to_owned()
}

/// What a shell call tells.
#[track_caller]
pub(crate) fn body_of(answer: &Value) -> Value {
    serde_json::from_str(&text_of(answer)).expect("JSON")
}

/// Whether a process runs: one that has ended and waits for its parent does not.
pub(crate) fn runs(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

#[track_caller]
pub(crate) fn expect_gone(pids: &[u32]) {
    wait_until("they are gone", || !pids.iter().any(|pid| runs(*pid)));
}

#[track_caller]
pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        thread::sleep(POLL_INTERVAL);
    }
}
