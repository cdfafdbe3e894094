//! Workflows: their definitions in a channel, and what moves a run on.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{check_bytes, BuildError, MAX_TEXT_BYTES};
use crate::channel::ChannelId;
use crate::coordinate::Coordinate;
use crate::event::Draft;
use crate::id::PublicKey;
use crate::kind::{DELETION, WORKFLOW, WORKFLOW_DENY, WORKFLOW_GRANT, WORKFLOW_TRIGGER};

/// A workflow's id: a UUID, written with hyphens in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkflowId(Uuid);

impl WorkflowId {
    /// A new id from 16 random bytes.
    pub fn from_random(bytes: [u8; 16]) -> Self {
        Self(uuid::Builder::from_random_bytes(bytes).into_uuid())
    }
}

impl fmt::Display for WorkflowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for WorkflowId {
    type Err = BuildError;

    /// Reads a UUID in any of its written forms.
    fn from_str(text: &str) -> Result<Self, BuildError> {
        Uuid::parse_str(text)
            .map(Self)
            .map_err(|_| BuildError::invalid("the id of a workflow", "a UUID", text))
    }
}

/// A definition: `d`, `h`; the content is YAML of at most [`MAX_TEXT_BYTES`].
pub fn definition(
    id: &WorkflowId,
    channel: &ChannelId,
    yaml: &str,
    created_at: u64,
) -> Result<Draft, BuildError> {
    check_bytes("the definition", yaml, MAX_TEXT_BYTES)?;
    Ok(Draft::new(WORKFLOW, yaml, created_at).tag(["d", &id.to_string()]).tag(["h", &channel.to_string()]))
}

/// Takes back one's own definition.
pub fn deletion(id: &WorkflowId, author: PublicKey, now: u64) -> Draft {
    Draft::new(DELETION, "", now).tag(["a", &Coordinate::new(WORKFLOW, author, id.to_string()).to_string()])
}

/// Starts a run, with what it needs to know.
pub fn trigger(id: &WorkflowId, inputs: Option<&Map<String, Value>>, now: u64) -> Result<Draft, BuildError> {
    let content = inputs.map(|inputs| Value::Object(inputs.clone()).to_string()).unwrap_or_default();
    check_bytes("the inputs", &content, MAX_TEXT_BYTES)?;
    Ok(Draft::new(WORKFLOW_TRIGGER, content, now).tag(["d", &id.to_string()]))
}

/// Lets a run that waits go on, or ends it. The relay sees the hash of the token only.
pub fn decision(token: &str, is_granted: bool, note: &str, now: u64) -> Result<Draft, BuildError> {
    check_bytes("the note", note, MAX_TEXT_BYTES)?;
    let kind = if is_granted { WORKFLOW_GRANT } else { WORKFLOW_DENY };
    Ok(Draft::new(kind, note, now).tag(["d", &hex::encode(Sha256::digest(token))]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Keys;

    const ID: &str = "00112233-4455-4677-8899-aabbccddeeff";

    fn id() -> WorkflowId {
        ID.parse().unwrap()
    }

    #[test]
    fn a_definition_names_itself_and_its_channel() {
        let draft = definition(&id(), &ID.parse().unwrap(), "name: x\n", 5).unwrap();
        assert_eq!((draft.kind, draft.content.as_str()), (30_620, "name: x\n"));
        assert_eq!(draft.tags, [["d", ID], ["h", ID]]);
        assert!(definition(&id(), &ID.parse().unwrap(), &"x".repeat(65_537), 5).is_err());
    }

    #[test]
    fn an_id_is_a_uuid_in_one_form() {
        assert_eq!(ID.to_uppercase().parse::<WorkflowId>().unwrap().to_string(), ID);
        assert!("x".parse::<WorkflowId>().is_err());
        assert_ne!(WorkflowId::from_random([1; 16]), WorkflowId::from_random([2; 16]));
    }

    #[test]
    fn a_deletion_names_the_definition_by_its_address() {
        let me = Keys::generate().public_key();
        let draft = deletion(&id(), me, 5);
        assert_eq!((draft.kind, draft.tags), (5, vec![vec!["a".into(), format!("30620:{me}:{ID}")]]));
    }

    #[test]
    fn a_trigger_carries_its_inputs_or_nothing() {
        assert_eq!(trigger(&id(), None, 5).unwrap().content, "");
        let inputs = json!({"a": 1});
        let draft = trigger(&id(), inputs.as_object(), 5).unwrap();
        assert_eq!((draft.kind, draft.content.as_str()), (46_020, r#"{"a":1}"#));
        assert_eq!(draft.tags, [["d", ID]]);
    }

    #[test]
    fn a_decision_shows_the_hash_of_its_token() {
        let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let granted = decision("abc", true, "fine", 5).unwrap();
        assert_eq!((granted.kind, granted.content.as_str()), (46_030, "fine"));
        assert_eq!(granted.tags, [["d", hash]]);
        assert_eq!(decision("abc", false, "", 5).unwrap().kind, 46_031);
    }
}
