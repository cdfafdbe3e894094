//! An identity: a secret key, what it signs, and how a signature is checked.

use std::fmt;

use nostr::nips::nip19::ToBech32;

use crate::event::{Draft, Event};
use crate::id::{PublicKey, Signature};
use waxlog_core::secret::Secret;

/// A key pair. Prints its public key only.
#[derive(Clone)]
pub struct Keys {
    inner: nostr::key::Keys,
    public: PublicKey,
}

/// A text that is no secret key. The text itself is not shown: it may be one with a slip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a secret key must be 64 hex digits or an nsec1... text that names a point of the curve")]
pub struct KeyError;

impl Keys {
    /// A new identity from the system's randomness.
    pub fn generate() -> Self {
        Self::from_inner(nostr::key::Keys::generate())
    }

    /// Reads a secret key of 64 hex digits or an `nsec1...` text.
    pub fn parse(secret: &str) -> Result<Self, KeyError> {
        nostr::key::Keys::parse(secret).map(Self::from_inner).map_err(|_| KeyError)
    }

    fn from_inner(inner: nostr::key::Keys) -> Self {
        let public = PublicKey::from_bytes(inner.public_key().to_bytes());
        Self { inner, public }
    }

    /// Who this is.
    pub fn public_key(&self) -> PublicKey {
        self.public
    }

    /// The secret key in hex, for the one place that stores or shows it.
    pub fn secret_hex(&self) -> Secret<String> {
        Secret::new(self.inner.secret_key().to_secret_hex())
    }

    /// The secret key as an `nsec1...` text, for the one place that stores or shows it.
    pub fn nsec(&self) -> Secret<String> {
        let Ok(text) = self.inner.secret_key().to_bech32();
        Secret::new(text)
    }

    /// Makes the draft an event of this identity. All tags are kept as they are.
    pub fn sign(&self, draft: Draft) -> Event {
        let id = draft.id(&self.public);
        let sig = self.sign_hash(id.as_bytes());
        let Draft { kind, tags, content, created_at } = draft;
        Event { id, pubkey: self.public, created_at, kind, tags, content, sig }
    }

    /// A BIP-340 signature over a hash.
    pub fn sign_hash(&self, hash: &[u8; 32]) -> Signature {
        Signature::from_bytes(self.inner.sign_schnorr(hash).to_bytes())
    }

    pub(crate) fn inner(&self) -> &nostr::key::Keys {
        &self.inner
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("public", &self.public).field("secret", &"***").finish()
    }
}

/// Whether `signature` is `pubkey`'s over `hash`.
pub fn is_signed(pubkey: &PublicKey, hash: &[u8; 32], signature: &Signature) -> bool {
    nostr::event::Event::new(
        nostr::event::EventId::from_byte_array(*hash),
        nostr::key::PublicKey::from_byte_array(*pubkey.as_bytes()),
        nostr::types::Timestamp::from_secs(0),
        nostr::event::Kind::from(0),
        std::iter::empty::<nostr::event::Tag>(),
        String::new(),
        nostr::event::Signature::from_byte_array(*signature.as_bytes()),
    )
    .verify_signature()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "0000000000000000000000000000000000000000000000000000000000000002";

    #[test]
    fn hex_and_nsec_are_the_same_identity() {
        let keys = Keys::parse(TWO).unwrap();
        assert_eq!(keys.secret_hex().expose(), TWO);
        let again = Keys::parse(keys.nsec().expose()).unwrap();
        assert_eq!(again.public_key(), keys.public_key());
    }

    #[test]
    fn a_wrong_key_is_refused_without_being_repeated() {
        for text in ["", "abc", "nsec1qqq", &"0".repeat(64), &"f".repeat(64)] {
            let error = Keys::parse(text).unwrap_err().to_string();
            assert!(text.is_empty() || !error.contains(text), "{error}");
        }
    }

    #[test]
    fn keys_print_without_their_secret() {
        let keys = Keys::generate();
        assert!(!format!("{keys:?}").contains(keys.secret_hex().expose()));
    }

    #[test]
    fn a_tag_that_names_the_signer_is_kept() {
        let keys = Keys::parse(TWO).unwrap();
        let event = keys.sign(Draft::new(9035, "", 1).tag(["p", &keys.public_key().to_hex()]));
        assert_eq!(event.tag_value("p"), Some(keys.public_key().to_hex().as_str()));
    }

    #[test]
    fn a_signature_of_another_key_or_hash_fails() {
        let (keys, other) = (Keys::parse(TWO).unwrap(), Keys::generate());
        let signature = keys.sign_hash(&[7; 32]);
        assert!(is_signed(&keys.public_key(), &[7; 32], &signature));
        assert!(!is_signed(&keys.public_key(), &[8; 32], &signature));
        assert!(!is_signed(&other.public_key(), &[7; 32], &signature));
    }
}
