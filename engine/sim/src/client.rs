//! The simulated client: what it sends, and the account it keeps of what it was answered.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{json, Value};
use waxlog_core::acp::frame::Id;

use crate::dice::Dice;
use crate::setup::SESSION;
use crate::violation::{Invariant, Violation};

/// Longest text of a prompt, in bytes.
const PROMPT_MAX_BYTES: usize = 2_000;

/// Questions that it leaves without an answer, in thousandths.
const SILENT_PERMILLE: u32 = 50;
/// Longest time that it takes to answer a question, in milliseconds.
const RESPONSE_MAX_MS: u64 = 90_000;

/// Where the session is, as far as the client knows.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Whereabouts {
    /// It does not exist.
    Nowhere,
    /// It was asked for by a request.
    Coming(String),
    /// It is served.
    Here,
    /// Its closing was asked for by a request.
    Leaving(String),
    /// It lies in the log.
    Away,
}

/// The client.
#[derive(Clone, Debug)]
pub struct Client {
    moves_left: u32,
    next_id: u64,
    session: Whereabouts,
    /// The requests that are still to be answered.
    open: BTreeSet<String>,
    /// Those of them that a served session has taken.
    taken: BTreeSet<String>,
    /// Answers still to come for lines that have no id.
    open_nameless: u32,
    /// The prompt under way.
    prompt: Option<String>,
    /// The run that the agent said is active.
    run: Option<String>,
    /// What each steer with text says, by the request's id.
    steers: BTreeMap<String, String>,
}

impl Client {
    /// A client that is going to do `moves` things.
    pub fn new(moves: u32) -> Client {
        Client {
            moves_left: moves,
            next_id: 1,
            session: Whereabouts::Nowhere,
            open: BTreeSet::new(),
            taken: BTreeSet::new(),
            open_nameless: 0,
            prompt: None,
            run: None,
            steers: BTreeMap::new(),
        }
    }

    /// Whether it has done everything that it was going to do.
    pub fn is_quiet(&self) -> bool {
        self.moves_left == 0
    }

    /// The words of each steer that was sent with text, by the id of its request.
    pub fn steers(&self) -> &BTreeMap<String, String> {
        &self.steers
    }

    /// The next line that it sends; `models` are those that it may choose.
    pub fn next_line(&mut self, models: &[&str], dice: &mut Dice) -> Vec<u8> {
        self.moves_left = self.moves_left.saturating_sub(1);
        match self.session {
            Whereabouts::Nowhere => return self.new_session(dice),
            Whereabouts::Away if dice.chance(900) => return self.load(dice),
            Whereabouts::Here if self.prompt.is_none() && dice.chance(800) => return self.prompt(dice),
            _ => {}
        }
        match dice.size(0..24) {
            0..=6 => self.steer(dice),
            7..=9 => self.cancel(dice),
            10..=11 => self.set_model(models, dice),
            12..=13 => self.set_option(models, dice),
            14..=16 => self.prompt(dice),
            17 => self.leave("session/close", dice),
            18 if dice.chance(300) => self.load(dice),
            18 if dice.chance(100) => self.leave("session/delete", dice),
            _ => self.bad_line(dice),
        }
    }

    /// The process that owed answers is gone; the session may be found in the log.
    pub fn forgets(&mut self, session_is_logged: bool) {
        self.open.clear();
        self.taken.clear();
        self.open_nameless = 0;
        self.prompt = None;
        self.run = None;
        self.session = if session_is_logged { Whereabouts::Away } else { Whereabouts::Nowhere };
    }

