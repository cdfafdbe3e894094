//! Lines to the client.

use serde_json::{json, Value};

use super::frame::Id;
use super::Profile;
use crate::history::Call;
use crate::usage::Tally;

/// One outbound line without its line feed.
pub type Line = Vec<u8>;

/// The answer to request `id`.
pub fn result(id: &Id, result: &Value) -> Line {
    format!("{{\"id\":{},\"jsonrpc\":\"2.0\",\"result\":{result}}}", id.as_json()).into_bytes()
}

/// A request of ours.
pub fn request(id: &Id, method: &str, params: &Value) -> Line {
    format!("{{\"id\":{},\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}", id.as_json())
        .into_bytes()
}

/// Nobody waits for the answer to our request `id` any more.
pub fn cancel_request(id: &Id) -> Line {
    let method = "$/cancel_request";
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{{\"requestId\":{}}}}}", id.as_json())
        .into_bytes()
}

/// The refusal of request `id`.
pub fn error(id: &Id, code: i64, message: &str) -> Line {
    let error = json!({"code": code, "message": message});
    format!("{{\"error\":{error},\"id\":{},\"jsonrpc\":\"2.0\"}}", id.as_json()).into_bytes()
}

/// Whether `line` is the answer to request `id`, by result or error.
pub fn answers(line: &[u8], id: &Id) -> bool {
    let id = id.as_json();
    let result = format!("{{\"id\":{id},\"jsonrpc\":\"2.0\",\"result\":");
    let error = format!(",\"id\":{id},\"jsonrpc\":\"2.0\"}}");
    line.starts_with(result.as_bytes())
        || (line.starts_with(b"{\"error\":") && line.ends_with(error.as_bytes()))
}

/// A `session/update` notification.
pub fn update(session: &str, update: &Value) -> Line {
    notification("session/update", session, update)
}

fn notification(method: &str, session: &str, update: &Value) -> Line {
    let params = json!({"sessionId": session, "update": update});
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string().into_bytes()
}

/// Tells the run id of the turn that starts.
pub fn active_run(session: &str, run: &str) -> Line {
    let goose = json!({"activeRunId": run});
    update(session, &json!({"sessionUpdate": "session_info_update", "_meta": {"goose": goose}}))
}

/// Tells that a steer waits for the next round.
pub fn queued_steer(session: &str, run: &str, message: &str) -> Line {
    let goose = json!({"queuedSteer": {"messageId": message, "runId": run}});
    update(session, &json!({"sessionUpdate": "session_info_update", "_meta": {"goose": goose}}))
}

/// The model's reasoning.
pub fn thought(session: &str, text: &str) -> Line {
    chunk(session, "agent_thought_chunk", text)
}

/// The model's text.
pub fn message(session: &str, text: &str) -> Line {
    chunk(session, "agent_message_chunk", text)
}

fn chunk(session: &str, kind: &str, text: &str) -> Line {
    update(session, &json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}}))
}

/// What the user said, when a session is told again.
pub fn user_message(session: &str, text: &str) -> Line {
    chunk(session, "user_message_chunk", text)
}

/// A call with its result, when a session is told again.
pub fn call_told(session: &str, call: &Call, text: &str, is_error: bool) -> Line {
    let status = if is_error { "failed" } else { "completed" };
    update(
        session,
        &json!({
            "sessionUpdate": "tool_call", "toolCallId": call.id, "title": call.name, "kind": "other",
            "status": status, "rawInput": call.arguments,
            "content": [{"type": "content", "content": {"type": "text", "text": text}}],
        }),
    )
}

/// How much of the context window is in use, in the public standard's words.
pub fn context(session: &str, used_tokens: u64, size_tokens: u64) -> Line {
    update(session, &json!({"sessionUpdate": "usage_update", "used": used_tokens, "size": size_tokens}))
}

/// A call that the model asked for.
pub fn call_pending(session: &str, id: &str, name: &str, arguments: &Value) -> Line {
    update(
        session,
        &json!({
            "sessionUpdate": "tool_call", "toolCallId": id, "title": name, "kind": "other",
            "status": "pending", "rawInput": arguments,
        }),
    )
}

/// A call that runs now.
pub fn call_started(session: &str, id: &str) -> Line {
    update(session, &json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress"}))
}

/// A call that returned a result, good or bad.
pub fn call_returned(session: &str, id: &str, text: &str, is_error: bool) -> Line {
    update(
        session,
        &json!({
            "sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed",
            "content": [{"type": "content", "content": {"type": "text", "text": text}}],
            "rawOutput": {"isError": is_error},
        }),
    )
}

/// A call that gave no result.
pub fn call_failed(session: &str, id: &str, error: &str) -> Line {
    update(
        session,
        &json!({
            "sessionUpdate": "tool_call_update", "toolCallId": id, "status": "failed",
            "rawOutput": {"error": error},
        }),
    )
}

/// Tells that the model is still being waited for.
///
/// The public standard knows no such update; an empty one that it knows keeps the line alive as well.
pub fn keepalive(session: &str, profile: Profile) -> Line {
    let kind = match profile {
        Profile::Harness => "keepalive",
        Profile::Standard => "session_info_update",
    };
    update(session, &json!({"sessionUpdate": kind}))
}

/// What the session has cost so far. The total is there only while it is exact.
pub fn usage(session: &str, tally: &Tally, model: &str) -> Line {
    let (input, output) = (tally.input.unwrap_or(0), tally.output.unwrap_or(0));
    let mut update = json!({
        "sessionUpdate": "usage_update",
        "used": input.saturating_add(output),
        "contextLimit": 0,
        "accumulatedInputTokens": input,
        "accumulatedOutputTokens": output,
        "accumulatedCachedInputTokens": tally.cached.unwrap_or(0),
        "model": model,
    });
    if let Some(total) = tally.total.exact() {
        update["accumulatedTotalTokens"] = json!(total);
    }
    notification("_goose/unstable/session/update", session, &update)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acp::frame::{classify, Frame};

    #[test]
    fn an_answer_is_known_by_its_id() {
        let id = |own: &str| match classify(
            format!(r#"{{"jsonrpc":"2.0","id":{own},"method":"x"}}"#).as_bytes(),
        ) {
            Frame::Request { id, .. } => id,
            other => panic!("{other:?}"),
        };
        let (one, other) = (id("1"), id("\"1\""));
        for line in [result(&one, &json!({})), error(&one, -1, "\"id\":\"1\"")] {
            assert!(answers(&line, &one) && !answers(&line, &other), "{}", String::from_utf8_lossy(&line));
        }
        assert!(!answers(&update("s", &json!({"id": 1})), &one));
    }
}
