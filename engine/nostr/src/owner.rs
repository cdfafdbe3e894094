//! The owner's attestation of an agent (NIP-OA): the `auth` tag.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::event::{Event, Tag};
use crate::id::{PublicKey, Signature};
use crate::keys::{is_signed, Keys};

const LABEL: &str = "auth";

/// An owner's word that an agent is theirs, in the shape `["auth", owner, conditions, signature]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerTag {
    /// Whose agent it is.
    pub owner: PublicKey,
    /// Clauses joined by `&`, verbatim: see [`parse_conditions`].
    pub conditions: String,
    /// The owner's signature.
    pub signature: Signature,
}

/// Why a tag is no attestation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OwnerTagError {
    /// Not JSON of four texts that begin with `auth`.
    #[error("an owner's tag must be [\"auth\", owner, conditions, signature], four texts")]
    Shape,
    /// A part that must be lower-case hex is not.
    #[error("the {0} of an owner's tag must be lower-case hex of its full length")]
    Hex(&'static str),
    /// A clause that the grammar does not know.
    #[error("bad condition {0:?}: use kind=N, created_at<T or created_at>T, joined by &")]
    Condition(String),
    /// The owner attests itself.
    #[error("the owner of an agent cannot be the agent itself ({0})")]
    Own(PublicKey),
    /// The signature is for another agent, or was changed.
    #[error("the owner's signature is not for the agent {0}; ask the owner for a new tag")]
    Signature(PublicKey),
}

/// What must hold for an attestation to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// The event is of this kind.
    Kind(u16),
    /// The event is older than this, in seconds since 1970.
    Before(u64),
    /// The event is newer than this, in seconds since 1970.
    After(u64),
}

impl OwnerTag {
    /// The attestation of `agent` by `owner`.
    pub fn issue(owner: &Keys, agent: &PublicKey, conditions: &str) -> Result<Self, OwnerTagError> {
        parse_conditions(conditions)?;
        if owner.public_key() == *agent {
            return Err(OwnerTagError::Own(*agent));
        }
        let signature = owner.sign_hash(&preimage_hash(agent, conditions));
        Ok(Self { owner: owner.public_key(), conditions: conditions.to_owned(), signature })
    }

    /// Reads the tag from its JSON text. Checks the shape and the grammar, not the signature.
    pub fn from_json(text: &str) -> Result<Self, OwnerTagError> {
        let tag: Tag = serde_json::from_str(text).map_err(|_| OwnerTagError::Shape)?;
        Self::from_tag(&tag)
    }

    /// Reads the tag. Checks the shape and the grammar, not the signature.
    pub fn from_tag(tag: &[String]) -> Result<Self, OwnerTagError> {
        let [label, owner, conditions, signature] = tag else { return Err(OwnerTagError::Shape) };
        if label != LABEL {
            return Err(OwnerTagError::Shape);
        }
        let lower = |text: &str| !text.bytes().any(|byte| byte.is_ascii_uppercase());
        let part = |ok: bool, name| if ok { Ok(()) } else { Err(OwnerTagError::Hex(name)) };
        part(lower(owner), "owner")?;
        part(lower(signature), "signature")?;
        parse_conditions(conditions)?;
        Ok(Self {
            owner: owner.parse().map_err(|_| OwnerTagError::Hex("owner"))?,
            conditions: conditions.clone(),
            signature: signature.parse().map_err(|_| OwnerTagError::Hex("signature"))?,
        })
    }

    /// Whether the owner attests `agent` by this tag.
    pub fn verify(&self, agent: &PublicKey) -> Result<(), OwnerTagError> {
        if self.owner == *agent {
            return Err(OwnerTagError::Own(*agent));
        }
        match is_signed(&self.owner, &preimage_hash(agent, &self.conditions), &self.signature) {
            true => Ok(()),
            false => Err(OwnerTagError::Signature(*agent)),
        }
    }

    /// Whether the conditions hold for an event of this kind and time.
    pub fn allows(&self, kind: u16, created_at: u64) -> bool {
        self.holds(Some(kind), created_at)
    }

    /// Whether the time conditions hold at `created_at`; kinds are not looked at, as at a login.
    pub fn allows_at(&self, created_at: u64) -> bool {
        self.holds(None, created_at)
    }