    /// Takes in a line of the agent.
    pub fn hear(&mut self, line: &[u8]) -> Result<(), Violation> {
        let text = String::from_utf8_lossy(line);
        let wrong = |why: &str| Violation::new(Invariant::Answers, format!("{why}: {text}"));
        let value: Value = serde_json::from_str(&text).map_err(|_| wrong("a line is no JSON"))?;
        if value.get("method").is_some() {
            if let Some(run) = value.pointer("/params/update/_meta/goose/activeRunId").and_then(Value::as_str)
            {
                self.run = Some(run.to_owned());
            }
            return Ok(());
        }
        let id = value.get("id").map(Value::to_string).unwrap_or_default();
        if id == "null" && self.open_nameless > 0 {
            self.open_nameless -= 1;
            return Ok(());
        }
        if !self.open.remove(&id) {
            return Err(wrong("an answer that nobody waits for"));
        }
        self.taken.remove(&id);
        if self.prompt.as_ref() == Some(&id) {
            self.prompt = None;
            self.run = None;
        }
        self.learn(&id, value.get("result").is_some());
        Ok(())
    }

    /// What it says to a question whether a call may run, and when. Sometimes it never does.
    pub fn response(&self, line: &[u8], dice: &mut Dice) -> Option<(u64, Vec<u8>)> {
        let line: Value = serde_json::from_slice(line).ok()?;
        if line.get("method")? != "session/request_permission" || dice.chance(SILENT_PERMILLE) {
            return None;
        }
        let selected = |option: &str| json!({"outcome": {"outcome": "selected", "optionId": option}});
        let (key, value) = match dice.size(0..12) {
            0..=5 => ("result", selected("allow_once")),
            6 => ("result", selected("allow_always")),
            7 => ("result", selected("reject_once")),
            8 => ("result", selected("reject_always")),
            9 => ("result", json!({"outcome": {"outcome": "cancelled"}})),
            10 => ("error", json!({"code": -32601, "message": "method not found"})),
            _ => ("result", json!({})),
        };
        let response = json!({"jsonrpc": "2.0", "id": line["id"], key: value}).to_string();
        Some((dice.wait_ms(RESPONSE_MAX_MS), response.into_bytes()))
    }

    /// What the answer to request `id` says of the session.
    fn learn(&mut self, id: &str, done: bool) {
        self.session = match (&self.session, done) {
            (Whereabouts::Coming(own), true) if own == id => Whereabouts::Here,
            (Whereabouts::Coming(own), false) if own == id => Whereabouts::Away,
            (Whereabouts::Leaving(own), true) if own == id => Whereabouts::Away,
            _ => return,
        };
    }

    /// The session took request `id`.
    pub fn took(&mut self, id: &Id) {
        self.taken.insert(id.as_json().to_owned());
    }

    /// Checks that a session that can serve no more has told everybody.
    pub fn check_told(&self) -> Result<(), Violation> {
        match self.taken.is_empty() {
            true => Ok(()),
            false => {
                let detail = format!("the log failed, and nobody told {:?}", self.taken);
                Err(Violation::new(Invariant::Answers, detail))
            }
        }
    }

    /// Checks that nothing is left unanswered.
    pub fn check_answered(&self) -> Result<(), Violation> {
        if self.open.is_empty() && self.open_nameless == 0 {
            return Ok(());
        }
        let detail = format!("no answer for {:?}, nor for {} nameless lines", self.open, self.open_nameless);
        Err(Violation::new(Invariant::Answers, detail))
    }

    fn id(&mut self, dice: &mut Dice) -> String {
        let number = self.next_id;
        self.next_id += 1;
        let id = if dice.chance(300) { format!("\"c-{number}\"") } else { number.to_string() };
        self.open.insert(id.clone());
        id
    }

    fn prompt(&mut self, dice: &mut Dice) -> Vec<u8> {
        let id = self.id(dice);
        let text = format!("prompt {id} ") + &"p".repeat(dice.size(0..PROMPT_MAX_BYTES));
        let blocks = match dice.size(0..20) {
            0 => json!([{"type": "image", "data": "AAAA", "mimeType": "image/png"}]),
            1 => {
                json!([{"type": "resource_link", "uri": "file:///x", "name": "x"}, {"type": "text", "text": text}])
            }
            _ => json!([{"type": "text", "text": text}]),
        };
        if self.prompt.is_none() {
            self.prompt = Some(id.clone());
        }
        request(&id, "session/prompt", &json!({"sessionId": SESSION, "prompt": blocks}))
    }

