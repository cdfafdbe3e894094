//! What each target holds the bytes against.

use serde_json::value::RawValue;
use serde_json::{json, Value};
use waxlog_core::acp::frame::{classify, Frame};
use waxlog_core::acp::lines;
use waxlog_core::connection::{kept_line, Connection, Head as ConnectionHead, Route};
use waxlog_core::dialect::{self, Dialect};
use waxlog_core::json::from_outside;
use waxlog_core::ledger::Ledger;
use waxlog_core::mcp::{self, Inbound, Outcome, ResultLimits, ToolsPage};
use waxlog_core::record::{Head, Record};
use waxlog_core::replay::Replay;
use waxlog_core::session::{Draws, Effect, Input, Session};
use waxlog_store::jsonl::{read_rows, Row};

use crate::checks::check_request;

/// The session that targets feed.
const SESSION: &str = "ses_00000000000000f1";
/// Decisions that may follow from one input.
const DECISIONS_MAX: usize = 200;
/// A byte order mark.
const MARK: &[u8] = b"\xef\xbb\xbf";
/// Caps of a tool's result.
const LIMITS: ResultLimits = ResultLimits { text_bytes: 1_024, total_bytes: 4_096 };

/// A line of a client: it is classified, recorded and folded without a panic, and an id comes back as it
/// was sent.
pub fn acp_line(bytes: &[u8]) {
    let frame = classify(bytes);
    check_echo(bytes, &frame);
    let mut connection = Connection::default();
    connection.fold(&ConnectionHead::ConnectionOpened { version: "0".to_owned(), max_sessions: 2 }, b"");
    connection.fold(&ConnectionHead::SessionBegun { session: SESSION.to_owned() }, b"");
    if connection.route(&frame) == Route::Nobody {
        return;
    }
    let kept = kept_line(&frame, bytes);
    assert_eq!(
        std::mem::discriminant(&classify(&kept)),
        std::mem::discriminant(&frame),
        "the kept line is another"
    );
    let follows = connection.fold(&ConnectionHead::LineReceived {}, &kept);
    follows.lines.iter().for_each(|line| check_line(line));
    let mut session = open("openai", "chat");
    for line in [bytes, &prompt(), bytes] {
        feed(&mut session, Input::Line { frame: classify(line), line: line.to_vec(), draws: draws() });
    }
}

/// A request's id is the JSON of the line's own; what cannot be echoed is answered under null.
fn check_echo(bytes: &[u8], frame: &Frame) {
    let (Frame::Request { id, .. } | Frame::Bad { id, .. }) = frame else { return };
    let answer = lines::error(id, -32_603, "no");
    // An id may hold a lone surrogate, which its owner gets back as it was.
    let answer: Value = from_outside(&answer).expect("an answer is JSON");
    let bytes = bytes.strip_prefix(MARK).unwrap_or(bytes);
    let Ok(line) = from_outside::<Value>(bytes) else {
        assert_eq!(answer["id"], Value::Null, "no id can be read, and one is echoed");
        return;
    };
    match frame {
        Frame::Request { .. } => assert_eq!(Some(&answer["id"]), line.get("id"), "the id is not echoed"),
        _ => {
            assert!(answer["id"].is_null() || Some(&answer["id"]) == line.get("id"), "a strange id is echoed")
        }
    }
}

fn check_line(line: &[u8]) {
    assert!(!line.contains(&b'\n'), "a line breaks");
    assert!(from_outside::<Value>(line).is_ok(), "a line is no JSON");
}

