//! Request bodies as shared chunks: a round adds what is new, and nothing copies or hashes the rest again.

use std::sync::Arc;

use sha2::{Digest, Sha256};

/// One piece of a body. Chunks are shared between the requests of a session, so that two requests can be
/// compared by identity.
pub type Chunk = Arc<[u8]>;

/// How many chunks make a block, which ropes share as a whole.
const BLOCK_CHUNKS: usize = 64;

/// A sequence of bytes made of shared chunks. What a clone costs is a small part of their number.
#[derive(Clone, Debug, Default)]
pub struct Rope {
    blocks: Vec<Arc<Block>>,
    /// The chunks after the last block, fewer than a block has.
    loose: Vec<Chunk>,
    len: usize,
}

/// Exactly [`BLOCK_CHUNKS`] chunks.
#[derive(Debug)]
struct Block {
    chunks: Vec<Chunk>,
    len: usize,
}

impl Rope {
    /// Appends a chunk; an empty one is left out.
    pub fn push(&mut self, chunk: Chunk) {
        if chunk.is_empty() {
            return;
        }
        self.len += chunk.len();
        self.loose.push(chunk);
        if self.loose.len() == BLOCK_CHUNKS {
            let chunks = std::mem::take(&mut self.loose);
            let len = chunks.iter().map(|chunk| chunk.len()).sum();
            self.blocks.push(Arc::new(Block { chunks, len }));
        }
    }

    /// The chunk at `index`, from 0; none is empty.
    pub fn chunk(&self, index: usize) -> Option<&Chunk> {
        let in_blocks = self.blocks.len() * BLOCK_CHUNKS;
        match index.checked_sub(in_blocks) {
            Some(index) => self.loose.get(index),
            None => self.blocks[index / BLOCK_CHUNKS].chunks.get(index % BLOCK_CHUNKS),
        }
    }

    /// How many chunks there are.
    pub fn chunk_count(&self) -> usize {
        self.blocks.len() * BLOCK_CHUNKS + self.loose.len()
    }

    /// The chunks in order, from `first` on.
    pub fn chunks_from(&self, first: usize) -> impl Iterator<Item = &Chunk> {
        (first..self.chunk_count()).filter_map(|index| self.chunk(index))
    }

    /// How many leading chunks are known to be shared with `other` without looking at each, and their bytes.
    pub fn shared_front(&self, other: &Rope) -> (usize, usize) {
        let pairs = self.blocks.iter().zip(&other.blocks);
        let shared = pairs.take_while(|(ours, theirs)| Arc::ptr_eq(ours, theirs));
        shared.fold((0, 0), |(chunks, bytes), (block, _)| (chunks + BLOCK_CHUNKS, bytes + block.len))
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len);
        self.chunks_from(0).for_each(|chunk| bytes.extend_from_slice(chunk));
        bytes
    }
}

impl FromIterator<Chunk> for Rope {
    fn from_iter<I: IntoIterator<Item = Chunk>>(chunks: I) -> Rope {
        let mut rope = Rope::default();
        chunks.into_iter().for_each(|chunk| rope.push(chunk));
        rope
    }
}

/// The body of one model request with the hash of its bytes.
#[derive(Clone, Debug)]
pub struct Body {
    /// The bytes.
    pub rope: Rope,
    /// SHA-256 of the bytes.
    pub sha256: [u8; 32],
}

/// A rope with the running hash of what it holds: appending costs what is appended.
#[derive(Clone, Debug, Default)]
pub(crate) struct HashedRope {
    rope: Rope,
    hash: Sha256,
}

impl HashedRope {
    pub(crate) fn push(&mut self, chunk: Chunk) {
        self.hash.update(&chunk);
        self.rope.push(chunk);
    }

    pub(crate) fn len(&self) -> usize {
        self.rope.len()
    }

    pub(crate) fn finish(self) -> Body {
        Body { rope: self.rope, sha256: self.hash.finalize().into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rope(chunks: usize) -> Rope {
        (0..chunks).map(|n| Chunk::from(n.to_string().into_bytes())).collect()
    }

    #[test]
    fn a_rope_holds_its_chunks_in_order_over_many_blocks() {
        for chunks in [0, 1, BLOCK_CHUNKS - 1, BLOCK_CHUNKS, BLOCK_CHUNKS + 1, 5 * BLOCK_CHUNKS + 7] {
            let rope = rope(chunks);
            let wanted: String = (0..chunks).map(|n| n.to_string()).collect();
            assert_eq!(String::from_utf8(rope.to_vec()).expect("digits"), wanted);
            assert_eq!((rope.len(), rope.chunk_count()), (wanted.len(), chunks));
            assert!(rope.chunk(chunks).is_none());
            assert!(rope.chunks_from(chunks + 1).next().is_none());
            assert_eq!(rope.chunks_from(chunks / 2).count(), chunks - chunks / 2);
        }
    }

    #[test]
    fn clones_share_their_whole_blocks_and_no_more() {
        let first = rope(3 * BLOCK_CHUNKS + 5);
        let mut second = first.clone();
        second.push(Chunk::from(&b"more"[..]));
        let bytes = first.chunks_from(0).take(3 * BLOCK_CHUNKS).map(|chunk| chunk.len()).sum();
        assert_eq!(second.shared_front(&first), (3 * BLOCK_CHUNKS, bytes));
        assert_eq!(first.shared_front(&rope(3 * BLOCK_CHUNKS + 5)), (0, 0), "equal bytes are not enough");
    }
}
