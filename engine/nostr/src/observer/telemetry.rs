//! One frame of telemetry, as it is inside.

use serde::{Deserialize, Serialize};
use serde_json::{json, Value};

use super::{elide, ObserverError};
use crate::nip44::MAX_PLAINTEXT_BYTES;

/// What an agent shows its owner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TelemetryFrame {
    /// Its number in the process, from 1.
    pub seq: u64,
    /// When, RFC 3339.
    pub timestamp: String,
    /// What it is: `acp_read`, `turn_started` and the like. A reader passes over what it does not know.
    pub kind: String,
    /// Which of the harness's agents.
    pub agent_index: Option<u64>,
    /// The channel, a UUID.
    pub channel_id: Option<String>,
    /// The ACP session.
    pub session_id: Option<String>,
    /// The turn.
    pub turn_id: Option<String>,
    /// When the turn began, RFC 3339; left out if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// What there is to say; its form depends on the kind.
    #[serde(default)]
    pub payload: Value,
}

impl TelemetryFrame {
    /// A frame about nothing in particular.
    pub fn new(seq: u64, timestamp: impl Into<String>, kind: impl Into<String>, payload: Value) -> Self {
        Self {
            seq,
            timestamp: timestamp.into(),
            kind: kind.into(),
            agent_index: None,
            channel_id: None,
            session_id: None,
            turn_id: None,
            started_at: None,
            payload,
        }
    }

    /// Reads a frame.
    pub fn parse(text: &str) -> Result<Self, ObserverError> {
        serde_json::from_str(text).map_err(|_| ObserverError::Content("no telemetry"))
    }

    /// The frame as JSON, whatever its length.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| unreachable!("all of it has a JSON form: {error}"))
    }

    /// The frame as JSON of at most [`MAX_PLAINTEXT_BYTES`] bytes. One that fits is not touched. In a larger
    /// one the longest texts of the payload lose their middles; if that is not enough, a stub takes the
    /// payload's place.
    pub fn to_fitting_json(&self) -> String {
        let whole = self.to_json();
        if whole.len() <= MAX_PLAINTEXT_BYTES {
            return whole;
        }
        let mut smaller = self.clone();
        elide::shorten(&mut smaller.payload, whole.len() - MAX_PLAINTEXT_BYTES);
        let shortened = smaller.to_json();
        if shortened.len() <= MAX_PLAINTEXT_BYTES {
            return shortened;
        }
        let original_bytes = self.payload.to_string().len();
        let elided = format!("{} payload too large", self.kind);
        smaller.payload = json!({"elided": elided, "originalBytes": original_bytes});
        smaller.to_json()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(payload: Value) -> TelemetryFrame {
        TelemetryFrame::new(1, "2026-07-01T20:11:03Z", "acp_read", payload)
    }

    #[test]
    fn unknown_ids_are_null_and_an_unknown_start_is_left_out() {
        let json = frame(json!({})).to_json();
        let wanted = r#"{"seq":1,"timestamp":"2026-07-01T20:11:03Z","kind":"acp_read","agentIndex":null,"channelId":null,"sessionId":null,"turnId":null,"payload":{}}"#;
        assert_eq!(json, wanted);
        assert_eq!(TelemetryFrame::parse(&json), Ok(frame(json!({}))));
        let started = TelemetryFrame { started_at: Some("t".into()), ..frame(json!({})) };
        assert!(started.to_json().contains(r#""turnId":null,"startedAt":"t","payload""#));
    }

    #[test]
    fn a_frame_that_fits_to_the_byte_is_not_touched() {
        let empty = frame(json!({"text": ""})).to_json().len();
        let full = frame(json!({"text": "x".repeat(MAX_PLAINTEXT_BYTES - empty)}));
        assert_eq!(full.to_fitting_json(), full.to_json());
        assert_eq!(full.to_json().len(), MAX_PLAINTEXT_BYTES);
    }

    #[test]
    fn one_giant_text_keeps_its_head_and_tail() {
        let text = format!("HEAD{}TAIL", "x".repeat(100_000));
        let json = frame(json!({"a": {"b": [text]}, "c": "kept"})).to_fitting_json();
        let read = TelemetryFrame::parse(&json).unwrap().payload;
        let short = read["a"]["b"][0].as_str().unwrap();
        let marker = format!("\u{2026}[elided {} bytes]\u{2026}", text.len() - 6_000);
        assert_eq!(short, format!("{}{marker}{}", &text[..3_000], &text[text.len() - 3_000..]));
        assert_eq!(read["c"], "kept");
    }

    #[test]
    fn no_more_texts_are_shortened_than_must_be() {
        let long = |length: usize| "x".repeat(length);
        let json = frame(json!([long(20_000), long(40_000), long(30_000)])).to_fitting_json();
        let read = TelemetryFrame::parse(&json).unwrap().payload;
        let lengths: Vec<_> =
            read.as_array().unwrap().iter().map(|text| text.as_str().unwrap().len()).collect();
        assert_eq!(lengths, [20_000, 6_026, 30_000]);
    }

    #[test]
    fn many_small_texts_become_a_stub_that_says_how_much_there_was() {
        let payload = Value::from(vec!["x".repeat(1_000); 100]);
        let json = frame(payload.clone()).to_fitting_json();
        let read = TelemetryFrame::parse(&json).unwrap();
        let bytes = payload.to_string().len();
        let stub = json!({"elided": "acp_read payload too large", "originalBytes": bytes});
        assert_eq!((read.seq, read.payload), (1, stub));
    }
}
