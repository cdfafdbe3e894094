//! The only file that talks to sled: one store with its two kinds of keys.
//!
//! `r` + global number (big-endian) holds the record's value; `s` + stream + NUL + sequence
//! (big-endian) holds the global number. Both go in by one batch, so neither is without the other.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::quiet;

const RECORD_KEY: u8 = b'r';
const STREAM_KEY: u8 = b's';
/// The blocks by which a new store's file grows, and to a quarter of which sled keeps a page of
/// records in that file. Smaller ones waste less; with still smaller ones most pages of records of
/// 1 KiB would be files of their own.
pub(crate) const BLOCK_BYTES: usize = 128 << 10;
/// The blocks of stores that were made before they had a choice. A store keeps its size for good.
const FIRST_BLOCK_BYTES: usize = 512 << 10;
/// Where sled notes the size; it takes a file of up to [`CONF_EMPTY_BYTES`] for none.
const CONF_FILE: &str = "conf";
const CONF_EMPTY_BYTES: usize = 8;
const CONF_BLOCK: &str = "segment_size: ";
/// After a close, sled's own threads may hold its file lock for a moment.
const RELEASE_WAIT: Duration = Duration::from_secs(10);
const RELEASE_POLL: Duration = Duration::from_millis(2);

/// An open sled store.
pub(crate) struct Tree {
    db: sled::Db,
    path: PathBuf,
}

/// A record on its way into the store.
pub(crate) struct Entry {
    pub(crate) stream: String,
    pub(crate) sequence: u64,
    pub(crate) global: u64,
    pub(crate) value: Vec<u8>,
}

/// How much one page of an iteration may hold.
#[derive(Clone, Copy)]
pub(crate) struct Budget {
    pub(crate) records: usize,
    pub(crate) bytes: usize,
}

impl Budget {
    /// Whether a page that holds `page` takes more. The record that goes over the limit is still in.
    fn allows(self, page: &[Vec<u8>], page_bytes: usize) -> bool {
        page.len() < self.records && page_bytes < self.bytes
    }
}

