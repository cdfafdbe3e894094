//! Request evidence: the exact bytes of a model request, kept as what they share with the session's
//! previous request and what is new, so that the log grows with what was said and not with its square.
//!
//! To read a request back needs the evidence records of the session alone: no encoder, no history.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::rope::{Body, Chunk, Rope};

/// One piece of a request, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Piece {
    /// Bytes `offset..offset + len` of the session's previous request.
    Same(u64, u64),
    /// The next `len` bytes of the record's raw part.
    New(u64),
}

/// What a record keeps of a request; the new bytes are the record's raw part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Length of the whole request in bytes.
    pub len: u64,
    /// SHA-256 of the whole request, in hex.
    pub sha256: String,
    /// How to put it together.
    pub pieces: Vec<Piece>,
}

/// Why evidence cannot be read back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvidenceError {
    /// A piece points outside of what is there.
    #[error("piece {index} of the request evidence asks for bytes {from}..{to} of {there}: the record or the one before it was changed")]
    OutOfRange {
        /// Which piece, from 0.
        index: usize,
        /// First byte asked for.
        from: u64,
        /// End of the range asked for.
        to: u64,
        /// How many bytes there are.
        there: usize,
    },
    /// The bytes do not have the hash that was recorded.
    #[error("the request read back from its evidence has sha256 {found}, recorded was {recorded}: the record or one before it was changed")]
    WrongHash {
        /// What the bytes hash to.
        found: String,
        /// What the record says.
        recorded: String,
    },
}

/// Splits `body` into what `previous` holds already and what is new.
pub fn describe(previous: &Rope, body: &Body) -> (Evidence, Vec<u8>) {
    let mut pieces = Pieces::default();
    let (shared, shared_bytes) = body.rope.shared_front(previous);
    if shared > 0 {
        pieces.same(0, shared_bytes as u64);
    }
    let mut cursor = Cursor { previous, next: shared, offset: shared_bytes as u64 };
    let last = body.rope.chunk_count().saturating_sub(1);
    for (index, chunk) in (shared..).zip(body.rope.chunks_from(shared)) {
        let found =
            cursor.find(chunk).or_else(|| (index == last).then(|| same_tail(previous, chunk)).flatten());
        match found {
            Some(offset) => pieces.same(offset, chunk.len() as u64),
            None => pieces.fresh(chunk),
        }
    }
    let evidence =
        Evidence { len: body.rope.len() as u64, sha256: hex::encode(body.sha256), pieces: pieces.list };
    (evidence, pieces.raw)
}

/// Puts a request together again and checks its hash.
pub fn rebuild(previous: &[u8], evidence: &Evidence, raw: &[u8]) -> Result<Vec<u8>, EvidenceError> {
    let mut out =
        Vec::with_capacity(usize::try_from(evidence.len).unwrap_or(0).min(raw.len() + previous.len()));
    let mut at = 0;
    for (index, piece) in evidence.pieces.iter().enumerate() {
        let (source, from, len) = match *piece {
            Piece::Same(offset, len) => (previous, offset, len),
            Piece::New(len) => (raw, at, len),
        };
        let to = from.saturating_add(len);
        let range = usize::try_from(from).unwrap_or(usize::MAX)..usize::try_from(to).unwrap_or(usize::MAX);
        let bytes =
            source.get(range).ok_or(EvidenceError::OutOfRange { index, from, to, there: source.len() })?;
        out.extend_from_slice(bytes);
        if matches!(piece, Piece::New(_)) {
            at = to;
        }
    }
    let found = hex::encode(Sha256::digest(&out));
    if found != evidence.sha256 {
        return Err(EvidenceError::WrongHash { found, recorded: evidence.sha256.clone() });
    }
    Ok(out)
}

/// The end of a body (model, tools, options) is encoded anew each round, mostly to the same bytes.
fn same_tail(previous: &Rope, chunk: &Chunk) -> Option<u64> {
    let last = previous.chunk(previous.chunk_count().checked_sub(1)?)?;
    (last == chunk).then(|| (previous.len() - last.len()) as u64)
}

/// Walks the previous request's chunks in step with the new one's.
struct Cursor<'a> {
    previous: &'a Rope,
    next: usize,
    offset: u64,
}

