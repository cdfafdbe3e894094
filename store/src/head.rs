//! The head file of a segment: what sled must hold, written outside of sled.
//!
//! sled cannot say that it has lost something; a store cut short opens as a shorter store. The
//! head file says how many records were acknowledged and with which hash the last one ends. It
//! has two slots that are written in turn with a rising serial number, so that a torn write
//! leaves the other one.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use bincode::Options as _;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::files;
use crate::record::Hash;

/// The head file's name inside a segment's folder.
pub(crate) const HEAD_FILE: &str = "head";
/// One disk sector: a slot is written by one write that no sector boundary divides.
const SLOT_BYTES: usize = 512;
const CHECKSUM_BYTES: usize = 32;

/// What the head file says about its segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    serial: u64,
    pub(crate) format: u16,
    /// The global number of the segment's first record.
    pub(crate) first: u64,
    /// How many records were acknowledged.
    pub(crate) count: u64,
    /// The hash of the frame before the segment.
    pub(crate) before: [u8; 32],
    /// The hash of the last acknowledged frame; `before` when there is none.
    pub(crate) last: [u8; 32],
    /// How many bytes the records take as sled values.
    pub(crate) stored_bytes: u64,
    /// A closed segment is never written again.
    pub(crate) closed: bool,
}

impl Head {
    /// The head of a segment without records.
    pub(crate) fn new(format: u16, first: u64, before: Hash) -> Head {
        Head {
            serial: 0,
            format,
            first,
            count: 0,
            before: before.0,
            last: before.0,
            stored_bytes: 0,
            closed: false,
        }
    }

    /// The global number of the next record after the segment.
    pub(crate) fn next_global(&self) -> u64 {
        self.first.saturating_add(self.count)
    }

    fn encode(&self) -> io::Result<[u8; SLOT_BYTES]> {
        let bytes = codec().serialize(self).map_err(io::Error::other)?;
        let mut slot = [0; SLOT_BYTES];
        slot[..bytes.len()].copy_from_slice(&bytes);
        let checksum = Sha256::digest(&slot[..SLOT_BYTES - CHECKSUM_BYTES]);
        slot[SLOT_BYTES - CHECKSUM_BYTES..].copy_from_slice(&checksum);
        Ok(slot)
    }

    /// The head in a slot, unless the slot is torn or changed.
    fn decode(slot: &[u8]) -> Option<Head> {
        let (content, checksum) = slot.split_at_checked(SLOT_BYTES - CHECKSUM_BYTES)?;
        if Sha256::digest(content)[..] != *checksum {
            return None;
        }
        codec().allow_trailing_bytes().deserialize(content).ok()
    }
}

fn codec() -> impl bincode::Options {
    bincode::options().with_limit((SLOT_BYTES - CHECKSUM_BYTES) as u64).with_fixint_encoding()
}

/// The head file of a segment that is written.
pub(crate) struct HeadFile {
    file: File,
    head: Head,
}

impl HeadFile {
    /// Creates the head file whole under its name, both slots filled.
    pub(crate) fn create(segment: &Path, head: Head) -> io::Result<HeadFile> {
        let path = segment.join(HEAD_FILE);
        let mut second = head;
        let first_slot = second.encode()?;
        second.serial += 1;
        files::write_whole(&path, &[first_slot, second.encode()?].concat())?;
        HeadFile::open(&path, second)
    }

    /// Goes on writing the head file of a segment whose head was read as `head`.
    pub(crate) fn resume(segment: &Path, head: Head) -> io::Result<HeadFile> {
        HeadFile::open(&segment.join(HEAD_FILE), head)
    }

    fn open(path: &Path, head: Head) -> io::Result<HeadFile> {
        let file = File::options().write(true).open(path)?;
        Ok(HeadFile { file, head })
    }

    pub(crate) fn head(&self) -> &Head {
        &self.head
    }

    /// Writes the changed head into the slot that holds the older one.
    pub(crate) fn write(&mut self, change: impl FnOnce(&mut Head)) -> io::Result<()> {
        let mut next = self.head.clone();
        change(&mut next);
        next.serial += 1;
        let offset = (next.serial % 2) * SLOT_BYTES as u64;
        self.file.write_all_at(&next.encode()?, offset)?;
        self.head = next;
        Ok(())
    }

    /// Writes "closed" into both slots, so that no single damaged one opens the segment again.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        self.write(|head| head.closed = true)?;
        self.write(|_| ())?;
        self.fsync()
    }

    pub(crate) fn fsync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

/// What was found where a head file should be.
pub(crate) enum Found {
    Missing,
    /// Neither slot is sound.
    Damaged {
        path: PathBuf,
        bytes: u64,
    },
    Sound(Head),
}

/// Reads the newer of the sound slots.
pub(crate) fn read(segment: &Path) -> io::Result<Found> {
    let path = segment.join(HEAD_FILE);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Missing),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::with_capacity(2 * SLOT_BYTES);
    let _ = file.take(2 * SLOT_BYTES as u64).read_to_end(&mut bytes)?;
    let newest = bytes.chunks(SLOT_BYTES).filter_map(Head::decode).max_by_key(|head| head.serial);
    Ok(newest.map_or(Found::Damaged { path, bytes: bytes.len() as u64 }, Found::Sound))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(count: u64) -> (tempfile::TempDir, Head) {
        let dir = tempfile::tempdir().expect("temp dir");
        let mut file = HeadFile::create(dir.path(), Head::new(1, 1, Hash::ZERO)).expect("create");
        for n in 1..=count {
            file.write(|head| head.count = n).expect("write");
        }
        let head = file.head().clone();
        (dir, head)
    }

    #[test]
    fn the_newest_head_is_read_back() {
        let (dir, head) = written(5);
        assert!(matches!(read(dir.path()).expect("read"), Found::Sound(found) if found == head));
    }

    #[test]
    fn a_torn_write_leaves_the_slot_before_it() {
        let (dir, head) = written(5);
        let path = dir.path().join(HEAD_FILE);
        let mut bytes = std::fs::read(&path).expect("read");
        let torn_slot = (head.serial % 2) as usize * SLOT_BYTES;
        bytes[torn_slot + 20] ^= 1;
        std::fs::write(&path, bytes).expect("write");
        assert!(matches!(read(dir.path()).expect("read"), Found::Sound(found) if found.count == 4));
    }

    #[test]
    fn an_emptied_head_file_is_damage_and_not_a_new_segment() {
        let (dir, _) = written(5);
        std::fs::write(dir.path().join(HEAD_FILE), b"").expect("write");
        assert!(matches!(read(dir.path()).expect("read"), Found::Damaged { bytes: 0, .. }));
    }
}
