//! What tests ask of lines, requests and a whole log.

use serde_json::Value;

use crate::record::{Head, Record, RECORD_VERSION};
use crate::replay::Replay;
use crate::session::Session;

pub(crate) fn end_rejected() -> impl Fn(&Head) -> bool {
    |head| matches!(head, Head::EndObjected { .. })
}

/// A line to the client in a few words.
pub(crate) fn short(line: &Value) -> String {
    let update = &line["params"]["update"];
    let word = |key: &str| update[key].as_str().unwrap_or_default().to_owned();
    let call = word("toolCallId");
    match update["sessionUpdate"].as_str() {
        None if line.get("error").is_some() => {
            format!(
                "error {}: {}",
                line["error"]["code"],
                line["error"]["message"].as_str().unwrap_or_default()
            )
        }
        None => match line["result"]["stopReason"].as_str() {
            Some(stop) => format!("stop {stop}"),
            None => format!("result {}", line["result"]),
        },
        Some("session_info_update") => match update["_meta"]["goose"]["activeRunId"].as_str() {
            Some(run) => format!("run {run}"),
            None => format!(
                "info {}",
                update["_meta"]["goose"]["queuedSteer"]["messageId"].as_str().unwrap_or("-")
            ),
        },
        Some("agent_thought_chunk") => {
            format!("thought {}", update["content"]["text"].as_str().unwrap_or("-"))
        }
        Some("agent_message_chunk") => {
            format!("message {}", update["content"]["text"].as_str().unwrap_or("-"))
        }
        Some("tool_call") => format!("pending {call} {}", word("title")),
        Some("tool_call_update") => match update["status"].as_str() {
            Some("completed") if update["rawOutput"]["isError"] == true => format!("returned error {call}"),
            Some("completed") => format!("completed {call}"),
            Some("failed") => {
                format!("failed {call}: {}", update["rawOutput"]["error"].as_str().unwrap_or_default())
            }
            other => format!("{} {call}", other.unwrap_or("-")),
        },
        Some("usage_update") => {
            let total = update.get("accumulatedTotalTokens").map_or("-".into(), Value::to_string);
            let (input, output) = (&update["accumulatedInputTokens"], &update["accumulatedOutputTokens"]);
            format!("usage {input}+{output} total {total}")
        }
        Some(other) => other.to_owned(),
    }
}

/// The records as another process reads them from the log.
pub(crate) fn reread(records: &[Record]) -> Vec<Record> {
    let again = records.iter().map(|record| {
        let (kind, head) = record.encode_head();
        Record::decode(&kind, RECORD_VERSION, &head, record.raw.clone()).expect("a record that can be read")
    });
    again.collect()
}

/// Everything that two equal sessions have in common.
pub(crate) fn state(session: &Session) -> String {
    let mut session = session.clone();
    session.take_outbox();
    format!("{session:?}")
}

/// The first difference that replay finds in `records`, or the session as it left it.
pub(crate) fn replayed(records: &[Record]) -> Replay {
    let mut replay = Replay::default();
    records.iter().for_each(|record| replay.step(record));
    for turn in replay.turns() {
        if let Some(difference) = &turn.difference {
            panic!(
                "replay of {}: {}\nrecorded {}\nrebuilt  {}",
                turn.turn,
                difference.what,
                String::from_utf8_lossy(&difference.recorded),
                String::from_utf8_lossy(&difference.rebuilt)
            );
        }
    }
    replay
}

pub(crate) fn check_log(records: &[Record], session: &Session) {
    let again = reread(records);
    assert!(again == records, "a record changed in its encoding");
    let replay = replayed(&again);
    assert!(
        state(replay.session().expect("a session")) == state(session),
        "the replay ends in another state"
    );
}

/// The first call in a request's messages that its next message does not answer, on either wire.
pub(crate) fn unanswered(body: &Value) -> Option<String> {
    let mut open: Vec<String> = Vec::new();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for message in body["messages"].as_array().expect("messages") {
        let blocks = message["content"].as_array().cloned().unwrap_or_default();
        let results = blocks.iter().filter(|b| b["type"] == "tool_result").map(|b| word(&b["tool_use_id"]));
        let results = results.chain((message["role"] == "tool").then(|| word(&message["tool_call_id"])));
        let mut is_result = false;
        for id in results {
            is_result = true;
            match open.iter().position(|o| *o == id) {
                Some(at) => drop(open.remove(at)),
                None => return Some(format!("{id} is a result of no call")),
            }
        }
        if !is_result && !open.is_empty() {
            break;
        }
        let uses = blocks.iter().filter(|b| b["type"] == "tool_use").map(|b| word(&b["id"]));
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        open.extend(uses.chain(calls.iter().map(|c| word(&c["id"]))));
    }
    open.first().cloned()
}
