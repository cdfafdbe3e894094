//! The signature of a commit or tag (NIP-GS): what is signed, and the one text that holds it.
//!
//! The text stands in the signed object, so there is exactly one for given values: another order, spacing or
//! spelling is refused, or a signature could be changed without its values changing.

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use waxlog_nostr::keys::is_signed;
use waxlog_nostr::owner::OwnerTag;
use waxlog_nostr::{Keys, PublicKey};

const BEGIN: &str = "-----BEGIN SIGNED MESSAGE-----\n";
const END: &str = "\n-----END SIGNED MESSAGE-----";
/// Sets these signatures apart from all others by the same key.
const DOMAIN: &[u8] = b"nostr:git:v1:";
/// The version of the form.
const VERSION: u8 = 1;
/// Longest line of base64, in bytes.
const ENCODED_MAX_BYTES: usize = 4096;
/// Longest JSON, in bytes.
const JSON_MAX_BYTES: usize = 2048;
/// The label of an attestation where it is a tag; here its place says what it is.
const OWNER_LABEL: &str = "auth";

/// A signature and what it covers beside the object. The fields are in the order of the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Envelope {
    v: u8,
    /// Who signed.
    pub(super) pk: String,
    sig: String,
    /// When, in seconds since 1970, by the signer's word.
    pub(super) t: u32,
    /// The owner's attestation of the signer: owner, conditions, signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    oa: Option<[String; 3]>,
}

impl Envelope {
    /// Signs `object` at `time`.
    pub(super) fn sign(keys: &Keys, object: &[u8], time: u32, owner: Option<&OwnerTag>) -> Self {
        let oa = owner.map(|tag| [tag.owner.to_hex(), tag.conditions.clone(), tag.signature.to_hex()]);
        let sig = keys.sign_hash(&hash(object, time, oa.as_ref())).to_hex();
        Self { v: VERSION, pk: keys.public_key().to_hex(), sig, t: time, oa }
    }

    /// The text that git keeps.
    pub(super) fn armored(&self) -> Result<String, serde_json::Error> {
        Ok(format!("{BEGIN}{}{END}\n", STANDARD.encode(serde_json::to_string(self)?)))
    }

    /// Reads the text; nothing if it is not exactly what [`Envelope::armored`] gives for its values.
    pub(super) fn read(text: &str) -> Option<Self> {
        let encoded = text.strip_prefix(BEGIN)?;
        let encoded = encoded.strip_suffix('\n').unwrap_or(encoded).strip_suffix(END)?;
        if encoded.len() > ENCODED_MAX_BYTES {
            return None;
        }
        let json = STANDARD.decode(encoded).ok().filter(|json| json.len() <= JSON_MAX_BYTES)?;
        let envelope: Self = serde_json::from_slice(&json).ok()?;
        let is_canonical = serde_json::to_vec(&envelope).is_ok_and(|canonical| canonical == json);
        let is_lower = |hex: &str| !hex.bytes().any(|byte| byte.is_ascii_uppercase());
        let is_sound = envelope.v == VERSION
            && is_lower(&envelope.pk)
            && is_lower(&envelope.sig)
            && envelope.signer().is_some()
            && envelope.has_sound_owner();
        (is_canonical && is_sound).then_some(envelope)
    }

    /// Who signed.
    pub(super) fn signer(&self) -> Option<PublicKey> {
        self.pk.parse().ok()
    }

    /// Whether the signature is the signer's over `object`.
    pub(super) fn is_of(&self, object: &[u8]) -> bool {
        let (Some(signer), Ok(signature)) = (self.signer(), self.sig.parse()) else { return false };
        is_signed(&signer, &hash(object, self.t, self.oa.as_ref()), &signature)
    }

    /// The owner's attestation, if there is one that can be read.
    pub(super) fn owner(&self) -> Option<OwnerTag> {
        let [owner, conditions, signature] = self.oa.clone()?;
        OwnerTag::from_tag(&[OWNER_LABEL.to_owned(), owner, conditions, signature]).ok()
    }

    /// No attestation is sound, and so is one of another key in its full shape, true or not.
    fn has_sound_owner(&self) -> bool {
        self.oa.is_none() || self.owner().is_some_and(|tag| Some(tag.owner) != self.signer())
    }
}

