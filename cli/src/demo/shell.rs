//! The demo's tool server: MCP on stdio with one tool, which runs a command in the session's folder.
//!
//! When stdin ends, whoever started the server is gone, also by a kill; commands that still run are then
//! killed with all they started, so nothing outlives the agent.

use std::io::{self, BufRead, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::process::{kill_process_group, waitid, Pid, Signal, WaitId, WaitIdOptions};
use serde_json::{json, Value};

use crate::failure::Failure;

const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

/// The commands under way, by process group, until the server closes.
#[derive(Default)]
struct Running {
    groups: Vec<Pid>,
    is_closing: bool,
}

type Shared = Arc<Mutex<Running>>;

/// Serves until stdin ends.
pub(crate) fn serve() -> Result<(), Failure> {
    let running = Shared::default();
    let mut calls = Vec::new();
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| Failure::io("cannot read stdin", &error))?;
        if let Ok(message) = serde_json::from_str(&line) {
            calls.extend(take(message, &running)?);
        }
    }
    close(&running);
    for call in calls {
        // A call that panicked has no command left to wait for.
        let _ = call.join();
    }
    Ok(())
}

/// Answers a message, a call on a thread of its own: it may take long, and the next line must not wait.
fn take(message: Value, running: &Shared) -> Result<Option<JoinHandle<()>>, Failure> {
    let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) else { return Ok(None) };
    let params = &message["params"];
    let command = params["arguments"]["command"].as_str();
    match (method, command) {
        ("initialize", _) => answer(id, "result", initialized(params))?,
        ("tools/list", _) => answer(id, "result", json!({"tools": [tool()]}))?,
        ("ping", _) => answer(id, "result", json!({}))?,
        ("tools/call", Some(command)) if params["name"] == "run" => {
            let (id, command, running) = (id.clone(), command.to_owned(), Arc::clone(running));
            return Ok(Some(thread::spawn(move || call(&id, &command, &running))));
        }
        ("tools/call", _) => {
            let message = "only the tool `run` is here, and it needs a `command`, a string";
            answer(id, "error", json!({"code": INVALID_PARAMS, "message": message}))?;
        }
        _ => answer(id, "error", json!({"code": METHOD_NOT_FOUND, "message": "no such method"}))?,
    }
    Ok(None)
}

fn initialized(params: &Value) -> Value {
    json!({
        "protocolVersion": params["protocolVersion"],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "waxlog demo-shell", "version": env!("CARGO_PKG_VERSION")},
    })
}

fn tool() -> Value {
    json!({
        "name": "run",
        "description": "Runs a shell command in the working folder and returns its output and exit status.",
        "inputSchema": {
            "type": "object",
            "properties": {"command": {"type": "string", "description": "The command for sh -c."}},
            "required": ["command"],
        },
    })
}

fn call(id: &Value, command: &str, running: &Shared) {
    let (text, is_error) = match run(command, running) {
        Ok((output, 0)) => (output, false),
        Ok((output, status)) => (format!("{output}\nexit status {status}"), true),
        Err(error) => (format!("the command did not run: {error}"), true),
    };
    let result = json!({"content": [{"type": "text", "text": text}], "isError": is_error});
    // The one way to fail is that nobody listens any more, and then stdin is at its end too.
    let _ = answer(id, "result", result);
}

/// Runs the command at the head of a process group; gives its output and exit status.
fn run(command: &str, running: &Shared) -> io::Result<(String, i32)> {
    let mut child = start(command, running)?;
    let mut output = Vec::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_end(&mut output)?;
    }
    let status = finish(&mut child, running)?;
    Ok((String::from_utf8_lossy(&output).into_owned(), status))
}

fn start(command: &str, running: &Shared) -> io::Result<Child> {
    // Held over the start: either the group is on the list when the server closes, or it never begins.
    let mut running = lock(running);
    if running.is_closing {
        return Err(io::Error::other("the server is closing"));
    }
    let child = Command::new("sh")
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()?;
    running.groups.push(Pid::from_child(&child));
    Ok(child)
}

/// Waits for the command. Its number leaves the list before it is free for others.
fn finish(child: &mut Child, running: &Shared) -> io::Result<i32> {
    let group = Pid::from_child(child);
    waitid(WaitId::Pid(group), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    lock(running).groups.retain(|other| *other != group);
    Ok(child.wait()?.code().unwrap_or(-1))
}

fn close(running: &Shared) {
    let mut running = lock(running);
    running.is_closing = true;
    for group in &running.groups {
        // The one way to fail is that nobody is left.
        let _ = kill_process_group(*group, Signal::KILL);
    }
}

fn answer(id: &Value, key: &str, value: Value) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{}", json!({"jsonrpc": "2.0", "id": id, key: value}))?;
    stdout.flush()
}

/// A thread that panicked left nothing half done.
fn lock(running: &Shared) -> MutexGuard<'_, Running> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}
