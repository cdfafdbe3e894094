//! The fixed-size values of an event: public keys, event ids and signatures, written as lower-case hex.

use std::fmt;
use std::str::FromStr;

use nostr::nips::nip19::{FromBech32, ToBech32};
use serde::{de, Deserialize, Deserializer, Serialize, Serializer};

/// Text that is not the hex of a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} must be {digits} hex digits, got {got:?}; give the whole value")]
pub struct HexError {
    /// What the text should have been.
    pub what: &'static str,
    /// How many digits that takes.
    pub digits: usize,
    /// The text, shortened to what an error can show.
    pub got: String,
}

/// How much of a wrong text an error repeats, in characters.
const SHOWN_CHARS: usize = 80;

fn parse<const N: usize>(what: &'static str, text: &str) -> Result<[u8; N], HexError> {
    let mut bytes = [0; N];
    hex::decode_to_slice(text, &mut bytes).map(|()| bytes).map_err(|_| HexError {
        what,
        digits: N * 2,
        got: text.chars().take(SHOWN_CHARS).collect(),
    })
}

macro_rules! hex_value {
    ($(#[$doc:meta])* $name:ident, $bytes:literal, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; $bytes]);

        impl $name {
            /// The value with these bytes.
            pub const fn from_bytes(bytes: [u8; $bytes]) -> Self {
                Self(bytes)
            }

            /// The bytes.
            pub const fn as_bytes(&self) -> &[u8; $bytes] {
                &self.0
            }

            /// The value in lower-case hex.
            pub fn to_hex(&self) -> String {
                hex::encode(self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut text = [0; $bytes * 2];
                hex::encode_to_slice(self.0, &mut text).map_err(|_| fmt::Error)?;
                f.pad(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = HexError;

            /// Reads full-length hex of either case.
            fn from_str(text: &str) -> Result<Self, HexError> {
                parse($what, text).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl de::Visitor<'_> for Text {
                    type Value = $name;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(concat!($what, " in hex"))
                    }

                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }
    };
}

hex_value! {
    /// An x-only public key (BIP-340): who signed, or whom a tag names.
    PublicKey, 32, "a public key"
}

hex_value! {
    /// The SHA-256 of an event's canonical form.
    EventId, 32, "an event id"
}

hex_value! {
    /// A BIP-340 signature over the bytes of an event's id.
    Signature, 64, "a signature"
}

impl PublicKey {
    /// Reads 64 hex digits of either case, or an `npub1...` text.
    pub fn parse(text: &str) -> Result<Self, HexError> {
        text.parse().or_else(|error| Self::from_npub(text).ok_or(error))
    }

    /// Reads an `npub1...` text, and nothing else.
    pub fn from_npub(text: &str) -> Option<Self> {
        nostr::key::PublicKey::from_bech32(text).ok().map(|key| Self(key.to_bytes()))
    }

    /// The key as an `npub1...` text.
    pub fn to_npub(&self) -> String {
        let Ok(text) = nostr::key::PublicKey::from_byte_array(self.0).to_bech32();
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";

    #[test]
    fn a_key_reads_hex_of_either_case_and_npub_and_prints_lower_case() {
        let key: PublicKey = ONE.to_uppercase().parse().unwrap();
        assert_eq!(key.to_string(), ONE);
        assert_eq!(PublicKey::parse(&key.to_npub()), Ok(key));
        assert!(key.to_npub().starts_with("npub1"));
    }

    #[test]
    fn a_wrong_text_is_named_with_what_it_should_be() {
        let error = "abc".parse::<EventId>().unwrap_err().to_string();
        assert_eq!(error, "an event id must be 64 hex digits, got \"abc\"; give the whole value");
        assert!(PublicKey::parse("npub1qqqq").is_err());
    }

    #[test]
    fn a_value_is_a_hex_string_in_json() {
        let id: EventId = serde_json::from_str(&format!("\"{ONE}\"")).unwrap();
        assert_eq!(serde_json::to_string(&id).unwrap(), format!("\"{ONE}\""));
        assert!(serde_json::from_str::<EventId>("\"00\"").is_err());
        assert!(serde_json::from_str::<EventId>("7").is_err());
    }
}
