//! The keys of the store: what each is made of.
//!
//! Every index ends in a [`Place`], so that all of them give events in the order of an answer, and two can
//! be intersected. Index keys hold eight bytes of what they stand for: enough to find, and the event itself
//! is asked again.

use sha2::{Digest, Sha256};
use waxlog_nostr::{EventId, PublicKey};

use crate::channel::ChannelId;

/// The mark of the store's shape.
pub(crate) const FORMAT: u8 = b'!';
const BODY: u8 = b'e';
const ID: u8 = b'i';
const HEAD: u8 = b'h';
const REACTION: u8 = b'r';
const CHANNEL: u8 = b'c';
const OWNER: u8 = b'o';
const POLICY: u8 = b'p';
const COMMAND: u8 = b'x';
const SUMMARY: u8 = b's';
const MANIFEST: u8 = b'M';
const BLOCK: u8 = b'B';
const BY_KIND: u8 = b'K';
const BY_AUTHOR: u8 = b'A';
const BY_TAG: u8 = b'T';
const BY_THREAD: u8 = b'P';
const BY_WORD: u8 = b'W';

/// How much of an id the store keeps to find an event by it, in bytes.
const ID_BYTES: usize = 16;
/// How much of a value an index key holds, in bytes.
const MARK_BYTES: usize = 8;
/// How many bytes a [`Place`] takes in a key.
pub(crate) const PLACE_BYTES: usize = 24;

/// Where an event is in the order of answers: newest first, equal times by id. `seq` names the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The complement of the time, so that newer is less.
    time: u64,
    id: u64,
    pub(crate) seq: u64,
}

impl Place {
    /// The first place of all.
    pub(crate) const FIRST: Self = Self { time: 0, id: 0, seq: 0 };

    pub(crate) fn of(created_at: u64, id: &EventId, seq: u64) -> Self {
        Self { time: !created_at, id: mark(id.as_bytes()), seq }
    }

    /// The first place of this second or of an older one.
    pub(crate) fn until(created_at: u64) -> Self {
        Self { time: !created_at, id: 0, seq: 0 }
    }

    /// The first place of this time and id.
    pub(crate) fn at(created_at: u64, id: &EventId) -> Self {
        Self { time: !created_at, id: mark(id.as_bytes()), seq: 0 }
    }

    pub(crate) fn created_at(self) -> u64 {
        !self.time
    }

    pub(crate) fn to_bytes(self) -> [u8; PLACE_BYTES] {
        let mut bytes = [0; PLACE_BYTES];
        bytes[..8].copy_from_slice(&self.time.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.id.to_be_bytes());
        bytes[16..].copy_from_slice(&self.seq.to_be_bytes());
        bytes
    }

    /// Reads the place at the end of an index key.
    pub(crate) fn at_end_of(key: &[u8]) -> Option<Self> {
        let tail = key.get(key.len().checked_sub(PLACE_BYTES)?..)?;
        Some(Self { time: number(&tail[..8])?, id: number(&tail[8..16])?, seq: number(&tail[16..])? })
    }
}

/// A big-endian number of eight bytes.
pub(crate) fn number(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_be_bytes)
}

fn mark(bytes: &[u8]) -> u64 {
    number(&bytes[..MARK_BYTES]).unwrap_or_default()
}

fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

fn join(first: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + parts.iter().map(|part| part.len()).sum::<usize>() + PLACE_BYTES);
    key.push(first);
    parts.iter().for_each(|part| key.extend_from_slice(part));
    key
}

/// The key after all that begin with `prefix`, if there is one.
pub(crate) fn after(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}

pub(crate) fn bodies() -> [u8; 1] {
    [BODY]
}

pub(crate) fn body(seq: u64) -> Vec<u8> {
    join(BODY, &[&seq.to_be_bytes()])
}

pub(crate) fn id(id: &EventId) -> Vec<u8> {
    join(ID, &[&id.as_bytes()[..ID_BYTES]])
}

/// The head of a replaceable or addressable event's key.
pub(crate) fn head(kind: u16, author: &PublicKey, channel: Option<&ChannelId>, identifier: &str) -> Vec<u8> {
    let channel = channel.map_or(&[][..], |channel| &channel.as_bytes()[..]);
    join(
        HEAD,
        &[&hash(&[&kind.to_be_bytes(), author.as_bytes(), channel, identifier.as_bytes()])[..ID_BYTES]],
    )
}

/// The active reaction of an author to a target with an emoji.
pub(crate) fn reaction(target: &EventId, author: &PublicKey, emoji: &str) -> Vec<u8> {
    join(REACTION, &[&hash(&[target.as_bytes(), author.as_bytes(), emoji.as_bytes()])[..ID_BYTES]])
}

