//! What these groups print: results of writes, lists of events, and how they get to stdout.

use std::io::Write;

use serde_json::{json, Value};
use waxlog_nostr::Event;

use super::failure::Failure;

/// What a command has to say.
#[derive(Debug, PartialEq)]
pub(crate) enum Output {
    /// A JSON value on one line.
    Json(Value),
    /// A JSON value over several lines.
    Pretty(Value),
    /// Text, with a newline at its end.
    Line(String),
    /// Bytes as they are.
    Bytes(Vec<u8>),
    /// Nothing.
    Nothing,
}

impl Output {
    /// Writes it.
    pub(crate) fn print(&self, out: &mut dyn Write) -> Result<(), Failure> {
        match self {
            Output::Json(value) => writeln!(out, "{value}")?,
            Output::Pretty(value) => writeln!(out, "{value:#}")?,
            Output::Line(text) => writeln!(out, "{text}")?,
            Output::Bytes(bytes) => out.write_all(bytes)?,
            Output::Nothing => {}
        }
        Ok(())
    }
}

impl From<Value> for Output {
    fn from(value: Value) -> Output {
        Output::Json(value)
    }
}

/// How lists are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// All fields.
    Json,
    /// The fields that matter most.
    Compact,
}

impl std::str::FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        match text {
            "json" => Ok(Format::Json),
            "compact" => Ok(Format::Compact),
            _ => Err(format!("unknown format {text:?}: use json or compact")),
        }
    }
}

/// A relay's answer to a write, with all three fields whatever it left out.
pub(crate) fn written(answer: &Value) -> Value {
    json!({
        "event_id": answer["event_id"].as_str().unwrap_or_default(),
        "accepted": answer["accepted"].as_bool().unwrap_or_default(),
        "message": answer["message"].as_str().unwrap_or_default(),
    })
}

/// A relay's answer to a write as it is, but for what callers count on: whether it was accepted.
pub(crate) fn with_accepted(mut answer: Value) -> Value {
    if answer.get("accepted").is_none() {
        answer["accepted"] = true.into();
    }
    answer
}

/// Events for readers, without signatures.
pub(crate) fn event_list(events: &[Event], format: Format) -> Value {
    let item = |event: &Event| match format {
        Format::Compact => {
            json!({"id": event.id, "content": event.content, "created_at": event.created_at})
        }
        Format::Json => json!({
            "id": event.id,
            "pubkey": event.pubkey,
            "kind": event.kind,
            "content": event.content,
            "created_at": event.created_at,
            "tags": event.tags,
        }),
    };
    events.iter().map(item).collect()
}

/// Events as the relay gave them.
pub(crate) fn raw_list(events: &[Event]) -> Value {
    events.iter().map(|event| json!(event)).collect()
}

#[cfg(test)]
mod tests {
    use waxlog_nostr::{Draft, Keys};

    use super::*;

    #[test]
    fn a_result_of_a_write_has_its_three_fields() {
        let full = json!({"event_id": "a", "accepted": true, "message": "m", "more": 1});
        assert_eq!(written(&full), json!({"event_id": "a", "accepted": true, "message": "m"}));
        assert_eq!(written(&json!({})), json!({"event_id": "", "accepted": false, "message": ""}));
    }

    #[test]
    fn a_list_has_no_signatures_and_a_compact_one_three_fields() {
        let event = Keys::generate().sign(Draft::new(9, "x", 5).tag(["h", "c"]));
        let full = event_list(std::slice::from_ref(&event), Format::Json);
        assert!(full[0].get("sig").is_none());
        assert_eq!(full[0]["tags"], json!([["h", "c"]]));
        let compact = event_list(std::slice::from_ref(&event), Format::Compact);
        assert_eq!(compact, json!([{"id": event.id, "content": "x", "created_at": 5}]));
        assert_eq!(raw_list(std::slice::from_ref(&event))[0]["sig"], json!(event.sig));
    }
}
