//! NIP-44 version 2: texts that two keys share.

use std::fmt;

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use nostr::nips::nip44::v2;

use crate::id::PublicKey;
use crate::keys::Keys;

/// The longest text that may be encrypted, in bytes.
pub const MAX_PLAINTEXT_BYTES: usize = 65_535;
/// The shortest payload in base64, in characters: 99 bytes.
pub const MIN_PAYLOAD_CHARS: usize = 132;
/// The longest payload in base64, in characters.
pub const MAX_PAYLOAD_CHARS: usize = 87_472;
const MIN_PAYLOAD_BYTES: usize = 99;
const VERSION: u8 = 2;

/// What two keys share; the same for either side. Prints as `***`.
pub struct ConversationKey(v2::ConversationKey);

/// Why a text could not be encrypted or decrypted. Holds no part of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Nip44Error {
    /// The other side's key is no point of the curve.
    #[error("{0} is not a public key that anything can be encrypted to")]
    Key(PublicKey),
    /// The text is empty or too long.
    #[error("a text to encrypt must have 1 to {MAX_PLAINTEXT_BYTES} bytes, got {0}")]
    Length(usize),
    /// The payload is not base64 of a version 2 message.
    #[error("the payload is not a NIP-44 version 2 message")]
    Payload,
    /// The message was not made with this key, or was changed.
    #[error("the payload cannot be opened with this key")]
    Closed,
    /// What was encrypted is not text.
    #[error("the payload opens to bytes that are not UTF-8")]
    NotText,
}

impl ConversationKey {
    /// The key that `keys` and `other` share.
    pub fn new(keys: &Keys, other: &PublicKey) -> Result<Self, Nip44Error> {
        let public = nostr::key::PublicKey::from_byte_array(*other.as_bytes());
        v2::ConversationKey::derive(keys.inner().secret_key(), &public)
            .map(Self)
            .map_err(|_| Nip44Error::Key(*other))
    }

    /// The bytes of the key, for what is derived from it.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Encrypts a text with a nonce from the system's randomness. Gives base64.
    pub fn encrypt(&self, text: &str) -> Result<String, Nip44Error> {
        let mut nonce = [0; 32];
        getrandom::fill(&mut nonce).unwrap_or_else(|error| panic!("no randomness from the system: {error}"));
        self.encrypt_with(text, nonce)
    }

    /// Encrypts with a nonce that the caller must never use twice. Gives base64.
    pub fn encrypt_with(&self, text: &str, nonce: [u8; 32]) -> Result<String, Nip44Error> {
        if text.is_empty() || text.len() > MAX_PLAINTEXT_BYTES {
            return Err(Nip44Error::Length(text.len()));
        }
        v2::encrypt_to_bytes_with_nonce(&self.0, text.as_bytes(), nonce)
            .map(|bytes| STANDARD.encode(bytes))
            .map_err(|_| Nip44Error::Length(text.len()))
    }

    /// Opens a payload in base64.
    pub fn decrypt(&self, payload: &str) -> Result<String, Nip44Error> {
        if payload.len() > MAX_PAYLOAD_CHARS {
            return Err(Nip44Error::Payload);
        }
        let bytes = message(payload).ok_or(Nip44Error::Payload)?;
        let text = v2::decrypt_to_bytes(&self.0, &bytes).map_err(|_| Nip44Error::Closed)?;
        String::from_utf8(text).map_err(|_| Nip44Error::NotText)
    }
}

impl fmt::Debug for ConversationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConversationKey(***)")
    }
}

/// Whether a text has the outer form of a payload: base64 of at least 99 bytes, the first of them 2.
pub fn looks_encrypted(content: &str) -> bool {
    message(content).is_some()
}

fn message(payload: &str) -> Option<Vec<u8>> {
    let bytes = STANDARD.decode(payload).ok()?;
    (bytes.len() >= MIN_PAYLOAD_BYTES && bytes.first() == Some(&VERSION)).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_share_one_key_and_others_do_not() {
        let (agent, owner, other) = (Keys::generate(), Keys::generate(), Keys::generate());
        let sealed = ConversationKey::new(&agent, &owner.public_key()).unwrap().encrypt("the cost").unwrap();
        assert!(looks_encrypted(&sealed) && sealed.len() >= MIN_PAYLOAD_CHARS);
        let opened = ConversationKey::new(&owner, &agent.public_key()).unwrap().decrypt(&sealed);
        assert_eq!(opened.as_deref(), Ok("the cost"));
        let strange = ConversationKey::new(&other, &agent.public_key()).unwrap().decrypt(&sealed);
        assert_eq!(strange, Err(Nip44Error::Closed));
    }

    #[test]
    fn the_longest_text_fits_the_longest_payload() {
        let keys = Keys::generate();
        let key = ConversationKey::new(&keys, &keys.public_key()).unwrap();
        let sealed = key.encrypt(&"x".repeat(MAX_PLAINTEXT_BYTES)).unwrap();
        assert_eq!(sealed.len(), MAX_PAYLOAD_CHARS);
        assert_eq!(key.decrypt(&sealed).unwrap().len(), MAX_PLAINTEXT_BYTES);
        assert_eq!(key.encrypt(&"x".repeat(MAX_PLAINTEXT_BYTES + 1)), Err(Nip44Error::Length(65_536)));
        assert_eq!(key.encrypt(""), Err(Nip44Error::Length(0)));
    }

    #[test]
    fn what_is_no_message_does_not_look_like_one() {
        let short = STANDARD.encode([2; 98]);
        let other_version = STANDARD.encode([1; 99]);
        for text in ["", "plain", &short, &other_version] {
            assert!(!looks_encrypted(text), "{text}");
        }
    }
}