/// A line of a tool server: it is decoded, listed and shaped without a panic, within the limits.
pub fn mcp_line(bytes: &[u8]) {
    let inbound = mcp::decode(bytes);
    assert_eq!(inbound, mcp::decode(bytes), "decoding is no function of the bytes");
    // A server of ours takes fewer lines, and those as they are.
    let asked = mcp::decode_request(bytes);
    assert!(asked == inbound || asked == Inbound::Unparsable, "a request is read in two ways");
    let shaped = mcp::shape_result("web__fetch", bytes, LIMITS);
    let text: usize = shaped
        .parts
        .iter()
        .map(|part| match part {
            waxlog_core::content::Part::Text(text) => text.len(),
            waxlog_core::content::Part::Image { .. } => 0,
        })
        .sum();
    assert!(text <= 2 * LIMITS.total_bytes, "{text} bytes of text");
    if let Inbound::Response { outcome: Outcome::Result(result), .. } = inbound {
        if let Ok(page) = ToolsPage::read(result) {
            // A listing with bad names is refused, which is no failure here.
            drop(mcp::Catalogue::build(vec![("web".to_owned(), page.tools)]));
        }
    }
}

/// The body of a Chat answer.
pub fn chat_body(bytes: &[u8]) {
    body(Dialect::Chat, "openai", bytes);
}

/// The body of an OpenRouter answer.
pub fn openrouter_body(bytes: &[u8]) {
    body(Dialect::Openrouter, "openrouter", bytes);
}

/// The body of a Responses answer.
pub fn responses_body(bytes: &[u8]) {
    body(Dialect::Responses, "openai", bytes);
}

/// The body of an Anthropic answer.
pub fn anthropic_body(bytes: &[u8]) {
    body(Dialect::Anthropic, "anthropic", bytes);
}

