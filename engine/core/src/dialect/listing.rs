//! A JSON list that grows by a chunk per history item and is hashed as it grows.

use std::collections::BTreeMap;

use crate::rope::{Chunk, HashedRope};

/// The list with what stands before it.
#[derive(Clone, Debug)]
pub(super) struct Listing {
    head: Chunk,
    comma: Chunk,
    /// Whether the head ends in an element already.
    follows: bool,
    items: Vec<Chunk>,
    /// Items that are rendered in another form for now.
    variants: BTreeMap<usize, Chunk>,
    encoded: HashedRope,
}

impl Listing {
    /// An empty list after `head`, which ends in an element if `follows`.
    pub(super) fn new(head: Vec<u8>, follows: bool) -> Listing {
        let head = Chunk::from(head);
        let mut encoded = HashedRope::default();
        encoded.push(head.clone());
        let comma = Chunk::from(&b","[..]);
        Listing { head, comma, follows, items: Vec::new(), variants: BTreeMap::new(), encoded }
    }

    /// Appends the elements of one item, joined by commas; none at all is fine.
    pub(super) fn push(&mut self, item: Vec<u8>) {
        let chunk = Chunk::from(item);
        self.items.push(chunk.clone());
        self.render(&chunk);
    }

    fn render(&mut self, chunk: &Chunk) {
        if chunk.is_empty() {
            return;
        }
        if self.follows || self.encoded.len() > self.head.len() {
            self.encoded.push(self.comma.clone());
        }
        self.encoded.push(chunk.clone());
    }

    /// Renders some items in another form until told otherwise.
    pub(super) fn vary(&mut self, variants: BTreeMap<usize, Chunk>) {
        self.variants = variants;
        self.again();
    }

    /// Forgets the `count` oldest items, and every variant.
    pub(super) fn drop_front(&mut self, count: usize) {
        self.items.drain(..count.min(self.items.len()));
        self.variants.clear();
        self.again();
    }

    fn again(&mut self) {
        self.encoded = HashedRope::default();
        self.encoded.push(self.head.clone());
        for (index, item) in std::mem::take(&mut self.items).into_iter().enumerate() {
            let shown = self.variants.get(&index).unwrap_or(&item).clone();
            self.render(&shown);
            self.items.push(item);
        }
    }

    /// How many items there are.
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// Head and list so far, to be closed by the caller.
    pub(super) fn open(&self) -> HashedRope {
        self.encoded.clone()
    }
}
