//! Blocks of index entries: many short keys in one value, each told by what it adds to the one before.

use crate::store::StoreError;

/// How many entries a block holds at most.
pub(super) const BLOCK_ENTRIES: usize = 64;

/// An index entry: its key, and whether it says that the key is there or that it is there no more.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) key: Vec<u8>,
    pub(super) is_alive: bool,
}

/// The bytes of some entries that are in order.
pub(super) fn encode(entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(entries.len() * 24);
    let mut last: &[u8] = &[];
    for Entry { key, is_alive } in entries {
        let shared = key.iter().zip(last).take_while(|(a, b)| a == b).count().min(usize::from(u8::MAX));
        let rest = &key[shared..];
        bytes.push(u8::from(*is_alive));
        bytes.push(shared as u8);
        bytes.extend_from_slice(&(rest.len() as u16).to_be_bytes());
        bytes.extend_from_slice(rest);
        last = key;
    }
    bytes
}

/// The entries of a block in their order.
pub(super) fn decode(mut bytes: &[u8]) -> Result<Vec<Entry>, StoreError> {
    let mut entries: Vec<Entry> = Vec::with_capacity(BLOCK_ENTRIES);
    while let [is_alive, shared, high, low, tail @ ..] = bytes {
        let rest = usize::from(u16::from_be_bytes([*high, *low]));
        let last = entries.last().map_or(&[][..], |entry| &entry.key);
        let (Some(head), Some((rest, after))) =
            (last.get(..usize::from(*shared)), tail.split_at_checked(rest))
        else {
            return Err(damaged());
        };
        entries.push(Entry { key: [head, rest].concat(), is_alive: *is_alive == 1 });
        bytes = after;
    }
    match bytes.is_empty() {
        true => Ok(entries),
        false => Err(damaged()),
    }
}

fn damaged() -> StoreError {
    StoreError("a block of the index cannot be read; the store is damaged, restore a copy".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn entries_survive_their_block(keys in proptest::collection::btree_set(proptest::collection::vec(0_u8..4, 0..300), 0..64), alive: bool) {
            let entries: Vec<_> = keys.into_iter().map(|key| Entry { key, is_alive: alive }).collect();
            prop_assert_eq!(decode(&encode(&entries)), Ok(entries));
        }
    }

    #[test]
    fn a_cut_block_is_an_error() {
        let bytes = encode(&[Entry { key: vec![1, 2, 3], is_alive: true }]);
        for end in 1..bytes.len() {
            assert!(decode(&bytes[..end]).is_err());
        }
    }
}
