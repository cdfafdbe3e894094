//! The payload of a turn metric: its JSON, whose key order is fixed, and what makes one invalid.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::nip44::MAX_PLAINTEXT_BYTES;

/// What a turn and its session have cost. Texts and numbers only, nothing that was said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Payload {
    /// The agent's command: see [`harness_name`].
    pub harness: String,
    /// The model of the turn's last answer.
    pub model: Option<String>,
    /// The channel that the turn served, a UUID; nothing for a heartbeat.
    pub channel_id: Option<String>,
    /// The ACP session.
    pub session_id: Option<String>,
    /// The turn, by the harness.
    pub turn_id: Option<String>,
    /// Which metric of its session this is, from 1.
    pub turn_seq: Option<u64>,
    /// The end of the turn, RFC 3339.
    pub timestamp: String,
    /// What the turn cost; nothing if that cannot be told.
    pub turn: Option<TokenCounts>,
    /// What the session has cost so far.
    pub cumulative: Option<TokenCounts>,
    /// Whether `turn` can be relied on. Absent means yes.
    #[serde(default = "reliable")]
    pub delta_reliable: bool,
    /// Why the turn ended.
    pub stop_reason: Option<StopReason>,
}

/// Counts of tokens and a cost. What was not reported is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenCounts {
    /// Tokens in, those from the cache included.
    pub input_tokens: Option<u64>,
    /// Tokens out.
    pub output_tokens: Option<u64>,
    /// The total as it was reported; never a sum made here.
    pub total_tokens: Option<u64>,
    /// The cost in US dollars.
    pub cost_usd: Option<f64>,
    /// Of the tokens in, those read from the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Of the tokens in, those written to the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
}

/// Why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The agent was done.
    EndTurn,
    /// The model's limit of tokens.
    MaxTokens,
    /// It was called off.
    Cancelled,
    /// It failed.
    Error,
    /// Another reason.
    Unknown,
}

/// Why a payload counts nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// Not the JSON of a payload. Says where, not what: the text was encrypted.
    #[error("the metric's payload is malformed: {class} error in column {column}")]
    Malformed {
        /// What sort of error.
        class: &'static str,
        /// Where, in bytes from 1.
        column: usize,
    },
    /// More than can be encrypted.
    #[error("the metric's payload has {0} bytes, at most {MAX_PLAINTEXT_BYTES} fit")]
    Length(usize),
    /// A cost that is none.
    #[error("a cost must be a finite number from 0, got {0}")]
    Cost(String),
    /// Counts of a session without the session.
    #[error("a metric with cumulative counts needs its session id and its number in the session")]
    Session,
    /// Counts of a turn that are said to be unreliable.
    #[error("a metric whose delta is not reliable must leave the turn's counts out")]
    Unreliable,
}

fn reliable() -> bool {
    true
}

impl Payload {
    /// A payload in which nothing else is known.
    pub fn new(harness: impl Into<String>, timestamp: impl Into<String>) -> Self {
        Self {
            harness: harness.into(),
            model: None,
            channel_id: None,
            session_id: None,
            turn_id: None,
            turn_seq: None,
            timestamp: timestamp.into(),
            turn: None,
            cumulative: None,
            delta_reliable: true,
            stop_reason: None,
        }
    }

    /// The exact bytes that are encrypted, after a check of all that a writer must keep.
    pub fn to_json(&self) -> Result<String, PayloadError> {
        if self.cumulative.is_some() && (self.session_id.is_none() || self.turn_seq.is_none()) {
            return Err(PayloadError::Session);
        }
        if !self.delta_reliable && self.turn.is_some() {
            return Err(PayloadError::Unreliable);
        }
        self.check_costs()?;
        let json = serde_json::to_string(self).map_err(|error| malformed(&error))?;
        within_limit(&json)?;
        Ok(json)
    }

    /// Reads a payload. Unknown keys are passed over, an unknown stop reason is [`StopReason::Unknown`], and
    /// what only a writer must keep is not asked for, so that no count is lost.
    pub fn parse(json: &str) -> Result<Self, PayloadError> {
        within_limit(json)?;
        let payload: Self = serde_json::from_str(json).map_err(|error| malformed(&error))?;
        payload.check_costs()?;
        Ok(payload)
    }

    fn check_costs(&self) -> Result<(), PayloadError> {
        let counts = [&self.turn, &self.cumulative].into_iter().flatten();
        match counts.filter_map(|counts| counts.cost_usd).find(|cost| !cost.is_finite() || *cost < 0.0) {
            Some(cost) => Err(PayloadError::Cost(cost.to_string())),
            None => Ok(()),
        }
    }
}

