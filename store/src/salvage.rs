//! Finds records in the raw files of a segment, without sled.
//!
//! A stored value lies in one piece in sled's file, or in a file of its own when it is large. It
//! starts with a magic and is bound together by hashes, so one that is found is known to be
//! whole. The file also holds values that sled rewrote or never finished; the chain picks the
//! right ones.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;

use crate::evidence;
use crate::files;
use crate::head::Head;
use crate::record::{Hash, Record};
use crate::value::{Value, MAGIC};

/// The sound records that the segment's files hold, in no order, each once.
pub(crate) fn scan(segment: &Path) -> io::Result<Vec<Record>> {
    let store = evidence::untouched(segment);
    let mut found = HashMap::new();
    if store.exists() {
        for file in files::files_under(&store)? {
            scan_bytes(&fs::read(file)?, &mut found);
        }
    }
    Ok(found.into_values().collect())
}

fn scan_bytes(bytes: &[u8], found: &mut HashMap<Hash, Record>) {
    let mut at = 0;
    while let Some(offset) = find_magic(&bytes[at..]) {
        at += offset;
        let length = take(&bytes[at..], found).unwrap_or(MAGIC.len());
        at += length;
    }
}

fn find_magic(bytes: &[u8]) -> Option<usize> {
    bytes.windows(MAGIC.len()).position(|window| window == MAGIC)
}

/// Takes the value at the start of `bytes`, if one is there and sound, and gives its length.
fn take(bytes: &[u8], found: &mut HashMap<Hash, Record>) -> Option<usize> {
    let value = Value::parse(bytes).ok()?;
    let length = value.total_bytes;
    if !found.contains_key(&value.hash) {
        let record = value.into_record().ok()?;
        let _ = found.insert(record.hash, record);
    }
    Some(length)
}

/// The records that follow the frame `before`: those that lead to the last one that the head
/// promises if all of them were found, otherwise the longest chain, but nothing beyond the
/// promised count. Without a head every record that chains is taken.
pub(crate) fn chain(found: Vec<Record>, before: Hash, head: Option<&Head>) -> Vec<Record> {
    let mut by_hash: HashMap<Hash, Record> = found.into_iter().map(|record| (record.hash, record)).collect();
    let promised = head.and_then(|head| chain_back(&by_hash, Hash(head.last), before));
    let mut hashes = promised.unwrap_or_else(|| longest_chain(&by_hash, before));
    if let Some(head) = head {
        hashes.truncate(usize::try_from(head.count).unwrap_or(usize::MAX));
    }
    hashes.iter().filter_map(|hash| by_hash.remove(hash)).collect()
}

/// The hashes from `before` to `last`, which are unambiguous in this direction.
fn chain_back(found: &HashMap<Hash, Record>, last: Hash, before: Hash) -> Option<Vec<Hash>> {
    let mut hashes = Vec::new();
    let mut at = last;
    while at != before {
        hashes.push(at);
        at = found.get(&at)?.previous;
    }
    hashes.reverse();
    Some(hashes)
}

/// After a kill two records can claim the same place; the one with more behind it was kept.
fn longest_chain(found: &HashMap<Hash, Record>, before: Hash) -> Vec<Hash> {
    let mut latest_first: Vec<&Record> = found.values().collect();
    latest_first.sort_by_key(|record| std::cmp::Reverse(record.position.global));
    // For each frame, the best one to follow it and how many follow in all.
    let mut next: HashMap<Hash, (u64, Hash)> = HashMap::new();
    for record in latest_first {
        let length = next.get(&record.hash).map_or(1, |(length, _)| length + 1);
        let best = next.entry(record.previous).or_insert((length, record.hash));
        if length > best.0 {
            *best = (length, record.hash);
        }
    }
    let follow = |hash: &Hash| next.get(hash).map(|(_, next)| *next);
    std::iter::successors(follow(&before), follow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Position;

    fn record(global: u64, hash: u8, previous: u8) -> Record {
        Record {
            position: Position { global, sequence: global },
            stream: "s".to_owned(),
            kind: "k".to_owned(),
            version: 1,
            time_ms: 0,
            head: Vec::new(),
            raw: Vec::new(),
            previous: Hash([previous; 32]),
            hash: Hash([hash; 32]),
        }
    }

    fn hashes(records: &[Record]) -> Vec<u8> {
        records.iter().map(|record| record.hash.0[0]).collect()
    }

    #[test]
    fn of_two_records_for_one_place_the_one_with_more_behind_it_is_taken() {
        let found =
            vec![record(1, 1, 0), record(2, 20, 1), record(2, 2, 1), record(3, 3, 2), record(9, 9, 8)];
        assert_eq!(hashes(&chain(found, Hash::ZERO, None)), [1, 2, 3]);
    }

    #[test]
    fn the_last_promised_record_decides_and_nothing_beyond_it_is_taken() {
        let mut head = Head::new(1, 1, Hash::ZERO);
        head.count = 2;
        head.last = [20; 32];
        let found = vec![record(1, 1, 0), record(2, 20, 1), record(2, 2, 1), record(3, 3, 2)];
        assert_eq!(hashes(&chain(found, Hash::ZERO, Some(&head))), [1, 20]);
    }
}
