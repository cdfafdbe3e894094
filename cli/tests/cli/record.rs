//! Makes the fixtures anew, with real agents against scripted models:
//!
//! ```text
//! cargo test -p waxlog --test cli -- --ignored record_the_fixtures
//! ```
//!
//! Every run draws new ids and times, so a new recording is a new fixture.

use serde_json::json;
use waxlog_core::record::{Head, Record};
use waxlog_core::session::Session;
use waxlog_scripted::mcp_server::{CallScript, Script};
use waxlog_scripted::model_server::Answer;
use waxlog_store::{Log, NewRecord, Options, Reader};

use crate::agent::Agent;
use crate::answers::{script, slow_and_fast, tool, Cost, Dialect, ModelCall};
use crate::record_more;
use crate::stage::{decode, Stage};

/// A PNG of one pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// The history budget of the truncated session. An agent takes none below a mebibyte, and a fixture has to
/// stay small.
const SMALL_HISTORY_BYTES: u64 = 300;

#[test]
#[ignore = "writes the repository's fixtures anew"]
fn record_the_fixtures() {
    plain_text();
    parallel_calls();
    anthropic_thinking();
    failing_calls();
    retries();
    cancelled();
    steered();
    killed();
    truncated();
    image();
    record_more::all();
}

/// Keeps the stage's session as the fixture `name`.
pub(crate) fn keep(stage: &Stage, session: &str, name: &str) {
    let file = format!("{}/../fixtures/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    stage.run(&["fixture", "record", session, "-o", &file]).ok();
}

/// Opens a session and runs one turn.
fn one_turn(stage: &Stage, tools: &Script, prompt: &str) -> (Agent, String) {
    let mut agent = stage.agent();
    let session = agent.open(&stage.session(tools));
    assert_eq!(agent.turn(&session, prompt), "end_turn");
    (agent, session)
}

fn plain_text() {
    let answer = Dialect::Chat.answer("Good morning.", &[], Cost::number(0));
    let stage = Stage::new(Dialect::Chat, vec![answer]);
    let (agent, session) = one_turn(&stage, &Script::default(), "Say good morning.");
    agent.close();
    keep(&stage, &session, "plain-text");
}

fn parallel_calls() {
    let stage = Stage::new(Dialect::Chat, Dialect::Chat.parallel_turn(4).0);
    let (agent, session) = one_turn(&stage, &slow_and_fast(), "Call both tools, four times.");
    agent.close();
    keep(&stage, &session, "parallel-calls");
}

fn anthropic_thinking() {
    let usage = |cached: u64, created: u64| {
        json!({
            "input_tokens": 40, "output_tokens": 25,
            "cache_read_input_tokens": cached, "cache_creation_input_tokens": created,
        })
    };
    let first = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "stop_reason": "tool_use",
        "content": [
            {"type": "thinking", "thinking": "Both at once.", "signature": "c2lnbmF0dXJl"},
            {"type": "text", "text": "I call both."},
            {"type": "tool_use", "id": "toolu_1", "name": "tools__slow", "input": {"x": "1"}},
            {"type": "tool_use", "id": "toolu_2", "name": "tools__fast", "input": {"x": "2"}},
        ],
        "usage": usage(0, 900),
    });
    let second = json!({
        "id": "msg_2", "type": "message", "role": "assistant", "model": "scripted", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "Both are done."}],
        "usage": usage(900, 120),
    });
    let answers = [first, second].map(|answer| Answer::json(answer.to_string()));
    let stage = Stage::new(Dialect::Anthropic, answers.into());
    let (agent, session) = one_turn(&stage, &slow_and_fast(), "Call both tools.");
    agent.close();
    keep(&stage, &session, "anthropic-thinking");
}

fn failing_calls() {
    let broken = ModelCall { arguments: "{\"x\": ", ..ModelCall::new("broken", "tools__fails") };
    let calls = [ModelCall::new("fails", "tools__fails"), ModelCall::new("unknown", "tools__nobody"), broken];
    let answers = vec![
        Dialect::Chat.answer("Three calls.", &calls, Cost::number(0)),
        Dialect::Chat.answer("None of them worked.", &[], Cost::number(1)),
    ];
    let content = json!([{"type": "text", "text": "no such file"}]);
    let fails =
        CallScript { result: Some(json!({"content": content, "isError": true})), ..CallScript::default() };
    let stage = Stage::new(Dialect::Chat, answers);
    let (agent, session) = one_turn(&stage, &script(vec![tool("fails", vec![fails])]), "Try three calls.");
    agent.close();
    keep(&stage, &session, "failing-calls");
}

fn retries() {
    let stage = Stage::new(
        Dialect::Chat,
        vec![
            Answer::status(429, "{\"error\":{\"message\":\"slow down\"}}").header("retry-after", "0"),
            Answer::status(503, "busy"),
            Dialect::Chat.answer("At the third attempt.", &[], Cost::number(0)),
        ],
    );
    let (agent, session) = one_turn(&stage, &Script::default(), "Answer when you can.");
    agent.close();
    keep(&stage, &session, "retries");
}

fn cancelled() {
    let calls = [ModelCall::new("stuck", "tools__hangs")];
    let stage = Stage::new(Dialect::Chat, vec![Dialect::Chat.answer("One call.", &calls, Cost::number(0))]);
    let hangs = CallScript { hang: true, ..CallScript::default() };
    let mut agent = stage.agent();
    let session = agent.open(&stage.session(&script(vec![tool("hangs", vec![hangs])])));
    let prompt = agent.prompt(&session, "Call what never answers.");
    agent.until_running("stuck");
    agent.notify("session/cancel", &json!({"sessionId": session}));
    assert_eq!(agent.answer(prompt)["result"]["stopReason"], "cancelled");
    agent.close();
    keep(&stage, &session, "cancelled");
}