fn malformed(error: &serde_json::Error) -> PayloadError {
    let class = match error.classify() {
        serde_json::error::Category::Data => "data",
        serde_json::error::Category::Syntax => "syntax",
        serde_json::error::Category::Eof => "end of text",
        serde_json::error::Category::Io => "write",
    };
    PayloadError::Malformed { class, column: error.column() }
}

fn within_limit(json: &str) -> Result<(), PayloadError> {
    match json.len() {
        length if length > MAX_PLAINTEXT_BYTES => Err(PayloadError::Length(length)),
        _ => Ok(()),
    }
}

impl StopReason {
    /// Reads the word of a metric or of an ACP prompt's answer. One that metrics do not have is `Unknown`.
    pub fn read(text: &str) -> Self {
        match text {
            "end_turn" => Self::EndTurn,
            "max_tokens" => Self::MaxTokens,
            "cancelled" => Self::Cancelled,
            "error" => Self::Error,
            _ => Self::Unknown,
        }
    }

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EndTurn => "end_turn",
            Self::MaxTokens => "max_tokens",
            Self::Cancelled => "cancelled",
            Self::Error => "error",
            Self::Unknown => "unknown",
        }
    }
}

impl Serialize for StopReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for StopReason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self::read(&text))
    }
}

/// The name of an agent in its metrics, from the command that starts it: the last part of the path in lower
/// case, without `.exe`, `.cmd` or `.bat`, and with `-` for blanks and `_`.
pub fn harness_name(command: &str) -> String {
    let path = command.trim().replace('\\', "/");
    let path = path.trim_end_matches('/');
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    let stem = [".exe", ".cmd", ".bat"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    stem.replace([' ', '_'], "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_counts_are_null_and_cache_counts_are_left_out() {
        let counts = TokenCounts { input_tokens: Some(0), ..TokenCounts::default() };
        let json = r#"{"inputTokens":0,"outputTokens":null,"totalTokens":null,"costUsd":null}"#;
        assert_eq!(serde_json::to_string(&counts).unwrap(), json);
        let cached = TokenCounts { cache_read_tokens: Some(0), ..counts };
        assert!(serde_json::to_string(&cached).unwrap().ends_with(r#""costUsd":null,"cacheReadTokens":0}"#));
    }

    #[test]
    fn a_total_is_never_made_of_its_parts() {
        let counts: TokenCounts = serde_json::from_str(r#"{"inputTokens":1,"outputTokens":2}"#).unwrap();
        assert_eq!(counts.total_tokens, None);
    }

    #[test]
    fn a_bare_payload_is_reliable_and_unknown_keys_and_reasons_pass() {
        let bare = Payload::parse(r#"{"harness":"h","timestamp":"t"}"#).unwrap();
        assert_eq!(bare, Payload::new("h", "t"));
        let later = r#"{"harness":"h","timestamp":"t","stopReason":"tool_limit","outcome":"success",
            "cumulative":{"inputTokens":3},"turn":null,"triggeringEventIds":["x"]}"#;
        let read = Payload::parse(later).unwrap();
        assert_eq!(read.stop_reason, Some(StopReason::Unknown));
        assert_eq!(read.cumulative.unwrap().input_tokens, Some(3));
    }

    #[test]
    fn a_wrong_type_fails_the_whole_payload_without_being_repeated() {
        for (field, value) in [
            ("stopReason", "7"),
            ("turn", "{\"inputTokens\":-1}"),
            ("turn", "{\"costUsd\":1e999}"),
            ("model", "[]"),
        ] {
            let json = format!(r#"{{"harness":"secret","timestamp":"t","{field}":{value}}}"#);
            let error = Payload::parse(&json).unwrap_err();
            assert!(matches!(error, PayloadError::Malformed { .. }), "{json}");
            assert!(!error.to_string().contains("secret"));
        }
        assert!(Payload::parse(r#"{"timestamp":"t"}"#).is_err());
        assert!(Payload::parse(r#"{"harness":"h"}"#).is_err());
    }

    #[test]
    fn a_writer_must_name_the_session_of_its_counts_and_leave_out_what_is_unreliable() {
        let counts = Some(TokenCounts::default());
        let homeless = Payload { cumulative: counts, ..Payload::new("h", "t") };
        assert_eq!(homeless.to_json(), Err(PayloadError::Session));
        let unreliable = Payload { turn: counts, delta_reliable: false, ..Payload::new("h", "t") };
        assert_eq!(unreliable.to_json(), Err(PayloadError::Unreliable));
        let long = Payload::new("h".repeat(70_000), "t");
        assert!(matches!(long.to_json(), Err(PayloadError::Length(_))));
    }
}
