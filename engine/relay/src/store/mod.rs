//! The store under the relay: one sled tree, written by batches that go in whole or not at all.
//!
//! This is the only file that talks to sled. sled panics on some damaged files; here that is an error.

pub(crate) mod key;
pub(crate) mod record;

use std::ops::Bound;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// What a store of this shape is marked with.
const FORMAT: &[u8] = b"waxlog-relay 1";
/// After a close, sled's own threads may hold its file lock for a moment.
const RELEASE_WAIT: Duration = Duration::from_secs(10);
const RELEASE_POLL: Duration = Duration::from_millis(2);

/// A failure of the store: what sled or the decoding of a value said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct StoreError(pub(crate) String);

/// An open store.
pub(crate) struct Store {
    db: sled::Db,
}

/// Changes that go into the store together.
#[derive(Default)]
pub(crate) struct Batch {
    inner: sled::Batch,
}

impl Batch {
    pub(crate) fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.inner.insert(key, value);
    }

    pub(crate) fn delete(&mut self, key: Vec<u8>) {
        self.inner.remove(key);
    }
}

impl Store {
    /// Opens or creates the store in `folder`.
    pub(crate) fn open(folder: &Path, cache_bytes: u64) -> Result<Self, StoreError> {
        let held_data = holds_data(folder);
        let db = open_sled(folder, cache_bytes)?;
        let store = Self { db };
        match store.get(&[key::FORMAT])? {
            Some(format) if format == FORMAT => Ok(store),
            Some(format) => Err(StoreError(format!(
                "it has the format {:?}, this program knows {:?}; use the program that wrote it",
                String::from_utf8_lossy(&format),
                String::from_utf8_lossy(FORMAT),
            ))),
            None if held_data => Err(StoreError(
                "its beginning is damaged; restore a copy of the folder, or begin a new one".into(),
            )),
            None => {
                let mut batch = Batch::default();
                batch.put(vec![key::FORMAT], FORMAT.to_vec());
                store.apply(batch)?;
                store.flush()?;
                Ok(store)
            }
        }
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(call(|| self.db.get(key))?.map(|value| value.to_vec()))
    }

    /// Reads a value without a copy of it.
    pub(crate) fn read<T>(
        &self,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        call(|| self.db.get(key))?.map(|value| read(&value)).transpose()
    }

    /// Makes the changes, all or none.
    pub(crate) fn apply(&self, batch: Batch) -> Result<(), StoreError> {
        call(|| self.db.apply_batch(batch.inner))
    }

    /// Makes all that was applied survive a kill of the process.
    pub(crate) fn flush(&self) -> Result<(), StoreError> {
        call(|| self.db.flush()).map(drop)
    }

    /// The entries that begin with `prefix`, from the key `from` on.
    pub(crate) fn scan(&self, prefix: &[u8], from: &[u8]) -> Scan {
        let end = match key::after(prefix) {
            Some(end) => Bound::Excluded(end),
            None => Bound::Unbounded,
        };
        Scan { inner: self.db.range::<Vec<u8>, _>((Bound::Included(from.to_vec()), end)) }
    }

    /// The entries that begin with `prefix`, from the last one on that is not after `from`.
    pub(crate) fn scan_from_floor(&self, prefix: &[u8], from: &[u8]) -> Result<Scan, StoreError> {
        let floor = call(|| self.db.range(prefix..=from).next_back().transpose())?;
        Ok(self.scan(prefix, floor.as_ref().map_or(from, |(key, _)| key)))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Err(error) = self.flush() {
            log::error!("the relay's store could not be flushed at its close: {error}");
        }
    }
}

/// A walk over entries in the order of their keys.
pub(crate) struct Scan {
    inner: sled::Iter,
}

impl Scan {
    /// The next entry's key and value, read in place.
    pub(crate) fn next_with<T>(
        &mut self,
        read: impl FnOnce(&[u8], &[u8]) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let entry = call(|| self.inner.next().transpose())?;
        entry.map(|(key, value)| read(&key, &value)).transpose()
    }
}

fn holds_data(folder: &Path) -> bool {
    folder.join("db").metadata().is_ok_and(|file| file.len() > 0)
}

fn open_sled(folder: &Path, cache_bytes: u64) -> Result<sled::Db, StoreError> {
    let config = sled::Config::new()
        .path(folder)
        .cache_capacity(cache_bytes)
        .mode(sled::Mode::HighThroughput)
        .use_compression(false)
        .flush_every_ms(None);
    let deadline = Instant::now() + RELEASE_WAIT;
    loop {
        match call(|| config.open()) {
            Err(error) if error.0.contains("could not acquire lock") && Instant::now() < deadline => {
                thread::sleep(RELEASE_POLL);
            }
            opened => return opened,
        }
    }
}

fn call<T>(work: impl FnOnce() -> sled::Result<T>) -> Result<T, StoreError> {
    // What sled leaves behind after a panic is not looked at again: each later call fails as well.
    match panic::catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(|error| StoreError(error.to_string())),
        Err(payload) => {
            let message = payload
                .downcast_ref::<&str>()
                .copied()
                .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
            Err(StoreError(format!("sled panicked: {}", message.unwrap_or("no message"))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_another_format_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 1 << 20).unwrap();
        let mut batch = Batch::default();
        batch.put(vec![key::FORMAT], b"waxlog-relay 99".to_vec());
        store.apply(batch).unwrap();
        drop(store);
        let error = Store::open(folder.path(), 1 << 20).map(drop).unwrap_err();
        assert!(error.0.contains("waxlog-relay 99"), "{error}");
    }

    #[test]
    fn a_damaged_file_is_an_error_and_no_panic() {
        let folder = tempfile::tempdir().unwrap();
        drop(Store::open(folder.path(), 1 << 20).unwrap());
        std::fs::write(folder.path().join("db"), [0x5a; 4096]).unwrap();
        let error = Store::open(folder.path(), 1 << 20).map(drop).unwrap_err();
        assert!(!error.0.is_empty());
    }

    #[test]
    fn a_scan_keeps_to_its_prefix() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 1 << 20).unwrap();
        let mut batch = Batch::default();
        for key in [[7, 1], [7, 9], [8, 0]] {
            batch.put(key.to_vec(), Vec::new());
        }
        store.apply(batch).unwrap();
        let mut scan = store.scan(&[7], &[7, 2]);
        assert_eq!(scan.next_with(|key, _| Ok(key.to_vec())), Ok(Some(vec![7, 9])));
        assert_eq!(scan.next_with(|key, _| Ok(key.to_vec())), Ok(None));
        let mut floor = store.scan_from_floor(&[7], &[7, 5]).unwrap();
        assert_eq!(floor.next_with(|key, _| Ok(key.to_vec())), Ok(Some(vec![7, 1])));
    }
}
