//! The scripted model: what its endpoint answers to an attempt, and what each answer costs.

mod bodies;
mod failures;

use std::collections::BTreeMap;

use serde_json::{json, Map, Value};
use waxlog_core::dialect::Dialect;
use waxlog_core::mcp::Catalogue;
use waxlog_core::session::Input;
use waxlog_core::usage::Usage;

use crate::dice::Dice;
use crate::setup::Setup;

/// Calls of one answer.
const CALLS_MAX: usize = 4;
/// Answers with calls that a turn gets once the client is quiet.
const PATIENCE: u32 = 10;
/// The longest that an endpoint takes, in milliseconds.
const ANSWER_MAX_MS: u64 = 100_000;
/// Longest text of an answer, in bytes.
const TEXT_MAX_BYTES: usize = 3_000;
/// Token counts near the end of the range: sums must saturate there.
const HUGE_TOKENS: u64 = u64::MAX - 1_000;

/// The model and its bill.
#[derive(Debug, Default)]
pub struct Model {
    said: u64,
    patience_used: u32,
    /// What each body that was sent says of tokens, as the endpoint means it.
    bills: BTreeMap<Vec<u8>, Usage>,
}

/// What an attempt is made on.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The round within the session.
    pub asked: u64,
    /// The wire.
    pub dialect: Dialect,
    /// The run's start.
    pub setup: &'a Setup,
    /// Whether the client has nothing more to do.
    pub quiet: bool,
}

/// What a model says in one answer, before it is put into a wire's words.
#[derive(Debug, Default)]
struct Saying {
    text: String,
    thought: String,
    calls: Vec<Call>,
    stop: Stop,
    usage: Usage,
}

#[derive(Debug)]
struct Call {
    id: String,
    name: String,
    arguments: Value,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stop {
    #[default]
    End,
    Calls,
    Length,
    Refusal,
    Unsaid,
}

impl Model {
    /// What comes of an attempt, and after how many milliseconds.
    pub fn attempt(&mut self, request: Request<'_>, dice: &mut Dice) -> (u64, Input) {
        let wait_ms = dice.wait_ms(ANSWER_MAX_MS);
        let input = if dice.chance(request.setup.faults.model_permille) {
            self.failure(request, dice)
        } else {
            let saying = self.saying(request, dice);
            let body = bodies::encode(request.dialect, &saying, self.said);
            let bill = billed(request.dialect, saying.usage);
            self.bills.insert(body.clone(), bill);
            answered(request.asked, body, dice)
        };
        (wait_ms, input)
    }

    /// What a body says of tokens; nothing, if it is none of ours or says nothing.
    pub fn bill(&self, body: &[u8]) -> Usage {
        self.bills.get(body).copied().unwrap_or_default()
    }

    fn failure(&mut self, request: Request<'_>, dice: &mut Dice) -> Input {
        if dice.chance(400) {
            let usage = if dice.chance(300) { usage(dice) } else { Usage::default() };
            let body = bodies::odd(request.dialect, usage, dice);
            let bill = if body.tells_usage { billed(request.dialect, usage) } else { Usage::default() };
            self.bills.insert(body.bytes.clone(), bill);
            return answered(request.asked, body.bytes, dice);
        }
        failures::draw(request, dice)
    }

    fn saying(&mut self, request: Request<'_>, dice: &mut Dice) -> Saying {
        self.said += 1;
        let patient = !request.quiet || self.patience_used < PATIENCE;
        let calls = if patient && dice.chance(600) { dice.size(1..CALLS_MAX + 1) } else { 0 };
        if request.quiet && calls > 0 {
            self.patience_used += 1;
        }
        let calls: Vec<Call> = (0..calls).map(|_| self.call(&request.setup.catalogue, dice)).collect();
        let stop = match (calls.is_empty(), dice.size(0..12)) {
            (_, 0) => Stop::Unsaid,
            (_, 1) => Stop::Length,
            (true, 2) => Stop::Refusal,
            // Calls that are named as the reason to stop and then left out.
            (true, 3) if !request.quiet => Stop::Calls,
            (true, _) => Stop::End,
            (false, _) => Stop::Calls,
        };
        let text = text(dice, self.said);
        let thought = if dice.chance(200) { format!("thinking {}", self.said) } else { String::new() };
        let usage = if dice.chance(850) { usage(dice) } else { Usage::default() };
        Saying { text, thought, calls, stop, usage }
    }

