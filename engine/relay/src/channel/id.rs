//! A channel's id.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A channel's id: a UUID.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ChannelId([u8; 16]);

/// A text that is no UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a channel id must be a UUID of the form 8-4-4-4-12 hex digits")]
pub struct ChannelIdError;

/// Where the hyphens of a UUID are.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];
const TEXT_LENGTH: usize = 36;

impl ChannelId {
    /// The id with these bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// A UUID of version 4 made of these random bytes.
    pub fn from_random(mut bytes: [u8; 16]) -> Self {
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        Self(bytes)
    }
}

impl FromStr for ChannelId {
    type Err = ChannelIdError;

    /// Reads a UUID of either case, with its hyphens or without.
    fn from_str(text: &str) -> Result<Self, ChannelIdError> {
        let hyphenated = text.len() == TEXT_LENGTH && HYPHENS.iter().all(|at| text.as_bytes()[*at] == b'-');
        let digits = if hyphenated { text.replace('-', "") } else { text.to_owned() };
        let mut bytes = [0; 16];
        hex::decode_to_slice(digits, &mut bytes).map(|()| Self(bytes)).map_err(|_| ChannelIdError)
    }
}

impl fmt::Display for ChannelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = hex::encode(self.0);
        let [a, b, c, d] = HYPHENS.map(|at| at);
        let at = |from: usize, to: usize, hyphens: usize| &digits[from - hyphens..to - hyphens];
        write!(
            f,
            "{}-{}-{}-{}-{}",
            at(0, a, 0),
            at(a + 1, b, 1),
            at(b + 1, c, 2),
            at(c + 1, d, 3),
            &digits[20..]
        )
    }
}

impl fmt::Debug for ChannelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_survives_its_text_in_lower_case() {
        let text = "01234567-89AB-4def-8123-456789abcdef";
        let id: ChannelId = text.parse().unwrap();
        assert_eq!(id.to_string(), text.to_lowercase());
        assert!("nonsense".parse::<ChannelId>().is_err());
        assert!("01234567-89AB-4def-8123-456789abcde".parse::<ChannelId>().is_err());
    }
}