pub(crate) fn channels() -> [u8; 1] {
    [CHANNEL]
}

pub(crate) fn channel(id: &ChannelId) -> Vec<u8> {
    join(CHANNEL, &[id.as_bytes()])
}

pub(crate) fn owners() -> [u8; 1] {
    [OWNER]
}

pub(crate) fn owner(agent: &PublicKey) -> Vec<u8> {
    join(OWNER, &[agent.as_bytes()])
}

pub(crate) fn policies() -> [u8; 1] {
    [POLICY]
}

pub(crate) fn policy(of: &PublicKey) -> Vec<u8> {
    join(POLICY, &[of.as_bytes()])
}

/// That a command was carried out.
pub(crate) fn command(id: &EventId) -> Vec<u8> {
    join(COMMAND, &[id.as_bytes()])
}

/// Which runs the index has.
pub(crate) fn manifest() -> Vec<u8> {
    vec![MANIFEST]
}

/// The block of a run that begins with this index key.
pub(crate) fn block(run: u64, first: &[u8]) -> Vec<u8> {
    join(BLOCK, &[&run.to_be_bytes(), first])
}

/// The counts of a thread.
pub(crate) fn summary(root: &EventId) -> Vec<u8> {
    join(SUMMARY, &[root.as_bytes()])
}

pub(crate) fn kinds() -> [u8; 1] {
    [BY_KIND]
}

pub(crate) fn by_kind(kind: u16) -> Vec<u8> {
    join(BY_KIND, &[&kind.to_be_bytes()])
}

/// The kind of a key that [`by_kind`] begins.
pub(crate) fn kind_of(key: &[u8]) -> Option<u16> {
    key.get(1..3)?.try_into().ok().map(u16::from_be_bytes)
}

pub(crate) fn by_author(author: &PublicKey, kind: u16) -> Vec<u8> {
    join(BY_AUTHOR, &[&author.as_bytes()[..MARK_BYTES], &kind.to_be_bytes()])
}

pub(crate) fn by_tag(letter: char, value: &str, kind: u16) -> Vec<u8> {
    let mut letter_bytes = [0; 4];
    let letter = letter.encode_utf8(&mut letter_bytes);
    let mark = hash(&[letter.as_bytes(), value.as_bytes()]);
    join(BY_TAG, &[&mark[..MARK_BYTES], &kind.to_be_bytes()])
}

/// The replies under a root, oldest first: its places are made by [`in_thread`].
pub(crate) fn by_thread(root: &EventId) -> Vec<u8> {
    join(BY_THREAD, &[&root.as_bytes()[..MARK_BYTES]])
}

/// Where a reply is in its thread: by time, then by id.
pub(crate) fn in_thread(created_at: u64, id: &EventId, seq: u64) -> Place {
    Place { time: created_at, id: mark(id.as_bytes()), seq }
}

/// The first place in a thread that is later than this second.
pub(crate) fn thread_after(created_at: u64) -> Place {
    Place { time: created_at.saturating_add(1), id: 0, seq: 0 }
}

/// The messages that hold a word.
pub(crate) fn by_word(word: &str) -> Vec<u8> {
    join(BY_WORD, &[word.as_bytes(), &[0]])
}

/// The words that begin like this.
pub(crate) fn by_word_beginning(beginning: &str) -> Vec<u8> {
    join(BY_WORD, &[beginning.as_bytes()])
}

/// An index key: what it is about, and the event's place.
pub(crate) fn with_place(mut prefix: Vec<u8>, place: Place) -> Vec<u8> {
    prefix.extend_from_slice(&place.to_bytes());
    prefix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_sort_newest_first_then_by_id_and_survive_a_key() {
        let id = |byte| EventId::from_bytes([byte; 32]);
        let newer = Place::of(20, &id(9), 1);
        let older = Place::of(10, &id(1), 2);
        let older_higher_id = Place::of(10, &id(2), 3);
        assert!(newer < older && older < older_higher_id);
        assert!(Place::until(10) < older && newer < Place::until(10));
        assert!(Place::at(10, &id(1)) <= older && Place::at(10, &id(1)) > newer);
        let key = with_place(by_kind(7), older);
        assert_eq!(Place::at_end_of(&key), Some(older));
        assert_eq!(kind_of(&key), Some(7));
        assert!(with_place(by_kind(7), newer) < key);
    }

    #[test]
    fn the_end_of_a_prefix_is_the_next_one() {
        assert_eq!(after(&[1, 2]), Some(vec![1, 3]));
        assert_eq!(after(&[1, 255]), Some(vec![2]));
        assert_eq!(after(&[255]), None);
    }
}
