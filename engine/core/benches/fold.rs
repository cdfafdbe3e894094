//! What a long turn costs: folding its records, and replaying them.

use criterion::{BatchSize, Criterion, Throughput};
use serde_json::{json, Value};
use waxlog_core::acp::frame::{classify, Id};
use waxlog_core::acp::Profile;
use waxlog_core::mcp::{Catalogue, ToolSpec};
use waxlog_core::provider::{ApiMode, Provider};
use waxlog_core::record::{CallOutcome, Head, Record, SessionOpened};
use waxlog_core::replay::Replay;
use waxlog_core::session::{Draws, Effect, Input, Session};
use waxlog_core::settings::Settings;

const ROUNDS: usize = 200;
const RESULT_BYTES: usize = 2000;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    for provider in ["openai", "anthropic"] {
        let records = turn(provider);
        let mut group = criterion.benchmark_group(format!("{ROUNDS} rounds, {provider}"));
        group.sample_size(10).throughput(Throughput::Elements(records.len() as u64));
        group.bench_function("fold", |b| {
            b.iter_batched(
                || Session::open(&records[0]).expect("opens"),
                |s| fold(s, &records),
                BatchSize::PerIteration,
            );
        });
        group.bench_function("replay", |b| b.iter(|| replay(&records)));
        group.finish();
    }
    criterion.final_summary();
}

fn fold(mut session: Session, records: &[Record]) -> Session {
    for record in &records[1..] {
        session.fold(record);
        session.take_outbox();
    }
    session
}

fn replay(records: &[Record]) -> Replay {
    let mut replay = Replay::default();
    records.iter().for_each(|record| replay.step(record));
    assert!(replay.turns().iter().all(|turn| turn.difference.is_none()));
    replay
}

/// The records of one turn of [`ROUNDS`] rounds with two calls each.
fn turn(provider: &str) -> Vec<Record> {
    let head = Head::SessionOpened(Box::new(opened(provider)));
    let mut records = vec![Record { head, raw: b"You are a bench.".to_vec() }];
    let mut session = Session::open(&records[0]).expect("opens");
    let line = json!({"jsonrpc": "2.0", "id": 1, "method": "session/prompt",
        "params": {"sessionId": "s", "prompt": [{"type": "text", "text": "go"}]}});
    let line = line.to_string().into_bytes();
    let draws = Draws { turn: "turn_1".into(), run: "run_1".into(), message: String::new() };
    let mut inputs = vec![Input::Line { frame: classify(&line), line, draws }];
    while let Some(input) = inputs.pop() {
        let mut next = session.admit(input);
        while let Some(record) = next {
            session.fold(&record);
            records.push(record);
            next = session.decide();
        }
        for effect in session.take_outbox() {
            match effect {
                Effect::Ask { asked, .. } => inputs.push(answered(asked, &answer(provider, asked))),
                Effect::Call { asked, index, .. } => inputs.push(finished(asked, index)),
                _ => {}
            }
        }
    }
    assert!(!session.is_busy());
    records
}

fn answered(asked: u64, body: &Value) -> Input {
    let body = body.to_string().into_bytes();
    Input::Answered { asked, status: 200, headers: vec![], body, elapsed_ms: 1, jitter_permille: 0 }
}

fn finished(asked: u64, index: usize) -> Input {
    let content = json!([{"type": "text", "text": "x".repeat(RESULT_BYTES)}]);
    let line = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": content}}).to_string().into_bytes();
    Input::CallFinished { asked, index, outcome: CallOutcome::Returned, line, elapsed_ms: 1 }
}

fn answer(provider: &str, asked: u64) -> Value {
    let last = asked as usize > ROUNDS;
    match (provider, last) {
        ("anthropic", true) => {
            json!({"stop_reason": "end_turn", "content": [{"type": "text", "text": "done"}]})
        }
        ("anthropic", false) => {
            let call = |n: u32| {
                let id = format!("toolu_{asked}_{n}");
                json!({"type": "tool_use", "id": id, "name": "t__run", "input": {"command": "ls -l"}})
            };
            json!({"stop_reason": "tool_use", "content": [call(0), call(1)],
                "usage": {"input_tokens": 1000, "output_tokens": 20}})
        }
        (_, true) => json!({"choices": [{"finish_reason": "stop", "message": {"content": "done"}}]}),
        (_, false) => {
            let call = |n: u32| {
                let function = json!({"name": "t__run", "arguments": "{\"command\":\"ls -l\"}"});
                json!({"id": format!("call_{asked}_{n}"), "type": "function", "function": function})
            };
            let message = json!({"content": null, "tool_calls": [call(0), call(1)]});
            json!({"choices": [{"finish_reason": "tool_calls", "message": message}],
                "usage": {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020}})
        }
    }
}

fn opened(provider: &str) -> SessionOpened {
    let tool = ToolSpec {
        name: "run".into(),
        description: "Runs a command.".into(),
        input_schema: json!({"type": "object", "properties": {"command": {"type": "string"}}}),
    };
    SessionOpened {
        id: Id::null(),
        session: "s".into(),
        profile: Profile::Harness,
        cwd: "/".into(),
        settings: Settings {
            provider: Provider::of_word(provider).expect("known"),
            api: ApiMode::Chat,
            base_url: "http://model.invalid".into(),
            model: "m".into(),
            max_output_tokens: 32_768,
            max_context_tokens: 2_000_000,
            max_rounds: 0,
            max_handoffs: 10,
            stop_max_rejections: 3,
            require_reply: false,
            max_history_bytes: 16 * 1024 * 1024,
            max_parallel_tools: 8,
            max_tool_result_text_bytes: 51_200,
            prompt_caching: true,
            effort: None,
            ask_permission: false,
            prefer_mesh_for_auto: false,
        },
        servers: vec![],
        catalogue: Catalogue::build(vec![("t".into(), vec![tool])]).expect("legal"),
        upgraded: false,
        models: vec![],
        sources: vec![],
        skills: vec![],
        hook_servers: vec![],
        prompt_source: "built-in".into(),
    }
}
