//! The server: requests in, answers out, many at a time and none lost.
//!
//! Reading never waits for a call. Calls that may take long have a thread each. Those that change or read files
//! go one after the other, in the order in which they came, so that no edit is lost and each sees those before
//! it. The todo list is so quick that it is answered on the spot.

mod answers;
mod calls;
mod lines;

use std::fs::File;
use std::io::{self, BufRead, Write};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{json, Map, Value};
use waxlog_core::mcp::answer::{self, METHOD_NOT_FOUND, PARSE_ERROR};
use waxlog_core::mcp::{decode_request, Inbound};

use self::answers::Answers;
pub(crate) use self::calls::Stop;
use self::calls::{Call, Calls, CALLS_MAX};
use self::lines::{next_line, Incoming, LINE_MAX_BYTES};
use crate::catalogue::{listing, Tool};
use crate::files::{read_file, str_replace};
use crate::guard::Guard;
use crate::image::Images;
use crate::instructions::instructions;
use crate::shell::Shell;
use crate::shims::{remove, Shims};
use crate::todo::Todo;
use crate::tool::{line, Outcome, ToolError};
use crate::variables::Variables;

/// The name that clients see; agents know their tools by it.
const SERVER_NAME: &str = "buzz-dev-mcp";
/// The versions of the protocol that are served as they are asked for.
const VERSIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
/// The version for clients that ask for another.
const VERSION_DEFAULT: &str = "2025-11-25";
/// How long calls may go on after the end of stdin.
const LAST_CALLS_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the killing of the rest may take.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// How serving came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// The client has closed stdin.
    Whole,
    /// The client never introduced itself.
    WithoutClient,
}

/// Where a server stands.
pub(crate) struct Place {
    pub(crate) cwd: PathBuf,
    /// What commands get.
    pub(crate) variables: Variables,
    pub(crate) shims: Shims,
    /// For what calls leave.
    pub(crate) session: PathBuf,
    pub(crate) guard: Guard,
    /// Says to other servers that the folders are in use.
    pub(crate) _held: [Option<File>; 2],
}

type Job = Box<dyn FnOnce() + Send>;

/// A server. It serves one client.
pub(crate) struct Server {
    tools: Arc<Tools>,
    answers: Arc<Answers>,
    calls: Calls,
    /// Work on files, one after the other.
    file_work: Mutex<Sender<Job>>,
    place: Place,
    /// Held while the server is taken down, so that it is done once.
    is_closed: Mutex<bool>,
}

struct Tools {
    cwd: PathBuf,
    shell: Shell,
    images: Images,
    todo: Todo,
}

/// Whether to read on.
#[derive(PartialEq, Eq)]
enum Then {
    ReadOn,
    End,
}

impl Server {
    /// A server that answers on `output`.
    pub(crate) fn start(place: Place, output: impl Write + Send + 'static) -> io::Result<Self> {
        let (file_work, jobs) = channel::<Job>();
        thread::Builder::new()
            .name("files".to_owned())
            .spawn(move || jobs.into_iter().for_each(|job| job()))?;
        let shell = Shell::new(place.variables.clone(), &place.cwd, &place.session, place.guard.clone());
        let images = Images::new(place.variables.clone());
        Ok(Self {
            tools: Arc::new(Tools { cwd: place.cwd.clone(), shell, images, todo: Todo::default() }),
            answers: Arc::new(Answers::start(output)?),
            calls: Calls::default(),
            file_work: Mutex::new(file_work),
            place,
            is_closed: Mutex::new(false),
        })
    }