/// Whatever an endpoint answers, its usage is counted, the turn goes on or ends, and the next request is
/// one that a provider takes.
fn body(dialect: Dialect, provider: &str, bytes: &[u8]) {
    let decoded = dialect::decode(dialect, bytes);
    assert_eq!(decoded, dialect::decode(dialect, bytes), "decoding is no function of the bytes");
    let api = if dialect == Dialect::Responses { "responses" } else { "chat" };
    let mut session = open(provider, api);
    for _ in 0..2 {
        say(&mut session, &prompt());
        let before = session.tally();
        let answered = Input::Answered {
            asked: session.asked(),
            status: 200,
            headers: Vec::new(),
            body: bytes.to_vec(),
            elapsed_ms: 1,
            jitter_permille: 0,
        };
        feed(&mut session, answered);
        let mut expected = before;
        expected.add(&decoded.usage);
        assert_eq!(session.tally(), expected, "usage is not counted");
        finish_calls(&mut session);
        say(&mut session, format!("{{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":{{\"sessionId\":\"{SESSION}\"}}}}").as_bytes());
        assert!(!session.is_busy(), "the turn does not end");
    }
    let next = session.next_request("go on").to_vec();
    if let Err(why) = check_request(dialect, &next) {
        panic!("{why} in {}", String::from_utf8_lossy(&next));
    }
}

fn finish_calls(session: &mut Session) {
    for index in 0..waxlog_core::session::CALLS_PER_ANSWER_MAX {
        let asked = session.asked();
        let line = b"{\"id\":1,\"result\":{\"content\":[]}}".to_vec();
        let outcome = waxlog_core::record::CallOutcome::Returned;
        feed(session, Input::CallFinished { asked, index, outcome, line, elapsed_ms: 1 });
        feed(session, Input::SkillLoaded { asked, index, text: "none".to_owned(), is_error: true });
    }
}

/// Rows of an exported log: what is accepted comes back the same.
pub fn record_frame(bytes: &[u8]) {
    for row in read_rows(bytes) {
        let Ok(Ok(record)) = row.map(Row::into_record) else { continue };
        let again = serde_json::to_vec(&Row::from(&record)).expect("a record has a row");
        let row: Row = serde_json::from_slice(&again).expect("a row is read back");
        assert_eq!(row.into_record().as_ref(), Ok(&record), "a record changes on its way through a row");
        if let Ok(own) = Record::decode(&record.kind, record.version, &record.head, record.raw) {
            check_record(&own);
        }
    }
}

/// Rows of a fixture, their hashes left aside: any sequence of records folds, decides and replays without a
/// panic.
pub fn fixture_line(bytes: &[u8]) {
    let mut session: Option<Session> = None;
    let (mut replay, mut ledger) = (Replay::default(), Ledger::default());
    for record in bytes.split(|byte| *byte == b'\n').filter_map(unchecked) {
        check_record(&record);
        match session.as_mut() {
            None => session = Session::open(&record),
            Some(session) => session.fold(&record),
        }
        if let Some(session) = session.as_mut() {
            drop((session.decide(), session.recovery(), session.take_outbox()));
        }
        replay.step(&record);
        ledger.fold(&record);
    }
}

fn unchecked(line: &[u8]) -> Option<Record> {
    let row: Row = serde_json::from_slice(line).ok()?;
    let head = row.head.as_deref().map(RawValue::get)?;
    Record::decode(&row.kind, row.version, head.as_bytes(), row.raw.unwrap_or_default().into_bytes()).ok()
}

fn check_record(record: &Record) {
    let (kind, head) = record.encode_head();
    let again = Record::decode(&kind, 1, &head, record.raw.clone());
    assert_eq!(again.as_ref().ok(), Some(record), "a record changes on its way through its head");
}

/// A session with a server and a small window, so that a few answers reach every part of it.
fn open(provider: &str, api: &str) -> Session {
    let tool = |bare: &str| json!({"qualified": format!("web__{bare}"), "server": 0, "bare": bare, "description": "", "schema": {}, "hook": bare == "_Stop"});
    let opened = json!({
        "id": "1", "session": SESSION, "profile": "harness", "cwd": "/", "servers": [], "upgraded": false,
        "catalogue": {"servers": ["web"], "tools": [tool("fetch"), tool("shell"), tool("_Stop")]},
        "models": [], "sources": [], "skills": [], "hook_servers": [], "prompt_source": "built-in",
        "settings": {
            "provider": provider, "api": api, "base_url": "http://127.0.0.1:9", "model": "m",
            "max_output_tokens": 1_000, "max_context_tokens": 200_000, "max_rounds": 0, "max_handoffs": 1,
            "stop_max_rejections": 1, "require_reply": true, "max_history_bytes": 1_000_000, "max_parallel_tools": 8,
            "max_tool_result_text_bytes": 1_024, "prompt_caching": true, "effort": null,
        },
    });
    let record = Record::decode("session_opened", 1, opened.to_string().as_bytes(), b"Be.".to_vec());
    record.ok().and_then(|record| Session::open(&record)).expect("the session of the fuzz targets opens")
}

fn say(session: &mut Session, line: &[u8]) {
    feed(session, Input::Line { frame: classify(line), line: line.to_vec(), draws: draws() });
}

/// Takes an input in as a driver does; what is said must be lines.
fn feed(session: &mut Session, input: Input) {
    let mut next = session.admit(input);
    for _ in 0..DECISIONS_MAX {
        let Some(record) = next else { break };
        session.fold(&record);
        next = session.decide();
        assert!(!matches!(record.head, Head::SessionOpened(_)), "a session opens twice");
    }
    for effect in session.take_outbox() {
        if let Effect::Say(line) = effect {
            check_line(&line);
        }
    }
    assert!(session.decide().is_none(), "decisions without an end");
}

fn prompt() -> Vec<u8> {
    let params = json!({"sessionId": SESSION, "prompt": [{"type": "text", "text": "Do it."}]});
    json!({"jsonrpc": "2.0", "id": 9, "method": "session/prompt", "params": params}).to_string().into_bytes()
}

fn draws() -> Draws {
    let id = |prefix: &str| format!("{prefix}_0000000000000000");
    Draws { turn: id("turn"), run: id("run"), message: id("steer") }
}

#[cfg(test)]
mod tests {
    use waxlog_core::acp::frame::Id;

    use super::*;

    #[test]
    fn the_echo_is_checked() {
        let line = br#"{"jsonrpc":"2.0","id":7,"method":"x"}"#;
        let params = Value::Null;
        let wrong = Frame::Request { id: Id::null(), method: "x".into(), params };
        assert!(std::panic::catch_unwind(|| check_echo(line, &wrong)).is_err());
        check_echo(line, &classify(line));
    }
}