impl Cursor<'_> {
    /// Where `chunk` lies in the previous request, by identity, looking onward from the last find first.
    fn find(&mut self, chunk: &Chunk) -> Option<u64> {
        let mut offset = self.offset;
        for (index, candidate) in (self.next..).zip(self.previous.chunks_from(self.next)) {
            if Arc::ptr_eq(candidate, chunk) {
                self.next = index + 1;
                self.offset = offset + chunk.len() as u64;
                return Some(offset);
            }
            offset += candidate.len() as u64;
        }
        None
    }
}

/// Joins neighbouring pieces as they come.
#[derive(Default)]
struct Pieces {
    list: Vec<Piece>,
    raw: Vec<u8>,
}

impl Pieces {
    fn same(&mut self, offset: u64, len: u64) {
        match self.list.last_mut() {
            Some(Piece::Same(o, l)) if *o + *l == offset => *l += len,
            _ => self.list.push(Piece::Same(offset, len)),
        }
    }

    fn fresh(&mut self, bytes: &[u8]) {
        self.raw.extend_from_slice(bytes);
        match self.list.last_mut() {
            Some(Piece::New(len)) => *len += bytes.len() as u64,
            _ => self.list.push(Piece::New(bytes.len() as u64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(text: &str) -> Chunk {
        Arc::from(text.as_bytes())
    }

    fn body(chunks: &[&Chunk]) -> Body {
        let mut hashed = crate::rope::HashedRope::default();
        chunks.iter().for_each(|c| hashed.push((*c).clone()));
        hashed.finish()
    }

    #[test]
    fn a_request_is_read_back_from_what_is_shared_and_what_is_new() {
        let (head, one, two, tail) = (chunk("{["), chunk("one,"), chunk("two"), chunk("]}"));
        let first = body(&[&head, &one, &tail]);
        let second = body(&[&head, &one, &two, &chunk("]}")]);
        let (evidence, raw) = describe(&first.rope, &second);
        assert_eq!(evidence.pieces, [Piece::Same(0, 6), Piece::New(3), Piece::Same(6, 2)]);
        assert_eq!(raw, b"two");
        let back = rebuild(&first.rope.to_vec(), &evidence, &raw).expect("whole");
        assert_eq!(back, second.rope.to_vec());
    }

    #[test]
    fn a_dropped_front_costs_nothing_new() {
        let (head, one, two, tail) = (chunk("{["), chunk("one,"), chunk("two"), chunk("]}"));
        let (evidence, raw) = describe(&body(&[&head, &one, &two, &tail]).rope, &body(&[&head, &two, &tail]));
        assert_eq!(evidence.pieces, [Piece::Same(0, 2), Piece::Same(6, 5)]);
        assert!(raw.is_empty());
    }

    #[test]
    fn a_long_request_is_described_as_by_its_chunks_one_by_one() {
        let chunks: Vec<Chunk> = (0..1000).map(|n| chunk(&format!("{n},"))).collect();
        for (kept, dropped) in
            [(1000, 0), (900, 0), (130, 0), (64, 0), (63, 0), (700, 1), (700, 64), (700, 300)]
        {
            let first: Vec<&Chunk> = chunks[..kept].iter().collect();
            let (first, new) = (body(&first), chunk("new"));
            let second: Vec<&Chunk> = chunks[dropped..kept].iter().chain([&new]).collect();
            let mut hashed = first.rope.clone();
            // One that goes on from the first, and one that shares nothing but the chunks.
            hashed.push(new.clone());
            let onward = Body {
                rope: hashed,
                sha256: body(&chunks[..kept].iter().chain([&new]).collect::<Vec<_>>()).sha256,
            };
            for second in [body(&second), onward] {
                let (evidence, raw) = describe(&first.rope, &second);
                assert_eq!(raw, b"new", "kept {kept}, dropped {dropped}");
                assert!(evidence.pieces.len() == 2, "{:?}", evidence.pieces);
                let back = rebuild(&first.rope.to_vec(), &evidence, &raw).expect("whole");
                assert_eq!(back, second.rope.to_vec());
            }
        }
    }

    #[test]
    fn a_changed_byte_is_found() {
        let (evidence, mut raw) = describe(&Rope::default(), &body(&[&chunk("abc")]));
        raw[1] ^= 1;
        assert!(matches!(rebuild(b"", &evidence, &raw), Err(EvidenceError::WrongHash { .. })));
    }

    #[test]
    fn a_piece_outside_of_the_previous_request_is_named() {
        let evidence = Evidence { len: 9, sha256: String::new(), pieces: vec![Piece::Same(1, u64::MAX)] };
        assert!(matches!(rebuild(b"abc", &evidence, b""), Err(EvidenceError::OutOfRange { index: 0, .. })));
    }
}