    /// Serves until `input` ends, then brings all calls to their end.
    pub(crate) fn serve(&self, mut input: impl BufRead) -> io::Result<Served> {
        let mut is_introduced = false;
        let read = loop {
            match next_line(&mut input, LINE_MAX_BYTES) {
                Ok(Some(Incoming::Line(line))) => {
                    if self.take(&line, &mut is_introduced) == Then::End {
                        break Ok(());
                    }
                }
                Ok(Some(Incoming::TooLong)) => {
                    let text = format!("a line has more than {LINE_MAX_BYTES} bytes, which is the limit");
                    self.answers.say(answer::error(None, PARSE_ERROR, &text));
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.calls.wait(LAST_CALLS_TIMEOUT);
        self.close();
        read.map(|()| if is_introduced { Served::Whole } else { Served::WithoutClient })
    }

    fn take(&self, line: &[u8], is_introduced: &mut bool) -> Then {
        match decode_request(line) {
            Inbound::Blank | Inbound::Response { .. } => {}
            Inbound::Unparsable => {
                self.answers.say(answer::error(None, PARSE_ERROR, "Parse error: not a JSON-RPC message"));
            }
            Inbound::Notification { method, params } => {
                if method == "notifications/cancelled" {
                    self.calls.cancel(&params["requestId"]);
                }
            }
            Inbound::Request { id, method, .. } if method == "ping" => {
                self.answers.say(answer::result(&id, json!({})));
            }
            Inbound::Request { id, method, params } if method == "initialize" => {
                *is_introduced = true;
                self.answers.say(answer::result(&id, self.initialized(&params)));
            }
            Inbound::Request { .. } if !*is_introduced => return Then::End,
            Inbound::Request { id, method, params } => self.request(id, &method, params),
        }
        Then::ReadOn
    }

    fn initialized(&self, params: &Value) -> Value {
        let asked = params["protocolVersion"].as_str().unwrap_or_default();
        let version = VERSIONS.into_iter().find(|version| *version == asked).unwrap_or(VERSION_DEFAULT);
        let shell = self.tools.shell.name();
        let instructions = instructions(&self.place.cwd, &shell, &self.place.variables);
        answer::initialized(version, SERVER_NAME, &instructions)
    }

    fn request(&self, id: Value, method: &str, params: Value) {
        let result = match method {
            "tools/list" => listing(),
            "prompts/list" => json!({ "prompts": [] }),
            "resources/list" => json!({ "resources": [] }),
            "resources/templates/list" => json!({ "resourceTemplates": [] }),
            "tools/call" => match read_call(params) {
                Some((name, given)) => return self.call(id, &name, given),
                None => return self.answers.say(answer::error(Some(&id), METHOD_NOT_FOUND, method)),
            },
            _ => return self.answers.say(answer::error(Some(&id), METHOD_NOT_FOUND, method)),
        };
        self.answers.say(answer::result(&id, result));
    }

    fn call(&self, id: Value, name: &str, given: Map<String, Value>) {
        let Some(tool) = Tool::named(name) else {
            return self.say(&id, Err(ToolError::Invalid(format!("tool not found: {name}; see tools/list"))));
        };
        let todo = &self.tools.todo;
        let outcome = match tool {
            Tool::Todo => todo.call(given),
            Tool::Stop => todo.stop(given),
            Tool::PostCompact => todo.post_compact(given),
            Tool::ReadFile | Tool::StrReplace | Tool::Shell | Tool::ViewImage => {
                match self.calls.begin(&id) {
                    Some(call) => return self.begin(id, tool, given, call),
                    None => Err(ToolError::Refused(format!(
                        "{CALLS_MAX} calls are under way, which is the limit; wait for one to end"
                    ))),
                }
            }
        };
        self.say(&id, outcome);
    }

    /// Starts a call beside the reading.
    fn begin(&self, id: Value, tool: Tool, given: Map<String, Value>, call: Call) {
        let (tools, answers) = (Arc::clone(&self.tools), Arc::clone(&self.answers));
        let asked = id.clone();
        let job: Job = Box::new(move || {
            let outcome = without_panic(|| match tool {
                Tool::ReadFile => read_file(&tools.cwd, given),
                Tool::StrReplace => str_replace(&tools.cwd, given),
                Tool::ViewImage => tools.images.call(&tools.cwd, given, &call.stop()),
                _ => tools.shell.call(given, &call.stop()),
            });
            if let Some(line) = line(&asked, outcome) {
                answers.say(line);
            }
            drop(call);
        });
        let begun = match tool {
            Tool::ReadFile | Tool::StrReplace => {
                let work = self.file_work.lock().unwrap_or_else(PoisonError::into_inner);
                work.send(job).map_err(|_| io::Error::other("the thread for files is gone"))
            }
            _ => thread::Builder::new().name("call".to_owned()).spawn(job).map(drop),
        };
        if let Err(error) = begun {
            self.say(&id, Err(ToolError::io("the call cannot be started", &error)));
        }
    }

    fn say(&self, id: &Value, outcome: Outcome) {
        if let Some(line) = line(id, outcome) {
            self.answers.say(line);
        }
    }

    /// Kills what runs, writes what is left to say and removes what was made. Doing it again does nothing.
    pub(crate) fn close(&self) {
        let mut is_closed = self.is_closed.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *is_closed, true) {
            return;
        }
        self.calls.stop_all();
        self.calls.wait(STOP_TIMEOUT);
        self.answers.close();
        self.place.remove();
    }
}

impl Place {
    /// Removes what the server has made outside of the workspace.
    pub(crate) fn remove(&self) {
        remove(&self.session);
        self.shims.remove();
        self.guard.close();
    }

    /// The folders that go at the end.
    pub(crate) fn folders<'a>(session: &'a Path, shims: &'a Shims) -> [&'a Path; 2] {
        [session, shims.folder()]
    }
}

/// The name and the arguments of a call. Arguments that are left out are none.
fn read_call(mut params: Value) -> Option<(String, Map<String, Value>)> {
    let name = params["name"].as_str()?.to_owned();
    match params.get_mut("arguments").map(Value::take) {
        None | Some(Value::Null) => Some((name, Map::new())),
        Some(Value::Object(given)) => Some((name, given)),
        Some(_) => None,
    }
}

/// A fault of a tool fails its call and nothing else.
fn without_panic(call: impl FnOnce() -> Outcome) -> Outcome {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
        Err(ToolError::Trouble(
            "the tool failed by a fault of its own; stderr of the server says where".to_owned(),
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_panics_fails_its_call_alone() {
        let outcome = without_panic(|| panic!("on purpose"));
        assert!(matches!(outcome, Err(ToolError::Trouble(text)) if text.contains("fault")));
    }

    #[test]
    fn a_call_has_a_name_and_arguments_that_are_an_object_or_none() {
        assert_eq!(read_call(json!({"name": "a"})), Some(("a".to_owned(), Map::new())));
        assert_eq!(read_call(json!({"name": "a", "arguments": null})), Some(("a".to_owned(), Map::new())));
        for wrong in
            [json!({"arguments": {}}), json!({"name": "a", "arguments": [1]}), json!(null), json!([1])]
        {
            assert_eq!(read_call(wrong), None);
        }
    }
}
