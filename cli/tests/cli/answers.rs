//! What scripted models and tools answer.

use serde_json::{json, Value};
use waxlog_scripted::mcp_server::{CallScript, Script, ToolScript};
use waxlog_scripted::model_server::Answer;

/// Whose wire a model speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Chat,
    Anthropic,
}

impl Dialect {
    pub(crate) fn settings(self) -> Vec<(&'static str, &'static str)> {
        match self {
            Dialect::Chat => vec![
                ("BUZZ_AGENT_PROVIDER", "openai"),
                ("OPENAI_COMPAT_API", "chat"),
                ("OPENAI_COMPAT_API_KEY", "test-key"),
                ("OPENAI_COMPAT_MODEL", "scripted"),
            ],
            Dialect::Anthropic => vec![
                ("BUZZ_AGENT_PROVIDER", "anthropic"),
                ("ANTHROPIC_API_KEY", "test-key"),
                ("ANTHROPIC_MODEL", "scripted"),
            ],
        }
    }

    pub(crate) fn url_variable(self) -> &'static str {
        match self {
            Dialect::Chat => "OPENAI_COMPAT_BASE_URL",
            Dialect::Anthropic => "ANTHROPIC_BASE_URL",
        }
    }

    /// An answer of this text and these calls, which says what it cost.
    pub(crate) fn answer(self, text: &str, calls: &[ModelCall<'_>], cost: Cost) -> Answer {
        let body = match self {
            Dialect::Chat => chat(text, calls, cost),
            Dialect::Anthropic => anthropic(text, calls, cost),
        };
        Answer::json(body.to_string())
    }

    /// `rounds` answers with two calls each, then a plain one; each costs something else.
    pub(crate) fn parallel_turn(self, rounds: u64) -> (Vec<Answer>, Vec<Cost>) {
        let costs: Vec<Cost> = (0..=rounds).map(Cost::number).collect();
        let mut answers: Vec<Answer> = (0..rounds)
            .map(|round| {
                let ids = [format!("slow_{round}"), format!("fast_{round}")];
                let calls = [ModelCall::new(&ids[0], "tools__slow"), ModelCall::new(&ids[1], "tools__fast")];
                self.answer(&format!("Round {round}."), &calls, costs[round as usize])
            })
            .collect();
        answers.push(self.answer("Done.", &[], costs[rounds as usize]));
        (answers, costs)
    }
}

/// A call as a model asks for it.
#[derive(Clone, Copy)]
pub(crate) struct ModelCall<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    /// JSON as text: for the chat wire it may be broken.
    pub(crate) arguments: &'a str,
}

impl<'a> ModelCall<'a> {
    pub(crate) fn new(id: &'a str, name: &'a str) -> ModelCall<'a> {
        ModelCall { id, name, arguments: "{\"x\":\"1\"}" }
    }
}

/// The tokens of an answer, cached ones included in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) cached: u64,
}

impl Cost {
    /// Numbers of which no two sums are equal by chance.
    pub(crate) fn number(n: u64) -> Cost {
        Cost { input: 1000 + 2 * 4_u64.pow(n as u32), output: 10 + 3_u64.pow(n as u32), cached: 100 + n }
    }
}

fn chat(text: &str, calls: &[ModelCall<'_>], cost: Cost) -> Value {
    let calls: Vec<Value> = calls
        .iter()
        .map(|call| {
            let function = json!({"name": call.name, "arguments": call.arguments});
            json!({"id": call.id, "type": "function", "function": function})
        })
        .collect();
    let (reason, message) = match calls.is_empty() {
        true => ("stop", json!({"role": "assistant", "content": text})),
        false => ("tool_calls", json!({"role": "assistant", "content": text, "tool_calls": calls})),
    };
    json!({
        "id": "scripted", "object": "chat.completion", "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {
            "prompt_tokens": cost.input, "completion_tokens": cost.output,
            "total_tokens": cost.input + cost.output,
            "prompt_tokens_details": {"cached_tokens": cost.cached},
        },
    })
}

fn anthropic(text: &str, calls: &[ModelCall<'_>], cost: Cost) -> Value {
    let mut content = vec![json!({"type": "text", "text": text})];
    content.extend(calls.iter().map(|call| {
        let input: Value = serde_json::from_str(call.arguments).expect("json");
        json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input})
    }));
    json!({
        "id": "scripted", "type": "message", "role": "assistant", "model": "scripted", "content": content,
        "stop_reason": if calls.is_empty() { "end_turn" } else { "tool_use" },
        "usage": {
            "input_tokens": cost.input - cost.cached, "output_tokens": cost.output,
            "cache_read_input_tokens": cost.cached, "cache_creation_input_tokens": 0,
        },
    })
}

/// A tool that answers its calls like this, one after the other.
pub(crate) fn tool(name: &str, calls: Vec<CallScript>) -> ToolScript {
    ToolScript { name: name.to_owned(), description: format!("does {name}"), input_schema: None, calls }
}

pub(crate) fn script(tools: Vec<ToolScript>) -> Script {
    Script { tools, ..Script::default() }
}

/// `slow` answers after `fast` has, although it is asked first.
pub(crate) fn slow_and_fast() -> Script {
    let after = |delay_ms| CallScript {
        delay_ms,
        text: Some(format!("after {delay_ms} ms")),
        ..CallScript::default()
    };
    script(vec![tool("slow", vec![after(12)]), tool("fast", vec![after(3)])])
}