    fn holds(&self, kind: Option<u16>, created_at: u64) -> bool {
        parse_conditions(&self.conditions).is_ok_and(|conditions| {
            conditions.iter().all(|condition| match *condition {
                Condition::Kind(wanted) => kind.is_none_or(|kind| kind == wanted),
                Condition::Before(time) => created_at < time,
                Condition::After(time) => created_at > time,
            })
        })
    }

    /// The tag as an event carries it.
    pub fn to_tag(&self) -> Tag {
        vec![LABEL.to_owned(), self.owner.to_hex(), self.conditions.clone(), self.signature.to_hex()]
    }

    /// The tag as JSON text.
    pub fn to_json(&self) -> String {
        Value::from(self.to_tag()).to_string()
    }

    /// The attestation that an event carries: its only `auth` tag, if that verifies for the author. Two tags
    /// count as none.
    pub fn of_event(event: &Event) -> Option<Self> {
        let mut tags = event.tags_named(LABEL);
        let (tag, None) = (tags.next()?, tags.next()) else { return None };
        Self::from_tag(tag).ok().filter(|tag| tag.verify(&event.pubkey).is_ok())
    }
}

/// Reads the conditions: nothing, or clauses joined by `&` in canonical decimals and without blanks.
pub fn parse_conditions(text: &str) -> Result<Vec<Condition>, OwnerTagError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let clause =
        |clause: &str| parse_condition(clause).ok_or_else(|| OwnerTagError::Condition(clause.to_owned()));
    text.split('&').map(clause).collect()
}

fn parse_condition(clause: &str) -> Option<Condition> {
    if let Some(number) = clause.strip_prefix("kind=") {
        return decimal(number)?.try_into().ok().map(Condition::Kind);
    }
    let time = |number| decimal(number).filter(|time| *time <= u64::from(u32::MAX));
    match clause.strip_prefix("created_at<") {
        Some(number) => time(number).map(Condition::Before),
        None => time(clause.strip_prefix("created_at>")?).map(Condition::After),
    }
}

fn decimal(text: &str) -> Option<u64> {
    let canonical = !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && (text == "0" || !text.starts_with('0'));
    canonical.then(|| text.parse().ok()).flatten()
}

fn preimage_hash(agent: &PublicKey, conditions: &str) -> [u8; 32] {
    Sha256::digest(format!("nostr:agent-auth:{agent}:{conditions}")).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Draft;

    #[test]
    fn an_owner_attests_one_agent_and_no_other() {
        let (owner, agent, other) = (Keys::generate(), Keys::generate(), Keys::generate());
        let tag = OwnerTag::issue(&owner, &agent.public_key(), "kind=1").unwrap();
        assert_eq!(OwnerTag::from_json(&tag.to_json()), Ok(tag.clone()));
        assert_eq!(tag.verify(&agent.public_key()), Ok(()));
        assert_eq!(tag.verify(&other.public_key()), Err(OwnerTagError::Signature(other.public_key())));
        let own = OwnerTag::issue(&owner, &owner.public_key(), "");
        assert_eq!(own, Err(OwnerTagError::Own(owner.public_key())));
    }

    #[test]
    fn conditions_are_told_apart_by_kind_and_time() {
        let (owner, agent) = (Keys::generate(), Keys::generate());
        let tag = OwnerTag::issue(&owner, &agent.public_key(), "kind=1&created_at>10&created_at<20").unwrap();
        assert!(tag.allows(1, 11) && tag.allows(1, 19));
        assert!(!tag.allows(2, 11) && !tag.allows(1, 10) && !tag.allows(1, 20));
        assert!(tag.allows_at(11) && !tag.allows_at(20));
    }

    #[test]
    fn two_tags_on_an_event_count_as_none() {
        let (owner, agent) = (Keys::generate(), Keys::generate());
        let tag = OwnerTag::issue(&owner, &agent.public_key(), "").unwrap();
        let one = Draft::new(1, "", 1).tag(tag.to_tag());
        let two = one.clone().tag(tag.to_tag());
        assert_eq!(OwnerTag::of_event(&agent.sign(one)), Some(tag));
        assert_eq!(OwnerTag::of_event(&agent.sign(two)), None);
    }
}
