//! What readers and the holder of a log say to each other: length-prefixed bincode, with limits.

use std::io::{self, Read, Write};

use bincode::Options as _;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::damage::Damage;
use crate::record::{StreamInfo, MAX_BODY_BYTES};
use crate::view::{Query, PAGE};

/// The most bytes of a question.
pub(crate) const MAX_QUESTION_BYTES: u64 = 16 << 10;
/// The most bytes of an answer: a full page whose last record has the largest body.
pub(crate) const MAX_ANSWER_BYTES: u64 = MAX_BODY_BYTES as u64 + 2 * PAGE.bytes as u64;

/// What a reader asks.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Question {
    Damage,
    Streams,
    Page(Query),
    /// Whether the holder may append.
    Writes,
}

/// What the holder answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    Damage(Option<Damage>),
    Streams(Vec<StreamInfo>),
    Page(Vec<Vec<u8>>),
    Writes(bool),
    /// The question could not be answered, for this reason.
    Failed(String),
}

/// Writes one message.
pub(crate) fn send(to: &mut impl Write, message: &impl Serialize, limit_bytes: u64) -> io::Result<()> {
    let bytes = codec(limit_bytes).serialize(message).map_err(io::Error::other)?;
    to.write_all(&(bytes.len() as u64).to_le_bytes())?;
    to.write_all(&bytes)
}

/// Reads one message. The memory for it grows with what arrives, not with what is claimed.
pub(crate) fn receive<T: DeserializeOwned>(from: &mut impl Read, limit_bytes: u64) -> io::Result<T> {
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > limit_bytes {
        let text = format!("a message of {length} bytes, the limit is {limit_bytes}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let mut bytes = Vec::new();
    let _ = from.take(length).read_to_end(&mut bytes)?;
    codec(limit_bytes).deserialize(&bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn codec(limit_bytes: u64) -> impl bincode::Options {
    bincode::options().with_limit(limit_bytes).with_fixint_encoding()
}
