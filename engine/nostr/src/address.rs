//! Addresses of events that are replaced by newer ones: `kind:author:identifier`, and the same as `naddr1...`
//! (NIP-19).

use std::fmt;
use std::str::FromStr;

use nostr::nips::nip01;
use nostr::nips::nip19::{FromBech32, Nip19Coordinate, ToBech32};

use crate::event::Event;
use crate::filter::Filter;
use crate::id::PublicKey;

/// Where the newest version of something is found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Coordinate {
    /// The kind of its events.
    pub kind: u16,
    /// Whose it is.
    pub pubkey: PublicKey,
    /// Its `d` value.
    pub identifier: String,
}

/// A text that is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an address must be {wanted}, got {got:?}")]
pub struct AddressError {
    wanted: &'static str,
    got: String,
}

/// How much of a wrong text an error repeats, in characters.
const SHOWN_CHARS: usize = 80;

impl AddressError {
    fn new(wanted: &'static str, got: &str) -> Self {
        Self { wanted, got: got.chars().take(SHOWN_CHARS).collect() }
    }
}

impl Coordinate {
    /// An address.
    pub fn new(kind: u16, pubkey: PublicKey, identifier: impl Into<String>) -> Self {
        Self { kind, pubkey, identifier: identifier.into() }
    }

    /// The address that an event is a version of.
    pub fn of(event: &Event) -> Self {
        Self::new(event.kind, event.pubkey, event.identifier())
    }

    /// What asks a relay for the versions.
    pub fn filter(&self) -> Filter {
        Filter::new().kinds([self.kind]).authors([self.pubkey]).tag('d', [&self.identifier])
    }

    /// Reads an `naddr1...` text. The relays that it may name are passed over.
    pub fn from_naddr(text: &str) -> Result<Self, AddressError> {
        let found = Nip19Coordinate::from_bech32(text)
            .map_err(|_| AddressError::new("a naddr1... text (NIP-19)", text))?;
        let nip01::Coordinate { kind, public_key, identifier } = found.coordinate;
        Ok(Self::new(kind.as_u16(), PublicKey::from_bytes(public_key.to_bytes()), identifier))
    }

    /// The address as an `naddr1...` text without relays.
    pub fn to_naddr(&self) -> Result<String, AddressError> {
        let key = nostr::key::PublicKey::from_byte_array(*self.pubkey.as_bytes());
        let coordinate = nip01::Coordinate {
            kind: self.kind.into(),
            public_key: key,
            identifier: self.identifier.clone(),
        };
        Nip19Coordinate::new(coordinate, [])
            .to_bech32()
            .map_err(|_| AddressError::new("of at most 255 bytes of identifier", &self.identifier))
    }
}

impl fmt::Display for Coordinate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.kind, self.pubkey, self.identifier)
    }
}

impl FromStr for Coordinate {
    type Err = AddressError;

    /// Reads `kind:author:identifier`. The identifier may hold colons.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let mut parts = text.splitn(3, ':');
        let mut next = || parts.next();
        (|| Some(Self::new(next()?.parse().ok()?, next()?.parse().ok()?, next()?)))()
            .ok_or_else(|| AddressError::new("kind:author:identifier", text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Draft, Keys};

    #[test]
    fn an_address_survives_its_text_and_its_naddr() {
        let address = Coordinate::new(30_023, Keys::generate().public_key(), "a:b");
        assert_eq!(address.to_string().parse(), Ok(address.clone()));
        let naddr = address.to_naddr().unwrap();
        assert!(naddr.starts_with("naddr1"), "{naddr}");
        assert_eq!(Coordinate::from_naddr(&naddr), Ok(address));
    }

    #[test]
    fn a_known_naddr_is_the_known_address() {
        let key = "787338757fc25d65cd929394d5e7713cf43638e8d259e8dcf5c73b834eb851f2".parse().unwrap();
        let known = "naddr1qqxnzd3exgersv33xymnsve3qgs8suecw4luyht9ekff89x4uacneapk8r5dyk0gmn6uwwurf6u9rusrqsqqqa282m3gxt";
        let address = Coordinate::new(30_023, key, "1692282117831");
        assert_eq!(Coordinate::from_naddr(known), Ok(address.clone()));
        assert_eq!(address.to_naddr().as_deref(), Ok(known));
    }

    #[test]
    fn what_is_no_address_is_refused_and_shown() {
        for text in ["", "1", "1:x:y", "70000:79be:y", "x:y:z"] {
            let error = text.parse::<Coordinate>().unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
        let npub = Keys::generate().public_key().to_npub();
        for text in ["", "naddr1qqqq", &npub] {
            assert!(Coordinate::from_naddr(text).is_err(), "{text}");
        }
        assert!(Coordinate::new(1, Keys::generate().public_key(), "x".repeat(256)).to_naddr().is_err());
    }

    #[test]
    fn an_event_is_a_version_of_its_address() {
        let keys = Keys::generate();
        let event = keys.sign(Draft::new(30_023, "", 1).tag(["d", "plan"]));
        let address = Coordinate::of(&event);
        assert_eq!(address, Coordinate::new(30_023, keys.public_key(), "plan"));
        assert!(address.filter().matches(&event, None));
    }
}
