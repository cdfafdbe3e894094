//! A client's connection: the lines that concern no running session, and which sessions there are.
//!
//! Like a session it is a fold: a line is recorded (its secrets masked), then folded, and what the fold
//! says is done.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{json, Value};

use crate::acp::frame::{classify, Frame, Id};
use crate::acp::lines::{self, Line};
use crate::acp::params::{self, List, NewSession};
use crate::acp::permission;
use crate::acp::{code, Profile};
use crate::record::{decode_tagged, encode_tagged, RecordError};

/// The newest protocol version that the harness may be told.
const PROTOCOL_VERSION_HARNESS: u32 = 2;
/// The version of the public standard.
const PROTOCOL_VERSION_STANDARD: u32 = 1;
/// The name under which the harness introduces itself.
const HARNESS_NAME: &str = "buzz-acp";
/// Largest composed system prompt, in bytes.
pub const SYSTEM_PROMPT_MAX_BYTES: usize = 524_288;
/// The stream that holds a connection starts with this.
pub const STREAM_PREFIX: &str = "con_";

/// What happens to a connection. The names are the record kinds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "head", rename_all = "snake_case")]
pub enum Head {
    /// The process began to serve.
    ConnectionOpened {
        /// The program's version.
        version: String,
        /// How many sessions it may hold.
        max_sessions: u64,
    },
    /// A line came that no session takes. Raw: the line, values of variables and headers masked.
    LineReceived {},
    /// A session that was asked for is there; its answer is said by its own stream.
    SessionBegun {
        /// Its id.
        session: String,
    },
    /// A session left: its client closed it.
    SessionLeft {
        /// Its id.
        session: String,
    },
    /// A session at rest was deleted, or there is none of that name.
    DeletionDone {
        /// The request.
        id: Id,
        /// The session.
        session: String,
    },
    /// The sessions that were asked for.
    SessionsListed {
        /// The request.
        id: Id,
        /// The page.
        sessions: Vec<Listed>,
        /// Where the next page begins, if there is one.
        next_cursor: Option<String>,
    },
    /// A request of the connection could not be served.
    RequestFailed {
        /// The request.
        id: Id,
        /// The error code in the harness's numbers.
        code: i64,
        /// The text told.
        message: String,
    },
    /// A session that was asked for could not be opened.
    SessionFailed {
        /// The request.
        id: Id,
        /// The error code in the harness's numbers.
        code: i64,
        /// The text told.
        message: String,
    },
}

const KINDS: [&str; 8] = [
    "connection_opened",
    "line_received",
    "session_begun",
    "session_left",
    "deletion_done",
    "sessions_listed",
    "request_failed",
    "session_failed",
];

/// One session of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    /// Its id.
    pub session_id: String,
    /// Its working folder.
    pub cwd: String,
    /// The start of its first prompt.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub title: Option<String>,
    /// When it was last written to, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub updated_at: Option<String>,
}

impl Head {
    /// The kind and the head as JSON, as they are stored.
    pub fn encode(&self) -> (String, Vec<u8>) {
        encode_tagged(self)
    }

    /// Reads a stored head.
    pub fn decode(kind: &str, version: u16, head: &[u8]) -> Result<Head, RecordError> {
        decode_tagged(&KINDS, kind, version, head)
    }
}

/// What follows from a connection's record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Follows {
    /// Lines to say.
    pub lines: Vec<Line>,
    /// Something to do beside.
    pub work: Option<Work>,
}

/// What a connection's line may set going; how it went comes back as a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// A session to open: the servers are started, then its first record is written.
    Open {
        /// The request.
        id: Id,
        /// What the client asked for.
        new: NewSession,
    },
    /// A session of the log to go on with.
    Load {
        /// The request.
        id: Id,
        /// The session.
        session: String,
        /// What it goes on with.
        new: NewSession,
        /// Whether the client wants to be told the history.
        tells_history: bool,
    },
    /// A session at rest to delete.
    Delete {
        /// The request.
        id: Id,
        /// The session.
        session: String,
    },
    /// Sessions to list.
    List {
        /// The request.
        id: Id,
        /// Which.
        list: List,
    },
}

/// Who takes a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route<'a> {
    /// Nobody: it is blank.
    Nobody,
    /// The named session.
    Session(&'a str),
    /// The connection itself.
    Connection,
}

/// The state of one connection.
#[derive(Clone, Debug, Default)]
pub struct Connection {
    profile: Profile,
    max_sessions: u64,
    opening: u64,
    sessions: BTreeSet<String>,
    /// Sessions of the log that are being loaded or deleted, with the request for it.
    moving: BTreeMap<String, Id>,
    version: String,
}