fn hash(object: &[u8], time: u32, oa: Option<&[String; 3]>) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(DOMAIN);
    hasher.update(format!("{time}:"));
    for part in oa.into_iter().flatten() {
        hasher.update(format!("{part}:"));
    }
    hasher.update(object);
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENT: &str = "0000000000000000000000000000000000000000000000000000000000000003";
    const OWNER: &str = "0000000000000000000000000000000000000000000000000000000000000001";
    const TIME: u32 = 1_700_000_000;
    const OBJECT: &[u8] = b"tree 4b825dc642cb6eb9a060e54bf899d69f7cb46101\n\
        author Test User <test@example.com> 1700000000 +0000\n\
        committer Test User <test@example.com> 1700000000 +0000\n\nInitial commit";

    fn keys(secret: &str) -> Keys {
        Keys::parse(secret).expect("a key")
    }

    fn armor(json: &str) -> String {
        format!("{BEGIN}{}{END}\n", STANDARD.encode(json))
    }

    fn json_of(text: &str) -> String {
        let encoded = text.lines().nth(1).expect("a line");
        String::from_utf8(STANDARD.decode(encoded).expect("base64")).expect("UTF-8")
    }

    #[test]
    fn the_vectors_of_the_standard_hold() {
        assert_eq!(
            hex::encode(hash(OBJECT, TIME, None)),
            "a11a32173aa35125aaefaad8854f2eda5a144268a4a355905c841f79ff44aa18"
        );
        let pk = keys(AGENT).public_key().to_hex();
        let sig = "c35062148d95b820068c18ab9cf69a8dd2322c606890366d084df7617570b96b\
                   7a1aca0a8fcabb2eb4032ebbdf5b43e6bf8633e0d85bcecce28a9e08705b875f";
        let text = armor(&format!(r#"{{"v":1,"pk":"{pk}","sig":"{sig}","t":1700000000}}"#));
        let envelope = Envelope::read(&text).expect("sound");
        assert!(envelope.is_of(OBJECT) && !envelope.is_of(b"other"));
        assert_eq!(envelope.armored().expect("text"), text);
    }

    #[test]
    fn an_owners_attestation_is_signed_along() {
        let agent = keys(AGENT);
        let tag = OwnerTag::issue(&keys(OWNER), &agent.public_key(), "").expect("attests");
        let text = Envelope::sign(&agent, OBJECT, TIME, Some(&tag)).armored().expect("text");
        let envelope = Envelope::read(&text).expect("sound");
        assert!(envelope.is_of(OBJECT));
        envelope.owner().expect("an owner").verify(&agent.public_key()).expect("attested");
        let stripped = Envelope { oa: None, ..envelope };
        assert!(!stripped.is_of(OBJECT), "the attestation cannot be taken away");
    }

    #[test]
    fn there_is_one_text_for_given_values() {
        let text = Envelope::sign(&keys(AGENT), OBJECT, TIME, None).armored().expect("text");
        let json = json_of(&text);
        assert!(Envelope::read(text.trim_end()).is_some(), "git may cut the last line feed");
        for wrong in [
            armor(&json.replace(',', ", ")),
            armor(&json.replace("\"v\":1", "\"v\":2")),
            armor(&json.replace("1700000000", "1.7e9")),
            armor(&json.replace("\"t\"", "\"x\":1,\"t\"")),
            armor(&json.replace("{\"v\":1,", "{\"v\":1,\"v\":1,")),
            armor(&json.replace("f9308a", "F9308A")),
            armor(&format!("{json}{}", " ".repeat(JSON_MAX_BYTES))),
            armor(&json.replace("\"t\":1700000000", "\"t\":1700000000,\"oa\":[\"a\"]")),
            text.replace('\n', "\r\n"),
            format!("{text}{text}"),
            format!("x{text}"),
            text.replace("END", "BEGIN"),
            armor("not json"),
        ] {
            assert_eq!(Envelope::read(&wrong), None, "{wrong}");
        }
        let own = OwnerTag::issue(&keys(OWNER), &keys(AGENT).public_key(), "").expect("attests");
        let own = OwnerTag { owner: keys(AGENT).public_key(), ..own };
        let text = Envelope::sign(&keys(AGENT), OBJECT, TIME, Some(&own)).armored().expect("text");
        assert_eq!(Envelope::read(&text), None, "nobody attests himself");
    }
}