    fn call(&mut self, catalogue: &Catalogue, dice: &mut Dice) -> Call {
        let name = match dice.size(0..20) {
            0 => "nobody__knows".to_owned(),
            2 => "load_skill".to_owned(),
            1 if dice.chance(100) => String::new(),
            _ if catalogue.tools.is_empty() => "dev__shell".to_owned(),
            _ => catalogue.tools[dice.size(0..catalogue.tools.len())].qualified.clone(),
        };
        let id = match dice.size(0..10) {
            0 => String::new(),
            1 => "same".to_owned(),
            _ => format!("call_{}_{}", self.said, dice.size(0..50)),
        };
        Call { id, name, arguments: arguments(dice) }
    }
}

fn answered(asked: u64, body: Vec<u8>, dice: &mut Dice) -> Input {
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    let (elapsed_ms, jitter_permille) = (dice.within(0..200_000), dice.permille());
    Input::Answered { asked, status: 200, headers, body, elapsed_ms, jitter_permille }
}

/// Arguments in the forms in which models give them.
fn arguments(dice: &mut Dice) -> Value {
    match dice.size(0..10) {
        0 => Value::Null,
        1 => json!(""),
        2 => json!("{\"command\": \"ls"),
        3 => json!("[1]"),
        4 => json!({"command": "buzz messages send hi"}),
        5 => json!("{\"command\":\"buzz reactions add x\"}"),
        6 => json!({"name": "bees"}),
        _ => json!({"path": format!("f{}", dice.size(0..9)), "note": "\u{e9}\u{1f41d}\n\"q\""})
            .to_string()
            .into(),
    }
}

fn text(dice: &mut Dice, said: u64) -> String {
    match dice.size(0..6) {
        0 => String::new(),
        1 => format!("answer {said} \u{1f41d} \"quoted\"\n") + &"x".repeat(dice.size(0..TEXT_MAX_BYTES)),
        _ => format!("answer {said}"),
    }
}

fn usage(dice: &mut Dice) -> Usage {
    let input = dice.chance(950).then(|| if dice.chance(10) { HUGE_TOKENS } else { dice.within(0..20_000) });
    let cached = input.filter(|_| dice.chance(500)).map(|input| input / 2);
    let output = dice.chance(950).then(|| dice.within(0..5_000));
    let total = dice.chance(900).then(|| input.unwrap_or(0).saturating_add(output.unwrap_or(0)));
    Usage { input, output, cached, total }
}

/// What a wire can carry of `usage`: Anthropic's knows no total.
fn billed(dialect: Dialect, usage: Usage) -> Usage {
    match dialect {
        Dialect::Anthropic => Usage { total: None, ..usage },
        Dialect::Chat | Dialect::Openrouter | Dialect::Responses => usage,
    }
}

/// The usage object of a wire; keys without a number are left out.
fn usage_object(dialect: Dialect, usage: Usage) -> Value {
    let mut object = Map::new();
    let mut put = |key: &str, count: Option<u64>| {
        if let Some(count) = count {
            object.insert(key.to_owned(), json!(count));
        }
    };
    match dialect {
        Dialect::Chat | Dialect::Openrouter => {
            put("prompt_tokens", usage.input);
            put("completion_tokens", usage.output);
            put("cache_read_input_tokens", usage.cached);
            put("total_tokens", usage.total);
        }
        Dialect::Responses => {
            put("input_tokens", usage.input);
            put("output_tokens", usage.output);
            put("cache_read_input_tokens", usage.cached);
            put("total_tokens", usage.total);
        }
        Dialect::Anthropic => {
            // The cached part is counted beside the input on this wire, not within it.
            put("input_tokens", usage.input.map(|input| input - usage.cached.unwrap_or(0)));
            put("output_tokens", usage.output);
            put("cache_read_input_tokens", usage.cached);
        }
    }
    Value::Object(object)
}