impl Connection {
    /// Whose dialect the client speaks.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// Who takes a line.
    pub fn route<'a>(&'a self, frame: &Frame) -> Route<'a> {
        let (method, params) = match frame {
            Frame::Blank => return Route::Nobody,
            Frame::Request { method, params, .. } => (method.as_str(), params),
            Frame::Notification { method, params } if method == "session/cancel" => (method.as_str(), params),
            Frame::Answer { id, .. } => return self.route_answer(id),
            _ => return Route::Connection,
        };
        const OF_SESSIONS: [&str; 7] = [
            "session/prompt",
            "session/cancel",
            "session/close",
            "session/delete",
            "session/set_model",
            "session/set_config_option",
            "_goose/unstable/session/steer",
        ];
        let session = params.get("sessionId").and_then(Value::as_str);
        match session.and_then(|id| self.sessions.get(id)) {
            Some(id) if OF_SESSIONS.contains(&method) => Route::Session(id),
            _ => Route::Connection,
        }
    }

    /// Answers to a session's questions are the session's.
    fn route_answer(&self, id: &Id) -> Route<'_> {
        let asker = permission::place_of(id).and_then(|(session, ..)| self.sessions.get(&session));
        asker.map_or(Route::Connection, |session| Route::Session(session))
    }

    /// Takes one record in and says what follows.
    pub fn fold(&mut self, head: &Head, raw: &[u8]) -> Follows {
        match head {
            Head::ConnectionOpened { version, max_sessions } => {
                self.version = version.clone();
                self.max_sessions = *max_sessions;
                Follows::default()
            }
            Head::LineReceived {} => self.received(raw),
            Head::SessionBegun { session } => {
                self.opening = self.opening.saturating_sub(1);
                self.moving.remove(session);
                self.sessions.insert(session.clone());
                Follows::default()
            }
            Head::SessionLeft { session } => {
                self.sessions.remove(session);
                Follows::default()
            }
            Head::DeletionDone { id, session } => {
                self.moving.remove(session);
                say(lines::result(id, &json!({})))
            }
            Head::SessionsListed { id, sessions, next_cursor } => {
                let mut page = json!({"sessions": sessions});
                if let Some(cursor) = next_cursor {
                    page["nextCursor"] = json!(cursor);
                }
                say(lines::result(id, &page))
            }
            Head::RequestFailed { id, code, message } => {
                say(lines::error(id, self.profile.code(*code), message))
            }
            Head::SessionFailed { id, code, message } => {
                self.opening = self.opening.saturating_sub(1);
                self.moving.retain(|_, request| request != id);
                say(lines::error(id, self.profile.code(*code), message))
            }
        }
    }

    fn received(&mut self, line: &[u8]) -> Follows {
        let (id, method, params) = match classify(line) {
            Frame::Request { id, method, params } => (id, method, params),
            Frame::Bad { id, code, message } => return say(lines::error(&id, code, &message)),
            Frame::Notification { .. } | Frame::Answer { .. } | Frame::Other | Frame::Blank => {
                return Follows::default()
            }
        };
        let refused = |message: String| say(lines::error(&id, code::INVALID_PARAMS, &message));
        match method.as_str() {
            "initialize" => match params::initialize(&params) {
                Ok((version, name)) => say(lines::result(&id, &self.initialize(version, name))),
                Err(e) => refused(format!("initialize: {e}")),
            },
            "session/new" => match self.checked_new(&params) {
                Ok(new) => {
                    self.opening += 1;
                    begin(Work::Open { id, new })
                }
                Err(e) => refused(format!("session/new: {e}")),
            },
            "session/load" | "session/resume" => match self.checked_load(&params) {
                Ok((session, new)) => {
                    self.opening += 1;
                    self.moving.insert(session.clone(), id.clone());
                    let tells_history = method == "session/load";
                    begin(Work::Load { id, session, new, tells_history })
                }
                Err(e) => refused(format!("{method}: {e}")),
            },
            "session/delete" => match self.checked_at_rest(&params) {
                Ok(session) => {
                    self.moving.insert(session.clone(), id.clone());
                    begin(Work::Delete { id, session })
                }
                Err(e) => refused(format!("session/delete: {e}")),
            },
            "session/list" => match params::list(&params) {
                Ok(list) => begin(Work::List { id, list }),
                Err(e) => refused(format!("session/list: {e}")),
            },
            "session/cancel" => say(lines::result(&id, &Value::Null)),
            _ => match without_session(&method, &params) {
                Ok(message) => say(lines::error(&id, self.profile.code(code::NO_SESSION), &message)),
                Err(Some(message)) => refused(message),
                Err(None) => {
                    let message = format!("jsonrpc: method not found: {method}");
                    say(lines::error(&id, code::METHOD_NOT_FOUND, &message))
                }
            },
        }
    }

    /// The newest version both sides know. A peer with a name of its own speaks the public standard,
    /// where the number 2 stands for another protocol.
    fn initialize(&mut self, version: u32, name: Option<String>) -> Value {
        let (profile, newest) = match name.as_deref() {
            None | Some(HARNESS_NAME) => (Profile::Harness, PROTOCOL_VERSION_HARNESS),
            Some(_) => (Profile::Standard, PROTOCOL_VERSION_STANDARD),
        };
        self.profile = profile;
        json!({
            "protocolVersion": version.min(newest),
            "agentCapabilities": {
                "loadSession": true,
                "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}},
                "promptCapabilities": {
                    "image": profile == Profile::Standard, "audio": false,
                    "embeddedContext": profile == Profile::Standard,
                },
                "mcpCapabilities": {"http": false, "sse": false},
            },
            "agentInfo": {"name": "waxlog", "version": self.version},
        })
    }

    fn checked_load(&self, params: &Value) -> Result<(String, NewSession), String> {
        Ok((self.checked_at_rest(params)?, self.checked_new(params)?))
    }

    /// The session that `params` name, which nothing else may be at work on: one stream has one writer.
    fn checked_at_rest(&self, params: &Value) -> Result<String, String> {
        let session = params::session_id(params)?;
        if self.sessions.contains(&session) {
            return Err(format!("session {session} is open already; close it first"));
        }
        if self.moving.contains_key(&session) {
            return Err(format!("session {session} is being loaded or deleted; wait for that answer"));
        }
        Ok(session)
    }

    fn checked_new(&self, params: &Value) -> Result<NewSession, String> {
        let new = params::new_session(params)?;
        if !new.cwd.starts_with('/') {
            return Err("cwd must be an absolute path".to_owned());
        }
        if self.sessions.len() as u64 + self.opening >= self.max_sessions {
            return Err(format!("max sessions reached ({})", self.max_sessions));
        }
        match &new.system_prompt {
            Some(prompt) if prompt.len() > SYSTEM_PROMPT_MAX_BYTES => Err(prompt_too_long(prompt.len())),
            _ => Ok(new),
        }
    }
}

