//! Coordinates: how an `a` tag names an addressable event, whatever its version.

use std::fmt;
use std::str::FromStr;

use crate::event::Event;
use crate::filter::Filter;
use crate::id::PublicKey;

/// `kind:pubkey:identifier`. The identifier may hold colons.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Coordinate {
    /// The kind.
    pub kind: u16,
    /// The author.
    pub pubkey: PublicKey,
    /// The `d` value; empty for a replaceable event.
    pub identifier: String,
}

/// A text that is no coordinate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not kind:pubkey:identifier with a kind from 0 to 65535 and a key of 64 lower-case hex digits"
)]
pub struct CoordinateError(String);

impl Coordinate {
    /// The coordinate of what an author keeps under an identifier.
    pub fn new(kind: u16, pubkey: PublicKey, identifier: impl Into<String>) -> Self {
        Self { kind, pubkey, identifier: identifier.into() }
    }

    /// What asks a relay for the versions.
    pub fn filter(&self) -> Filter {
        Filter::new().kinds([self.kind]).authors([self.pubkey]).tag('d', [&self.identifier])
    }

    /// The coordinate of an event.
    pub fn of(event: &Event) -> Self {
        Self { kind: event.kind, pubkey: event.pubkey, identifier: event.identifier().to_owned() }
    }
}

impl fmt::Display for Coordinate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.kind, self.pubkey, self.identifier)
    }
}

impl FromStr for Coordinate {
    type Err = CoordinateError;

    /// Reads the one written form of a coordinate: readers compare these texts byte by byte.
    fn from_str(text: &str) -> Result<Self, CoordinateError> {
        let read = || {
            let (kind, rest) = text.split_once(':')?;
            let (pubkey, identifier) = rest.split_once(':')?;
            Some(Self {
                kind: kind.parse().ok()?,
                pubkey: pubkey.parse().ok()?,
                identifier: identifier.to_owned(),
            })
        };
        read()
            .filter(|coordinate| coordinate.to_string() == text)
            .ok_or_else(|| CoordinateError(text.chars().take(160).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coordinate_is_split_at_its_first_two_colons() {
        let key = "a".repeat(64);
        let text = format!("30617:{key}:b:c");
        let read: Coordinate = text.parse().unwrap();
        assert_eq!((read.kind, read.identifier.as_str()), (30617, "b:c"));
        assert_eq!(read.to_string(), text);
        assert_eq!(format!("0:{key}:").parse::<Coordinate>().unwrap().identifier, "");
    }

    #[test]
    fn another_form_is_refused() {
        let key = "a".repeat(64);
        for text in [
            "".to_owned(),
            key.clone(),
            format!("30617:{key}"),
            format!("30617:{}:x", "A".repeat(64)),
            format!("30617:{}:x", &key[1..]),
            format!("030617:{key}:x"),
            format!("+30617:{key}:x"),
            format!("65536:{key}:x"),
        ] {
            assert!(text.parse::<Coordinate>().is_err(), "{text}");
        }
    }
}
