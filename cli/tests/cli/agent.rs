//! An ACP client: an agent as a child process.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use serde_json::{json, Value};

/// How long a test waits for anything: far more than it takes, far less than for ever.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// An agent under way. It is killed with the value.
pub(crate) struct Agent {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// Its log, once it and all that it started are gone.
    stderr: Receiver<String>,
    next_id: u64,
}

impl Agent {
    pub(crate) fn start(mut command: Command) -> Agent {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("starts");
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("piped");
        let mut stderr = child.stderr.take().expect("piped");
        let (to_lines, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = to_lines.send(serde_json::from_str(&line).expect("a line of JSON"));
            }
        });
        let (to_log, log) = mpsc::channel();
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stderr.read_to_end(&mut bytes);
            let _ = to_log.send(String::from_utf8_lossy(&bytes).into_owned());
        });
        Agent { child, stdin, lines, stderr: log, next_id: 0 }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a request; gives its id.
    pub(crate) fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.next_id += 1;
        let line = json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params});
        self.write(&line);
        self.next_id
    }

    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Answers the agent's own request `id`.
    pub(crate) fn respond(&mut self, id: &Value, result: &Value) {
        self.write(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn write(&mut self, line: &Value) {
        writeln!(self.stdin.as_mut().expect("open"), "{line}").expect("written");
    }

    /// The next line for which `wanted` gives something.
    pub(crate) fn wait<T>(&mut self, wanted: impl Fn(&Value) -> Option<T>) -> T {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).expect("a line in time");
            if let Some(found) = wanted(&line) {
                return found;
            }
        }
    }

    /// The answer to request `id`, result or error.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        self.wait(|line| (line["id"] == id).then(|| line.clone()))
    }

    /// Sends a request and gives its result.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        let answer = self.answer(id);
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// Opens a session; gives its id.
    pub(crate) fn open(&mut self, params: &Value) -> String {
        self.ask("session/new", params)["sessionId"].as_str().expect("an id").to_owned()
    }

    /// Starts a turn; gives the id of its request.
    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> u64 {
        self.send(
            "session/prompt",
            &json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]}),
        )
    }

    /// Runs a turn to its end; gives the stop reason.
    pub(crate) fn turn(&mut self, session: &str, text: &str) -> String {
        let id = self.prompt(session, text);
        let answer = self.answer(id);
        answer["result"]["stopReason"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Waits until call `id` runs.
    pub(crate) fn until_running(&mut self, id: &str) {
        self.wait(|line| {
            let update = &line["params"]["update"];
            (update["toolCallId"] == id && update["status"] == "in_progress").then_some(())
        });
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("asked").is_some()
    }

    /// SIGKILL; returns once nothing that the agent started is left.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("waited");
        self.stderr.recv_timeout(PATIENCE).expect("its servers end with it");
    }

    /// SIGKILL to the agent alone; what it started may go on.
    pub(crate) fn kill_alone(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("waited");
    }

    /// SIGTERM; gives the agent's log once nothing of it is left.
    pub(crate) fn terminate(self) -> String {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(pid).status().expect("runs").success());
        self.stderr.recv_timeout(PATIENCE).expect("ends at SIGTERM")
    }

    /// Goes away as a client does; gives the agent's log once nothing of it is left.
    pub(crate) fn close(mut self) -> String {
        self.stdin = None;
        let log = self.stderr.recv_timeout(PATIENCE).expect("ends with its client");
        assert!(self.child.wait().expect("waited").success(), "{log}");
        log
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
