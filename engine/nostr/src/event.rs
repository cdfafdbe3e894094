//! Events: what is signed, how its id is made, and the two checks that make one trusted.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::id::{EventId, PublicKey, Signature};

/// A tag: a name and its values. May be empty on the wire.
pub type Tag = Vec<String>;

/// A signed event, as it is on the wire. Holding one says nothing of its truth: see [`Event::verify`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The hash of all but the signature.
    pub id: EventId,
    /// The author.
    pub pubkey: PublicKey,
    /// Seconds since 1970, by the author's clock.
    pub created_at: u64,
    /// What the event is: see [`crate::kind`].
    pub kind: u16,
    /// The tags in their order.
    pub tags: Vec<Tag>,
    /// The text.
    pub content: String,
    /// The author's signature over the id.
    pub sig: Signature,
}

/// What an author is about to sign. [`crate::Keys::sign`] makes an event of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// What the event is.
    pub kind: u16,
    /// The tags in their order.
    pub tags: Vec<Tag>,
    /// The text.
    pub content: String,
    /// Seconds since 1970.
    pub created_at: u64,
}

/// Why an event is not what it says it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// The id is not the hash of the rest.
    #[error("invalid event id: the event says {got}, its content gives {computed}")]
    Id {
        /// What the event states.
        got: EventId,
        /// What its fields hash to.
        computed: EventId,
    },
    /// The signature is not the author's over the stated id.
    #[error("invalid signature of event {0}")]
    Signature(EventId),
}

impl Draft {
    /// A draft without tags.
    pub fn new(kind: u16, content: impl Into<String>, created_at: u64) -> Self {
        Self { kind, tags: Vec::new(), content: content.into(), created_at }
    }

    /// The draft with one more tag at the end.
    #[must_use]
    pub fn tag<S: Into<String>>(mut self, values: impl IntoIterator<Item = S>) -> Self {
        self.tags.push(values.into_iter().map(Into::into).collect());
        self
    }

    /// The id that this draft has when `pubkey` signs it.
    pub fn id(&self, pubkey: &PublicKey) -> EventId {
        compute_id(pubkey, self.created_at, self.kind, &self.tags, &self.content)
    }
}

impl Event {
    /// Whether the id is the hash of the other fields. Says nothing of the signature.
    pub fn verify_id(&self) -> Result<(), VerifyError> {
        let computed = compute_id(&self.pubkey, self.created_at, self.kind, &self.tags, &self.content);
        match computed == self.id {
            true => Ok(()),
            false => Err(VerifyError::Id { got: self.id, computed }),
        }
    }

    /// Whether the signature is the author's over the *stated* id. Says nothing of the content.
    pub fn verify_signature(&self) -> Result<(), VerifyError> {
        match crate::keys::is_signed(&self.pubkey, self.id.as_bytes(), &self.sig) {
            true => Ok(()),
            false => Err(VerifyError::Signature(self.id)),
        }
    }

    /// Both checks, id first. This is work for the processor: keep it off tasks that must not wait.
    pub fn verify(&self) -> Result<(), VerifyError> {
        self.verify_id()?;
        self.verify_signature()
    }

    /// The tags with this name.
    pub fn tags_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Tag> + 'a {
        self.tags.iter().filter(move |tag| tag.first().is_some_and(|first| first == name))
    }

    /// Element 1 of each tag with this name that has one.
    pub fn tag_values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> + 'a {
        self.tags_named(name).filter_map(|tag| tag.get(1)).map(String::as_str)
    }

    /// Element 1 of the first tag with this name that has one.
    pub fn tag_value<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.tag_values(name).next()
    }

    /// Element 1 of the only tag with this name; nothing if there are two tags.
    pub fn only_value<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        let mut tags = self.tags_named(name);
        let (tag, None) = (tags.next()?, tags.next()) else { return None };
        tag.get(1).map(String::as_str)
    }

    /// As [`Event::only_value`], if it is 64 lower-case hex digits.
    pub fn only_hex<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        self.only_value(name).filter(|value| value.len() == 64 && value.bytes().all(is_digit))
    }

    /// The first `d` value, or the empty text: the third part of an addressable event's key.
    pub fn identifier(&self) -> &str {
        self.tag_value("d").unwrap_or_default()
    }

    /// The event as one line of JSON, its keys in the order of the protocol.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The SHA-256 of the canonical form `[0,pubkey,created_at,kind,tags,content]`.
