//! The frame: the part of a record that the hash chain runs over.
//!
//! A frame names everything about a record except its body, for which it carries a hash and two
//! lengths. So a body can be compressed, sealed or deleted later and the chain stays whole.

use bincode::Options as _;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::record::{Hash, NewRecord, Position, MAX_KIND_BYTES, MAX_STREAM_BYTES};

/// The version of the frame and of everything else that this build writes to disk.
pub const FORMAT_VERSION: u16 = 1;

/// The most bytes an encoded frame may have: both names at their limits, and the fixed fields.
pub(crate) const MAX_FRAME_BYTES: usize = MAX_STREAM_BYTES + MAX_KIND_BYTES + 256;

/// The fields in the order in which they are hashed. Adding, removing or reordering any of them
/// is a new format version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Frame {
    pub(crate) format: u16,
    pub(crate) stream: String,
    pub(crate) sequence: u64,
    pub(crate) global: u64,
    pub(crate) time_ms: u64,
    pub(crate) kind: String,
    pub(crate) version: u16,
    pub(crate) previous: [u8; 32],
    pub(crate) body: [u8; 32],
    pub(crate) head_bytes: u64,
    pub(crate) raw_bytes: u64,
}

impl Frame {
    /// The frame of `record` at `position`, chained to the frame with the hash `previous`.
    pub(crate) fn of(record: &NewRecord, position: Position, previous: Hash) -> Frame {
        Frame {
            format: FORMAT_VERSION,
            stream: record.stream.clone(),
            sequence: position.sequence,
            global: position.global,
            time_ms: record.time_ms,
            kind: record.kind.clone(),
            version: record.version,
            previous: previous.0,
            body: body_hash(&record.head, &record.raw).0,
            head_bytes: record.head.len() as u64,
            raw_bytes: record.raw.len() as u64,
        }
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>, String> {
        codec().serialize(self).map_err(|error| format!("the frame cannot be encoded: {error}"))
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Frame, String> {
        let frame: Frame =
            codec().deserialize(bytes).map_err(|error| format!("the frame cannot be decoded: {error}"))?;
        if frame.format > FORMAT_VERSION {
            return Err(format!(
                "the frame has format version {}, this build knows up to {FORMAT_VERSION}",
                frame.format
            ));
        }
        Ok(frame)
    }
}

fn codec() -> impl bincode::Options {
    bincode::options().with_limit(MAX_FRAME_BYTES as u64).with_fixint_encoding()
}

/// The hash that the next frame carries as its `previous`.
pub(crate) fn frame_hash(encoded: &[u8]) -> Hash {
    Hash(Sha256::digest(encoded).into())
}

/// The hash of a body as it was appended, however it is kept. The lengths come first, so that no
/// byte can move from the head to the raw part unnoticed.
pub(crate) fn body_hash(head: &[u8], raw: &[u8]) -> Hash {
    let mut hasher = Sha256::new();
    hasher.update((head.len() as u64).to_le_bytes());
    hasher.update((raw.len() as u64).to_le_bytes());
    hasher.update(head);
    hasher.update(raw);
    Hash(hasher.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn longest() -> NewRecord {
        NewRecord {
            stream: "s".repeat(MAX_STREAM_BYTES),
            kind: "k".repeat(MAX_KIND_BYTES),
            version: u16::MAX,
            time_ms: u64::MAX,
            head: b"{}".to_vec(),
            raw: b"raw".to_vec(),
        }
    }

    #[test]
    fn a_frame_with_the_longest_names_fits_the_limit() {
        let position = Position { global: u64::MAX, sequence: u64::MAX };
        let frame = Frame::of(&longest(), position, Hash([9; 32]));
        let encoded = frame.encode().expect("encode");
        assert_eq!(Frame::decode(&encoded).expect("decode"), frame);
    }

    #[test]
    fn a_byte_that_moves_from_head_to_raw_changes_the_body_hash() {
        assert_ne!(body_hash(b"ab", b"c"), body_hash(b"a", b"bc"));
    }

    #[test]
    fn a_frame_of_a_newer_format_is_refused() {
        let position = Position { global: 1, sequence: 1 };
        let mut frame = Frame::of(&longest(), position, Hash::ZERO);
        frame.format = FORMAT_VERSION + 1;
        let error = Frame::decode(&frame.encode().expect("encode")).expect_err("refused");
        assert!(error.contains("format version 2"), "{error}");
    }
}