/// What is wrong with a request of a session that does not exist: nothing else (then the text says so), its
/// parameters, or that there is no such method.
fn without_session(method: &str, params: &Value) -> Result<String, Option<String>> {
    let bad = |e: String| Some(format!("{method}: {e}"));
    let plain = |text: &str| Some(text.to_owned());
    match method {
        "session/close" | "session/set_config_option" => drop(params::session_id(params).map_err(bad)?),
        "session/prompt" => drop(params::prompt(params).map_err(bad)?),
        "session/set_model" => {
            if params::set_model(params).map_err(bad)?.model.trim().is_empty() {
                return Err(plain("session/set_model: modelId must not be empty"));
            }
        }
        "_goose/unstable/session/steer" => {
            let steer = params::steer(params).map_err(bad)?;
            if steer.blocks.is_empty() {
                return Err(plain("steer: prompt must not be empty"));
            }
            if steer.expected_run.is_empty() {
                return Err(plain("steer: expectedRunId must not be empty"));
            }
            return Ok("steer: unknown session".to_owned());
        }
        _ => return Err(None),
    }
    Ok(format!("{method}: unknown session"))
}

/// The refusal of a system prompt of `bytes` bytes.
pub fn prompt_too_long(bytes: usize) -> String {
    format!("system prompt is {bytes} bytes, over the 512KB limit of {SYSTEM_PROMPT_MAX_BYTES}; shorten it")
}

/// The methods whose parameters hold what servers are given.
const OPENING: [&str; 3] = ["session/new", "session/load", "session/resume"];

/// The form of a line that may be kept: what `session/new` gives to servers is masked.
pub fn kept_line(frame: &Frame, line: &[u8]) -> Vec<u8> {
    match frame {
        Frame::Request { id, method, params } if OPENING.contains(&method.as_str()) => {
            let (method, params) = (json!(method), params::redacted(params));
            let id = id.as_json();
            format!("{{\"id\":{id},\"jsonrpc\":\"2.0\",\"method\":{method},\"params\":{params}}}")
                .into_bytes()
        }
        _ => line.to_vec(),
    }
}

fn say(line: Line) -> Follows {
    Follows { lines: vec![line], work: None }
}

fn begin(work: Work) -> Follows {
    Follows { lines: Vec::new(), work: Some(work) }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
