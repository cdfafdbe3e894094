//! Request bodies as shared chunks: a round adds what is new, and nothing copies or hashes the rest again.

use std::sync::Arc;

use sha2::{Digest, Sha256};

/// One piece of a body. Chunks are shared between the requests of a session, so that two requests can be
/// compared by identity.
pub type Chunk = Arc<[u8]>;

/// A sequence of bytes made of shared chunks.
#[derive(Clone, Debug, Default)]
pub struct Rope {
    chunks: Vec<Chunk>,
    len: usize,
}

impl Rope {
    /// Appends a chunk; an empty one is left out.
    pub fn push(&mut self, chunk: Chunk) {
        if !chunk.is_empty() {
            self.len += chunk.len();
            self.chunks.push(chunk);
        }
    }

    /// The chunks in order; none is empty.
    pub fn chunks(&self) -> &[Chunk] {
        &self.chunks
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
        self.chunks.concat()
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
