//! What goes into a log and what comes out of it, with the limits on both.

use std::fmt;

use serde::{de, Deserialize, Deserializer, Serialize, Serializer};

use crate::error::LogError;

/// The largest body (head and raw bytes together) that a record may have.
pub const MAX_BODY_BYTES: usize = 256 << 20;
/// The longest stream name.
pub const MAX_STREAM_BYTES: usize = 512;
/// The longest kind name.
pub const MAX_KIND_BYTES: usize = 128;

/// A record as the caller gives it. The log adds its position and its place in the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRecord {
    /// The stream it belongs to: 1 to [`MAX_STREAM_BYTES`] bytes, none of them NUL.
    pub stream: String,
    /// What kind of record it is: 1 to [`MAX_KIND_BYTES`] bytes.
    pub kind: String,
    /// The version of that kind.
    pub version: u16,
    /// When it happened, in milliseconds since 1970, by the caller's clock.
    pub time_ms: u64,
    /// A small JSON text for what is typed. The log does not look inside.
    pub head: Vec<u8>,
    /// The bytes that must stay exact.
    pub raw: Vec<u8>,
}

impl NewRecord {
    /// Refuses what the log could not keep or find again.
    pub(crate) fn check(&self) -> Result<(), LogError> {
        check_name("stream", &self.stream, MAX_STREAM_BYTES)?;
        check_name("kind", &self.kind, MAX_KIND_BYTES)?;
        let body_bytes = self.head.len().saturating_add(self.raw.len());
        if body_bytes > MAX_BODY_BYTES {
            return Err(LogError::TooLarge {
                what: "body of a record",
                bytes: body_bytes as u64,
                limit_bytes: MAX_BODY_BYTES as u64,
            });
        }
        Ok(())
    }
}

fn check_name(what: &'static str, name: &str, limit_bytes: usize) -> Result<(), LogError> {
    // NUL ends the stream's name in the index key.
    if name.is_empty() || name.len() > limit_bytes || name.contains('\0') {
        let shown: String = name.chars().take(40).collect();
        return Err(LogError::BadName { what, name: shown, bytes: name.len(), limit_bytes });
    }
    Ok(())
}

/// Where a record stands. Both numbers count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Position {
    /// The record's number in the whole log.
    pub global: u64,
    /// The record's number in its stream.
    pub sequence: u64,
}

/// A record as the log gives it back, its hashes checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Where it stands.
    pub position: Position,
    /// The stream it belongs to.
    pub stream: String,
    /// What kind of record it is.
    pub kind: String,
    /// The version of that kind.
    pub version: u16,
    /// When it happened, in milliseconds since 1970.
    pub time_ms: u64,
    /// The JSON text, byte for byte as it was appended.
    pub head: Vec<u8>,
    /// The raw bytes, as they were appended.
    pub raw: Vec<u8>,
    /// The hash of the record before this one in the whole log; zeros for the first.
    pub previous: Hash,
    /// The hash of this record's frame, which covers the body by the body's own hash.
    pub hash: Hash,
}

/// What a log holds of one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamInfo {
    /// The stream's name.
    pub stream: String,
    /// How many records it has.
    pub records: u64,
    /// The time of its first record, in milliseconds since 1970.
    pub first_ms: u64,
    /// The time of its last record.
    pub last_ms: u64,
    /// The global number of its first record.
    pub first_global: u64,
    /// The global number of its last record.
    pub last_global: u64,
}

/// A SHA-256 hash. Shown and serialized as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// What stands before the first record of a log.
    pub const ZERO: Hash = Hash([0; 32]);
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({self})")
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Hash, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut bytes = [0; 32];
        hex::decode_to_slice(&text, &mut bytes)
            .map_err(|error| de::Error::custom(format!("not a hash of 64 hexadecimal digits: {error}")))?;
        Ok(Hash(bytes))
    }
}