    fn steer(&mut self, dice: &mut Dice) -> Vec<u8> {
        let id = self.id(dice);
        let words = format!("steer<{}>", self.next_id);
        let blocks = match dice.size(0..8) {
            0 => json!([{"type": "text", "text": "  "}]),
            1 => json!([]),
            _ => {
                self.steers.insert(id.clone(), words.clone());
                json!([{"type": "text", "text": words}])
            }
        };
        let run = match (&self.run, dice.size(0..8)) {
            (_, 0) => "run_of_another_time",
            (_, 1) => "",
            (run, _) => run.as_deref().unwrap_or("run_unknown"),
        };
        let params = json!({"sessionId": SESSION, "expectedRunId": run, "prompt": blocks});
        request(&id, "_goose/unstable/session/steer", &params)
    }

    fn cancel(&mut self, dice: &mut Dice) -> Vec<u8> {
        let params = json!({"sessionId": SESSION});
        if dice.chance(300) {
            let id = self.id(dice);
            return request(&id, "session/cancel", &params);
        }
        json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params}).to_string().into_bytes()
    }

    fn set_model(&mut self, models: &[&str], dice: &mut Dice) -> Vec<u8> {
        let id = self.id(dice);
        let model = if dice.chance(100) { " " } else { dice.pick(models) };
        request(&id, "session/set_model", &json!({"sessionId": SESSION, "modelId": model}))
    }

    fn set_option(&mut self, models: &[&str], dice: &mut Dice) -> Vec<u8> {
        let id = self.id(dice);
        let (option, value) = match dice.size(0..4) {
            0 => ("model", dice.pick(models)),
            1 => ("colour", "blue"),
            _ => ("thought_level", dice.pick(&["none", "low", "max", "extreme"])),
        };
        let params = json!({"sessionId": SESSION, "configId": option, "value": value});
        request(&id, "session/set_config_option", &params)
    }

    fn new_session(&mut self, dice: &mut Dice) -> Vec<u8> {
        let id = self.id(dice);
        self.session = Whereabouts::Coming(id.clone());
        request(&id, "session/new", &json!({"cwd": "/project", "mcpServers": []}))
    }

    fn load(&mut self, dice: &mut Dice) -> Vec<u8> {
        let id = self.id(dice);
        if self.session == Whereabouts::Away {
            self.session = Whereabouts::Coming(id.clone());
        }
        let method = dice.pick(&["session/load", "session/resume"]);
        request(&id, method, &json!({"sessionId": SESSION, "cwd": "/project", "mcpServers": []}))
    }

    fn leave(&mut self, method: &str, dice: &mut Dice) -> Vec<u8> {
        let id = self.id(dice);
        if self.session == Whereabouts::Here {
            self.session = Whereabouts::Leaving(id.clone());
        }
        request(&id, method, &json!({"sessionId": SESSION}))
    }

    /// A line that is refused or passed over: in its form, its method, its session or its parameters.
    fn bad_line(&mut self, dice: &mut Dice) -> Vec<u8> {
        let nameless: &[u8] = match dice.size(0..12) {
            0 => b"not json",
            1 => b"[]",
            2 => b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"session/prompt\"}",
            3 => return b" \t".to_vec(),
            4 => return b"{\"jsonrpc\":\"2.0\",\"method\":\"session/new\",\"params\":3}".to_vec(),
            5 => return b"{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}".to_vec(),
            _ => b"",
        };
        if !nameless.is_empty() {
            self.open_nameless += 1;
            return nameless.to_vec();
        }
        let id = self.id(dice);
        let odd = dice.pick(&["{}", "null", "[1]", "{\"sessionId\":\"ses_none\",\"prompt\":[]}"]);
        let own = format!("{{\"sessionId\":\"{SESSION}\",\"prompt\":7,\"modelId\":7,\"expectedRunId\":7}}");
        let params = if dice.chance(500) { own.as_str() } else { odd };
        let method = dice.pick(&[
            "session/prompt",
            "_goose/unstable/session/steer",
            "session/set_model",
            "session/unheard_of",
            "initialize",
        ]);
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}")
            .into_bytes()
    }
}

fn request(id: &str, method: &str, params: &Value) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}").into_bytes()
}