fn steered() {
    let calls = [ModelCall::new("waits", "tools__waits")];
    let answers = vec![
        Dialect::Chat.answer("One call.", &calls, Cost::number(0)),
        Dialect::Chat.answer("In French, then.", &[], Cost::number(1)),
    ];
    let waits = CallScript { delay_ms: 500, ..CallScript::default() };
    let stage = Stage::new(Dialect::Chat, answers);
    let mut agent = stage.agent();
    let session = agent.open(&stage.session(&script(vec![tool("waits", vec![waits])])));
    let prompt = agent.prompt(&session, "Call, then answer.");
    let run = agent
        .wait(|line| line["params"]["update"]["_meta"]["goose"]["activeRunId"].as_str().map(str::to_owned));
    agent.until_running("waits");
    let steer = json!([{"type": "text", "text": "Answer in French."}]);
    let params = json!({"sessionId": session, "expectedRunId": run, "prompt": steer});
    agent.ask("_goose/unstable/session/steer", &params);
    assert_eq!(agent.answer(prompt)["result"]["stopReason"], "end_turn");
    agent.close();
    keep(&stage, &session, "steered");
}

fn killed() {
    let calls = [ModelCall::new("answers", "tools__fast"), ModelCall::new("stuck", "tools__hangs")];
    let answers = vec![
        Dialect::Chat.answer("Two calls.", &calls, Cost::number(0)),
        Dialect::Chat.answer("I check what the second call did.", &[], Cost::number(1)),
    ];
    let hangs = CallScript { hang: true, ..CallScript::default() };
    let tools = script(vec![tool("fast", Vec::new()), tool("hangs", vec![hangs])]);
    let stage = Stage::new(Dialect::Chat, answers);
    let mut agent = stage.agent();
    let session = agent.open(&stage.session(&tools));
    agent.prompt(&session, "Call both tools.");
    agent.wait(|line| {
        let update = &line["params"]["update"];
        (update["toolCallId"] == "answers" && update["status"] == "completed").then_some(())
    });
    agent.kill();
    stage.agent().close();
    keep(&stage, &session, "killed");
}

/// Three turns whose history was too small for them: the agent's inputs, folded under a smaller budget.
fn truncated() {
    let answers = (0..3).map(|n| Dialect::Chat.answer(&"la ".repeat(60), &[], Cost::number(n))).collect();
    let stage = Stage::new(Dialect::Chat, answers);
    let (mut agent, session) = one_turn(&stage, &Script::default(), "Sing the first verse.");
    assert_eq!(agent.turn(&session, "Sing the second verse."), "end_turn");
    assert_eq!(agent.turn(&session, "Sing the third verse."), "end_turn");
    agent.close();
    let records = under_budget(&stage, &session);
    assert!(records.iter().any(|(_, record)| matches!(record.head, Head::HistoryTruncated { .. })));
    let small = Stage::new(Dialect::Chat, Vec::new());
    let log = Log::open(&small.log(), Options::default()).expect("a new log");
    for (time_ms, record) in records {
        let (kind, head) = record.encode_head();
        let (stream, raw) = (session.clone(), record.raw);
        log.append(vec![NewRecord { stream, kind, version: 1, time_ms, head, raw }]).expect("appended");
    }
    log.flush_blocking().expect("flushed");
    drop(log);
    keep(&small, &session, "truncated");
}

/// Takes the inputs of a session under a small history budget and makes every decision anew.
fn under_budget(stage: &Stage, session: &str) -> Vec<(u64, Record)> {
    let reader = Reader::open(&stage.log()).expect("opens");
    let mut made: Vec<(u64, Record)> = Vec::new();
    let mut fold: Option<Session> = None;
    for stored in reader.stream(session).expect("reads") {
        let stored = stored.expect("sound");
        let time_ms = stored.time_ms;
        let mut record = decode(stored);
        if record.is_decision() {
            continue;
        }
        if let Head::SessionOpened(opened) = &mut record.head {
            opened.settings.max_history_bytes = SMALL_HISTORY_BYTES;
        }
        let mut next = Some(record);
        while let Some(record) = next {
            match fold.as_mut() {
                None => fold = Session::open(&record),
                Some(session) => session.fold(&record),
            }
            made.push((time_ms, record));
            next = fold.as_ref().and_then(Session::decide);
        }
    }
    made
}

fn image() {
    let calls = [ModelCall::new("look", "tools__screen")];
    let answers = vec![
        Dialect::Chat.answer("I look.", &calls, Cost::number(0)),
        Dialect::Chat.answer("One blue pixel.", &[], Cost::number(1)),
    ];
    let content = json!([
        {"type": "text", "text": "The screen:"},
        {"type": "image", "data": PIXEL, "mimeType": "image/png"},
    ]);
    let screen = CallScript { result: Some(json!({"content": content})), ..CallScript::default() };
    let stage = Stage::new(Dialect::Chat, answers);
    let (agent, session) =
        one_turn(&stage, &script(vec![tool("screen", vec![screen])]), "What is on the screen?");
    agent.close();
    keep(&stage, &session, "image");
}
