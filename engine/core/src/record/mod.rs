//! Records: everything that a session's state depends on, as it lies in the log.
//!
//! A record is a typed head, kept as JSON, and raw bytes for what must stay exact. Inputs are what came
//! from outside; decisions follow from the fold and are written down before they are acted on, so that
//! after a kill the log says what may have happened in the world.

mod head;
mod outcome;
mod session;

use serde::Serialize;
use serde_json::Value;

use crate::acp::{blocks, Profile};

pub use head::Head;
pub use outcome::{
    CallOutcome, Failure, Hook, HookOutcome, Objection, Outcome, PermissionAnswer, StartedCall, StopReason,
};
pub use session::{SessionOpened, SessionOption, Skill, Source};

/// The version that this code writes for every kind.
pub const RECORD_VERSION: u16 = 1;

/// One record of a session's stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// What happened.
    pub head: Head,
    /// The exact bytes that belong to it; what they are stands at each [`Head`].
    pub raw: Vec<u8>,
}
/// Why a stored record is none that this code knows.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A kind of a later release: kept, shown and passed over.
    #[error("record kind `{kind}` version {version} is not known to this version of waxlog")]
    Unknown {
        /// The kind.
        kind: String,
        /// Its version.
        version: u16,
    },
    /// The head does not have the shape of its kind.
    #[error("the head of a `{kind}` record cannot be read: {reason}")]
    Malformed {
        /// The kind.
        kind: String,
        /// What the parser says.
        reason: String,
    },
}

impl Record {
    /// A record without raw bytes.
    pub fn bare(head: Head) -> Record {
        Record { head, raw: Vec::new() }
    }

    /// Whether the record is a decision of the fold, which replay makes again.
    pub fn is_decision(&self) -> bool {
        matches!(
            self.head,
            Head::SteersApplied { .. }
                | Head::HistoryTruncated { .. }
                | Head::MeshSought { .. }
                | Head::RoundAsked { .. }
                | Head::PermissionAsked { .. }
                | Head::CallsStarted { .. }
                | Head::SummaryAsked { .. }
                | Head::HandoffDone { .. }
                | Head::HooksAsked { .. }
                | Head::EndObjected { .. }
                | Head::SessionClosed { .. }
                | Head::SessionDeleted { .. }
                | Head::TurnEnded { .. }
        )
    }

    /// Whether a later process wrote the record to close what a kill left open.
    pub fn is_recovery(&self) -> bool {
        matches!(
            self.head,
            Head::TurnInterrupted { .. } | Head::CallFinished { outcome: CallOutcome::Interrupted, .. }
        )
    }

    /// The text of an accepted prompt, if the record is one and has one.
    pub fn prompt_text(&self) -> Option<String> {
        match (&self.head, crate::acp::frame::classify(&self.raw)) {
            (Head::TurnPrompted { .. }, crate::acp::frame::Frame::Request { params, .. }) => {
                let blocks = blocks::decode(params.get("prompt")).ok()?;
                blocks::prompt_item(&blocks, Profile::Standard).ok().map(|item| item.user_text())
            }
            _ => None,
        }
    }

    /// The kind and the head as JSON, as they are stored.
    pub fn encode_head(&self) -> (String, Vec<u8>) {
        encode_tagged(&self.head)
    }

    /// Reads a stored record.
    pub fn decode(kind: &str, version: u16, head: &[u8], raw: Vec<u8>) -> Result<Record, RecordError> {
        Ok(Record { head: decode_tagged(&KINDS, kind, version, head)?, raw })
    }
}

/// Splits an adjacently tagged head into its kind and its JSON.
pub fn encode_tagged<T: Serialize>(head: &T) -> (String, Vec<u8>) {
    // A head holds strings, numbers and lists of them only: it always has a JSON form.
    let value = serde_json::to_value(head).unwrap_or(Value::Null);
    let kind = value["kind"].as_str().unwrap_or_default().to_owned();
    (kind, value["head"].to_string().into_bytes())
}

/// The inverse of [`encode_tagged`] for the given kinds.
pub fn decode_tagged<T: serde::de::DeserializeOwned>(
    kinds: &[&str],
    kind: &str,
    version: u16,
    head: &[u8],
) -> Result<T, RecordError> {
    if version > RECORD_VERSION || !kinds.contains(&kind) {
        return Err(RecordError::Unknown { kind: kind.to_owned(), version });
    }
    let malformed =
        |e: serde_json::Error| RecordError::Malformed { kind: kind.to_owned(), reason: e.to_string() };
    let head: Value = serde_json::from_slice(head).map_err(malformed)?;
    serde_json::from_value(serde_json::json!({"kind": kind, "head": head})).map_err(malformed)
}

/// The kinds of [`Head`].
const KINDS: [&str; 35] = [
    "session_opened",
    "session_resumed",
    "option_selected",
    "close_requested",
    "session_closed",
    "delete_requested",
    "session_deleted",
    "turn_prompted",
    "line_refused",
    "steer_accepted",
    "cancel_requested",
    "model_selected",
    "steers_applied",
    "history_truncated",
    "mesh_sought",
    "mesh_answered",
    "round_asked",
    "summary_asked",
    "handoff_done",
    "hooks_asked",
    "hooks_finished",
    "end_objected",
    "round_answered",
    "attempt_failed",
    "permission_asked",
    "permission_answered",
    "permission_expired",
    "calls_started",
    "call_finished",
    "skill_loaded",
    "drain_expired",
    "server_changed",
    "keepalive_ticked",
    "turn_ended",
    "turn_interrupted",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_as_it_was_stored() {
        let record = Record {
            head: Head::CallFinished {
                asked: 3,
                index: 1,
                outcome: CallOutcome::TimedOut { after_secs: 660 },
                elapsed_ms: 660_001,
            },
            raw: b"\xff\x00".to_vec(),
        };
        let (kind, head) = record.encode_head();
        assert_eq!(kind, "call_finished");
        let back = Record::decode(&kind, RECORD_VERSION, &head, record.raw.clone()).expect("known");
        assert_eq!(back, record);
    }

    #[test]
    fn c72_an_unknown_kind_or_a_later_version_is_told_apart_from_a_broken_one() {
        let decode = |kind, version, head: &[u8]| Record::decode(kind, version, head, Vec::new());
        assert!(matches!(decode("dream_had", 1, b"{}"), Err(RecordError::Unknown { .. })));
        assert!(matches!(decode("drain_expired", 2, b"{}"), Err(RecordError::Unknown { .. })));
        assert!(matches!(decode("drain_expired", 1, b"{}"), Err(RecordError::Malformed { .. })));
        assert!(matches!(decode("drain_expired", 1, b"{"), Err(RecordError::Malformed { .. })));
    }
}
