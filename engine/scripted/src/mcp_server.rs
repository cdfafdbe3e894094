//! A scripted MCP server on stdio.
//!
//! The script is one JSON object (see [`Script`]); the log gets one line per start,
//! `{"start": pid, "env": [names]}`, and one per line received, `{"pid": pid, "msg": message}`.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{json, Value};
use waxlog_core::mcp::answer::{self, INVALID_PARAMS, METHOD_NOT_FOUND};

/// What the server does; every key may be left out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Script {
    /// The tools it lists.
    pub tools: Vec<ToolScript>,
    /// Whether `initialize` is never answered.
    pub hang_initialize: bool,
    /// Whether `tools/list` is never answered.
    pub hang_list: bool,
    /// How many tools a page of the listing has; absent or 0 is all.
    pub pages: usize,
    /// Lines for stdout before the handshake, verbatim.
    pub noise: Vec<String>,
    /// Text for stderr at the start.
    pub stderr: String,
}

/// One tool.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToolScript {
    /// Its name.
    pub name: String,
    /// What it says it does.
    #[serde(default)]
    pub description: String,
    /// Its input schema; absent is that of an object.
    #[serde(default, rename = "inputSchema")]
    pub input_schema: Option<Value>,
    /// What its calls do: the n-th call the n-th, all further calls the last. None at all answer `ok`.
    #[serde(default)]
    pub calls: Vec<CallScript>,
}

/// What one call does, in the order of the keys.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CallScript {
    /// Start `sleep 600` in the same process group; the log gets `{"child": pid}`.
    pub child: bool,
    /// Wait, in milliseconds.
    pub delay_ms: u64,
    /// Never answer.
    pub hang: bool,
    /// End the process with this status instead of an answer.
    pub exit: Option<i32>,
    /// Print this line instead of an answer.
    pub raw: Option<String>,
    /// Answer with this error.
    pub error: Option<Value>,
    /// Answer with this result.
    pub result: Option<Value>,
    /// Answer with this text.
    pub text: Option<String>,
    /// Answer with the arguments as text.
    pub echo: bool,
    /// Repeat the text up to this many bytes.
    pub size: usize,
    /// End the process with this status after the answer.
    pub exit_after: Option<i32>,
}

/// The process: takes script and log from the command line, serves until stdin ends.
pub fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [script, log] = arguments.as_slice() else {
        eprintln!("usage: scripted-mcp SCRIPT.json LOG.jsonl");
        return ExitCode::from(2);
    };
    match run(Path::new(script), Path::new(log)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("scripted-mcp: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves the script until stdin ends.
pub fn run(script: &Path, log: &Path) -> io::Result<()> {
    let script: Script = serde_json::from_slice(&std::fs::read(script)?)?;
    let log = OpenOptions::new().create(true).append(true).open(log)?;
    let server = Arc::new(Server { script, log: Mutex::new(log), counts: Mutex::default() });
    let names: Vec<_> = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    server.note(&json!({ "start": std::process::id(), "env": names }))?;
    eprint!("{}", server.script.stderr);
    for line in &server.script.noise {
        put_text(line)?;
    }
    for line in io::stdin().lock().lines() {
        let line = line?;
        if !line.trim().is_empty() {
            server.take(serde_json::from_str(&line)?)?;
        }
    }
    Ok(())
}

struct Server {
    script: Script,
    log: Mutex<File>,
    counts: Mutex<BTreeMap<String, usize>>,
}

impl Server {
    fn take(self: &Arc<Self>, message: Value) -> io::Result<()> {
        self.note(&json!({ "pid": std::process::id(), "msg": message }))?;
        let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) else {
            return Ok(());
        };
        let params = &message["params"];
        match method {
            "initialize" if self.script.hang_initialize => Ok(()),
            "initialize" => {
                let version = params["protocolVersion"].as_str().unwrap_or_default();
                put(&answer::result(id, answer::initialized(version, "scripted", "")))
            }
            "tools/list" if self.script.hang_list => Ok(()),
            "tools/list" => put(&answer::result(id, self.page(params["cursor"].as_str()))),
            "tools/call" => {
                let (server, id, params) = (Arc::clone(self), id.clone(), params.clone());
                // A call may wait; the next line must not.
                thread::spawn(move || server.call(&id, &params));
                Ok(())
            }
            "ping" => put(&answer::result(id, json!({}))),
            _ => put(&answer::error(Some(id), METHOD_NOT_FOUND, "no such method")),
        }
    }

    fn page(&self, cursor: Option<&str>) -> Value {
        let tools = &self.script.tools;
        let size = match self.script.pages {
            0 => tools.len().max(1),
            size => size,
        };
        let at = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
        let object = json!({ "type": "object", "properties": {} });
        let described: Vec<_> = tools
            .iter()
            .skip(at)
            .take(size)
            .map(|tool| {
                json!({
                    "name": tool.name,
                    "description": tool.description,
                    "inputSchema": tool.input_schema.as_ref().unwrap_or(&object),
                })
            })
            .collect();
        let mut page = json!({ "tools": described });
        if at + size < tools.len() {
            page["nextCursor"] = (at + size).to_string().into();
        }
        page
    }

    fn call(&self, id: &Value, params: &Value) -> io::Result<()> {
        let name = params["name"].as_str().unwrap_or_default();
        let Some(tool) = self.script.tools.iter().find(|tool| tool.name == name) else {
            return put(&answer::error(Some(id), INVALID_PARAMS, "unknown tool"));
        };
        let how = self.next_call(tool);
        if how.child {
            let child = Command::new("sleep").arg("600").spawn()?;
            self.note(&json!({ "child": child.id() }))?;
        }
        thread::sleep(Duration::from_millis(how.delay_ms));
        if how.hang {
            return Ok(());
        }
        if let Some(status) = how.exit {
            std::process::exit(status);
        }
        if let Some(line) = &how.raw {
            return put_text(line);
        }
        match (&how.error, &how.result) {
            // Errors and results are the script's own, sound or not.
            (Some(error), _) => put_text(&json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string())?,
            (None, Some(result)) => put(&answer::result(id, result.clone()))?,
            (None, None) => {
                let text = how.answer_text(&params["arguments"]);
                let content = json!([{ "type": "text", "text": text }]);
                put(&answer::result(id, json!({ "content": content })))?;
            }
        }
        if let Some(status) = how.exit_after {
            std::process::exit(status);
        }
        Ok(())
    }

    fn next_call(&self, tool: &ToolScript) -> CallScript {
        let mut counts = lock(&self.counts);
        let count = counts.entry(tool.name.clone()).or_default();
        let at = (*count).min(tool.calls.len().saturating_sub(1));
        *count += 1;
        tool.calls.get(at).cloned().unwrap_or_default()
    }

    fn note(&self, entry: &Value) -> io::Result<()> {
        writeln!(lock(&self.log), "{entry}")
    }
}

impl CallScript {
    fn answer_text(&self, arguments: &Value) -> String {
        let text = if self.echo {
            arguments.to_string()
        } else {
            self.text.clone().unwrap_or_else(|| "ok".to_owned())
        };
        if self.size == 0 || text.is_empty() {
            return text;
        }
        text.chars().cycle().take(self.size).collect()
    }
}

/// Prints a line at once and in one piece.
fn put(line: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(line)?;
    stdout.flush()
}

fn put_text(line: &str) -> io::Result<()> {
    put(format!("{line}\n").as_bytes())
}

/// A thread that panicked left nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