fn compute_id(pubkey: &PublicKey, created_at: u64, kind: u16, tags: &[Tag], content: &str) -> EventId {
    let mut hash = Sha256::new();
    let form = (0_u8, pubkey, created_at, kind, tags, content);
    match serde_json::to_writer(&mut hash, &form) {
        Ok(()) => EventId::from_bytes(hash.finalize().into()),
        Err(error) => unreachable!("a hash takes all bytes and a text has a JSON form: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Keys;

    fn signed() -> Event {
        let keys = Keys::parse("0000000000000000000000000000000000000000000000000000000000000002").unwrap();
        keys.sign(Draft::new(1, "über\n\"x\"\u{7f}\u{1}", 1_700_000_000).tag(["t", "a"]))
    }

    #[test]
    fn a_signed_event_passes_both_checks_and_survives_json() {
        let event = signed();
        assert_eq!(event.verify(), Ok(()));
        assert_eq!(serde_json::from_str::<Event>(&event.to_json()).unwrap(), event);
    }

    #[test]
    fn changed_content_is_a_wrong_id_with_both_values() {
        let event = Event { content: "other".into(), ..signed() };
        let Err(VerifyError::Id { got, computed }) = event.verify() else { panic!("passed") };
        assert_eq!(got, event.id);
        assert_ne!(got, computed);
        assert_eq!(event.verify_signature(), Ok(()));
    }

    #[test]
    fn a_zeroed_signature_passes_the_id_check_and_fails_the_other() {
        let event = Event { sig: Signature::from_bytes([0; 64]), ..signed() };
        assert_eq!(event.verify_id(), Ok(()));
        assert_eq!(event.verify(), Err(VerifyError::Signature(event.id)));
    }

    #[test]
    fn the_only_value_is_none_of_two_and_hex_is_in_lower_case() {
        let hex = "a".repeat(64);
        let draft =
            Draft::new(1, "", 1).tag(["a", "1"]).tag(["b", "1"]).tag(["b"]).tag(["c"]).tag(["d", &hex]);
        let event = Keys::generate().sign(draft.tag(["e", &hex.to_uppercase()]));
        let values = ["a", "b", "c", "x"].map(|name| event.only_value(name));
        assert_eq!(values, [Some("1"), None, None, None]);
        assert_eq!(["a", "d", "e"].map(|name| event.only_hex(name)), [None, Some(hex.as_str()), None]);
    }

    #[test]
    fn the_id_of_a_known_event_is_the_known_id() {
        let event: Event = serde_json::from_str(
            r#"{"id":"f4a594177b7aeea4fe99a09efbf74ae85f0126244f322135682c405888a38689","pubkey":"79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798","created_at":1700000000,"kind":30174,"tags":[["d","72d4f9629106451505d7d341ea85bb3ebad4f654fcfd2aad100d5a35f8a85cba"],["p","c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5"]],"content":"AgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABedgcxyfmpph68LBjCWZsTI5lb0Cbg8dIPVYVe/WVj/l4Yd8HGgzC8awyBi9bn9ClRdtd2IPsmont0jN/cajVSQhahTOwuNNwoJtZIg35aSsUzeCq4tQfd8E+fLoKomdPxjs=","sig":"0a4582f0bc5995b9a010afda5984f568055988ebbe4552b4e0ec6d11aeb2b303af940f3d84726a7edd1763badb284eb3aa8457664ceba85a90d6252ed4b494cb"}"#,
        )
        .unwrap();
        assert_eq!(event.verify(), Ok(()));
    }
}
