//! Coordinates as `naddr1...` texts (NIP-19), for people to pass on.

use nostr::nips::nip01;
use nostr::nips::nip19::{FromBech32, Nip19Coordinate, ToBech32};

use crate::coordinate::Coordinate;
use crate::id::PublicKey;

/// Why there is no coordinate, or no text of one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NaddrError {
    /// The text is none.
    #[error("{0:?} is not an naddr1... text (NIP-19)")]
    Text(String),
    /// The identifier does not fit.
    #[error("an identifier of {0} bytes does not fit an naddr1... text, at most 255 do")]
    Identifier(usize),
}

/// How much of a wrong text an error repeats, in characters.
const SHOWN_CHARS: usize = 80;

/// The text of a coordinate, without relays.
pub fn encode(coordinate: &Coordinate) -> Result<String, NaddrError> {
    let Coordinate { kind, pubkey, identifier } = coordinate;
    let coordinate = nip01::Coordinate {
        kind: (*kind).into(),
        public_key: nostr::key::PublicKey::from_byte_array(*pubkey.as_bytes()),
        identifier: identifier.clone(),
    };
    let text = Nip19Coordinate::new(coordinate, []).to_bech32();
    text.map_err(|_| NaddrError::Identifier(identifier.len()))
}

/// Reads a text. The relays that it may name are passed over.
pub fn decode(text: &str) -> Result<Coordinate, NaddrError> {
    let found = Nip19Coordinate::from_bech32(text)
        .map_err(|_| NaddrError::Text(text.chars().take(SHOWN_CHARS).collect()))?;
    let nip01::Coordinate { kind, public_key, identifier } = found.coordinate;
    Ok(Coordinate::new(kind.as_u16(), PublicKey::from_bytes(public_key.to_bytes()), identifier))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Keys;

    #[test]
    fn a_known_text_is_the_known_coordinate() {
        let key = "787338757fc25d65cd929394d5e7713cf43638e8d259e8dcf5c73b834eb851f2".parse().unwrap();
        let known = "naddr1qqxnzd3exgersv33xymnsve3qgs8suecw4luyht9ekff89x4uacneapk8r5dyk0gmn6uwwurf6u9rusrqsqqqa282m3gxt";
        let coordinate = Coordinate::new(30_023, key, "1692282117831");
        assert_eq!(decode(known), Ok(coordinate.clone()));
        assert_eq!(encode(&coordinate).as_deref(), Ok(known));
    }

    #[test]
    fn a_coordinate_with_colons_survives_its_text() {
        let coordinate = Coordinate::new(30_023, Keys::generate().public_key(), "a:b");
        assert_eq!(decode(&encode(&coordinate).unwrap()), Ok(coordinate));
    }

    #[test]
    fn what_is_none_is_refused_and_shown() {
        for text in ["", "naddr1qqqq", &Keys::generate().public_key().to_npub()] {
            assert_eq!(decode(text), Err(NaddrError::Text(text.to_owned())));
        }
        let long = Coordinate::new(1, Keys::generate().public_key(), "x".repeat(256));
        assert_eq!(encode(&long), Err(NaddrError::Identifier(256)));
    }
}