impl Tree {
    /// The sizes of blocks that the store in `path` may have, to be tried in this order: the one
    /// that sled noted, or, where its note was lost, all that there ever were.
    pub(crate) fn block_sizes(path: &Path) -> io::Result<Vec<usize>> {
        let conf = match fs::read(path.join(CONF_FILE)) {
            Ok(conf) => conf,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        if conf.len() <= CONF_EMPTY_BYTES {
            return Ok(vec![FIRST_BLOCK_BYTES, BLOCK_BYTES]);
        }
        let noted = String::from_utf8_lossy(&conf)
            .lines()
            .find_map(|line| line.strip_prefix(CONF_BLOCK)?.parse().ok())
            .filter(|noted| [FIRST_BLOCK_BYTES, BLOCK_BYTES].contains(noted));
        // A note that is damaged is for sled to refuse.
        Ok(vec![noted.unwrap_or(BLOCK_BYTES)])
    }

    /// Opens or creates the store in `path`, whose blocks have `block_bytes`. sled may cut what it
    /// cannot read, and all of a store whose blocks have another size: see `evidence`.
    pub(crate) fn open(path: &Path, cache_bytes: u64, block_bytes: usize) -> Result<Tree, String> {
        let config = sled::Config::new()
            .path(path)
            .segment_size(block_bytes)
            .cache_capacity(cache_bytes)
            .mode(sled::Mode::LowSpace)
            .use_compression(false)
            .flush_every_ms(None);
        let deadline = Instant::now() + RELEASE_WAIT;
        loop {
            match call(|| config.open()) {
                Ok(db) => return Ok(Tree { db, path: path.to_path_buf() }),
                Err(error) if error.contains("could not acquire lock") && Instant::now() < deadline => {
                    thread::sleep(RELEASE_POLL);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Adds the entries, all or none.
    pub(crate) fn apply(&self, entries: &[Entry]) -> Result<(), String> {
        let mut batch = sled::Batch::default();
        for entry in entries {
            batch.insert(record_key(entry.global).as_slice(), entry.value.as_slice());
            batch.insert(stream_key(&entry.stream, entry.sequence), &entry.global.to_be_bytes());
        }
        call(|| self.db.apply_batch(batch))
    }

    /// Makes all that was applied survive a kill of the process. This is no fsync.
    pub(crate) fn flush(&self) -> Result<(), String> {
        call(|| self.db.flush()).map(drop)
    }

    /// The value of a record.
    pub(crate) fn value(&self, global: u64) -> Result<Option<Vec<u8>>, String> {
        Ok(call(|| self.db.get(record_key(global)))?.map(|value| value.to_vec()))
    }

    /// The global number that the index has for a place in a stream.
    pub(crate) fn global_of(&self, stream: &str, sequence: u64) -> Result<Option<u64>, String> {
        Ok(call(|| self.db.get(stream_key(stream, sequence)))?.and_then(|value| number(&value)))
    }

    /// The values from the global number `from` to `to`, as many as the budget allows.
    pub(crate) fn page(&self, from: u64, to: u64, budget: Budget) -> Result<Vec<Vec<u8>>, String> {
        let mut page = Vec::new();
        let mut page_bytes = 0;
        let mut values = self.db.range(record_key(from)..=record_key(to));
        while budget.allows(&page, page_bytes) {
            let Some(entry) = quiet::catch(|| values.next())? else {
                break;
            };
            let (_, value) = entry.map_err(|error| error.to_string())?;
            page_bytes += value.len();
            page.push(value.to_vec());
        }
        Ok(page)
    }

    /// The values of a stream from the sequence `from` on, none of them beyond the global number
    /// `to`, as many as the budget allows.
    pub(crate) fn stream_page(
        &self,
        stream: &str,
        from: u64,
        to: u64,
        budget: Budget,
    ) -> Result<Vec<Vec<u8>>, String> {
        let mut page = Vec::new();
        let mut page_bytes = 0;
        let mut index = self.db.range(stream_key(stream, from)..=stream_key(stream, u64::MAX));
        while budget.allows(&page, page_bytes) {
            let Some(entry) = quiet::catch(|| index.next())? else {
                break;
            };
            let (_, global) = entry.map_err(|error| error.to_string())?;
            let global = number(&global).ok_or("an index entry is not a number")?;
            if global > to {
                break;
            }
            let value = self.value(global)?.ok_or_else(|| format!("record {global} is not in the store"))?;
            page_bytes += value.len();
            page.push(value);
        }
        Ok(page)
    }

    /// Goes over every key once: record keys to `record`, which may stop the walk. Returns the
    /// number of stream keys, and the first key that is of neither kind.
    pub(crate) fn census<E>(
        &self,
        mut record: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<Result<Census, E>, String> {
        let mut census = Census::default();
        let mut entries = self.db.iter();
        while let Some(entry) = quiet::catch(|| entries.next())? {
            let (key, value) = entry.map_err(|error| error.to_string())?;
            match key.split_first() {
                Some((&RECORD_KEY, rest)) if rest.len() == 8 => {
                    if let Err(stop) = record(number(rest).unwrap_or_default(), &value) {
                        return Ok(Err(stop));
                    }
                }
                Some((&STREAM_KEY, _)) => census.stream_keys += 1,
                _ => census.stray_key = Some(hex::encode(&key)),
            }
        }
        Ok(Ok(census))
    }

    /// The store's folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // After a failed write sled may panic when its last handle goes; that must not end us.
        let _ = self.flush();
    }
}

/// What a census counted.
#[derive(Default)]
pub(crate) struct Census {
    pub(crate) stream_keys: u64,
    pub(crate) stray_key: Option<String>,
}

fn call<T>(work: impl FnOnce() -> sled::Result<T>) -> Result<T, String> {
    quiet::catch(work)?.map_err(|error| error.to_string())
}

fn record_key(global: u64) -> [u8; 9] {
    let mut key = [RECORD_KEY; 9];
    key[1..].copy_from_slice(&global.to_be_bytes());
    key
}

fn stream_key(stream: &str, sequence: u64) -> Vec<u8> {
    let mut key = Vec::with_capacity(stream.len() + 10);
    key.push(STREAM_KEY);
    key.extend_from_slice(stream.as_bytes());
    key.push(0);
    key.extend_from_slice(&sequence.to_be_bytes());
    key
}

fn number(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_be_bytes)
}
