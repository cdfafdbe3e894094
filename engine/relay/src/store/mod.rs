//! The store under the relay: one sled tree, written by batches that go in whole or not at all.
//!
//! Batches gather in memory until a flush, or a walk over entries, puts them into sled as one: sled writes to
//! its file twice for each batch that it gets and waits for both, however small the batch is.
//!
//! This is the only file that talks to sled. sled panics on some damaged files; here that is an error.

pub(crate) mod key;
pub(crate) mod record;

use std::collections::HashMap;
use std::ops::Bound;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::{Duration, Instant};

/// What a store of this shape is marked with.
const FORMAT: &[u8] = b"waxlog-relay 1";
/// After a close, sled's own threads may hold its file lock for a moment.
const RELEASE_WAIT: Duration = Duration::from_secs(10);
const RELEASE_POLL: Duration = Duration::from_millis(2);

/// How much gathers before it is put into sled, in bytes of keys and values.
const GATHERED_BYTES: usize = 1 << 20;

/// A failure of the store: what sled or the decoding of a value said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct StoreError(pub(crate) String);

/// An open store.
pub(crate) struct Store {
    db: sled::Db,
    gathered: RwLock<Gathered>,
}

/// Changes that are made and not in sled yet. A value that is none is a deletion.
#[derive(Default)]
struct Gathered {
    changes: HashMap<Vec<u8>, Option<Vec<u8>>>,
    bytes: usize,
}

/// Changes that go into the store together.
#[derive(Default)]
pub(crate) struct Batch {
    changes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Batch {
    pub(crate) fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.changes.push((key, Some(value)));
    }

    pub(crate) fn delete(&mut self, key: Vec<u8>) {
        self.changes.push((key, None));
    }
}

impl Store {
    /// Opens or creates the store in `folder`.
    pub(crate) fn open(folder: &Path, cache_bytes: u64) -> Result<Self, StoreError> {
        let held_data = holds_data(folder);
        let db = open_sled(folder, cache_bytes)?;
        let store = Self { db, gathered: RwLock::default() };
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
        self.read(key, |value| Ok(value.to_vec()))
    }

    /// Reads a value without a copy of it.
    pub(crate) fn read<T>(
        &self,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let gathered = self.gathered();
        if let Some(change) = gathered.changes.get(key) {
            return change.as_deref().map(read).transpose();
        }
        // What is gathered must not be put into sled between the two looks.
        let value = call(|| self.db.get(key))?;
        drop(gathered);
        value.map(|value| read(&value)).transpose()
    }

    /// Makes the changes, all or none.
    pub(crate) fn apply(&self, batch: Batch) -> Result<(), StoreError> {
        let mut gathered = self.gathered_mut();
        for (key, value) in batch.changes {
            gathered.bytes += key.len() + value.as_ref().map_or(0, Vec::len);
            gathered.changes.insert(key, value);
        }
        match gathered.bytes < GATHERED_BYTES {
            true => Ok(()),
            false => self.put_into_sled(&mut gathered),
        }
    }

    /// Makes all that was applied survive a kill of the process.
    pub(crate) fn flush(&self) -> Result<(), StoreError> {
        self.put_all_into_sled()?;
        call(|| self.db.flush()).map(drop)
    }

    fn put_all_into_sled(&self) -> Result<(), StoreError> {
        self.put_into_sled(&mut self.gathered_mut())
    }

    fn put_into_sled(&self, gathered: &mut Gathered) -> Result<(), StoreError> {
        if gathered.changes.is_empty() {
            return Ok(());
        }
        let mut batch = sled::Batch::default();
        for (key, value) in &gathered.changes {
            match value {
                Some(value) => batch.insert(key.as_slice(), value.as_slice()),
                None => batch.remove(key.as_slice()),
            }
        }
        call(|| self.db.apply_batch(batch))?;
        *gathered = Gathered::default();
        Ok(())
    }

    fn gathered(&self) -> RwLockReadGuard<'_, Gathered> {
        self.gathered.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn gathered_mut(&self) -> RwLockWriteGuard<'_, Gathered> {
        self.gathered.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entries that begin with `prefix`, from the key `from` on.
    pub(crate) fn scan(&self, prefix: &[u8], from: &[u8]) -> Scan {
        let end = match key::after(prefix) {
            Some(end) => Bound::Excluded(end),
            None => Bound::Unbounded,
        };
        let failed = self.put_all_into_sled().err();
        Scan { inner: self.db.range::<Vec<u8>, _>((Bound::Included(from.to_vec()), end)), failed }
    }

    /// The entries that begin with `prefix`, from the last one on that is not after `from`.
    pub(crate) fn scan_from_floor(&self, prefix: &[u8], from: &[u8]) -> Result<Scan, StoreError> {
        self.put_all_into_sled()?;
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
    /// Why the walk cannot begin.
    failed: Option<StoreError>,
}

impl Scan {
    /// The next entry's key and value, read in place.
    pub(crate) fn next_with<T>(
        &mut self,
        read: impl FnOnce(&[u8], &[u8]) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
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

    #[test]
    fn what_is_gathered_is_read_walked_over_and_kept_like_what_is_in_sled() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 1 << 20).unwrap();
        let change = |changes: &[(u8, Option<u8>)]| {
            let mut batch = Batch::default();
            for (key, value) in changes {
                match value {
                    Some(value) => batch.put(vec![7, *key], vec![*value]),
                    None => batch.delete(vec![7, *key]),
                }
            }
            store.apply(batch).unwrap();
        };
        change(&[(1, Some(1)), (2, Some(2)), (3, Some(3))]);
        store.flush().unwrap();
        change(&[(1, Some(9)), (2, None), (4, Some(4))]);
        change(&[(4, None), (5, Some(5))]);
        let get = |store: &Store, key: u8| store.get(&[7, key]).unwrap().map(|value| value[0]);
        let expected = [(1, Some(9)), (2, None), (3, Some(3)), (4, None), (5, Some(5))];
        for (key, value) in expected {
            assert_eq!(get(&store, key), value, "{key}");
        }
        let mut scan = store.scan(&[7], &[7]);
        let walked: Vec<u8> = std::iter::from_fn(|| scan.next_with(|key, _| Ok(key[1])).unwrap()).collect();
        assert_eq!(walked, [1, 3, 5]);
        change(&[(3, None)]);
        drop(scan);
        drop(store);
        let again = Store::open(folder.path(), 1 << 20).unwrap();
        assert_eq!((get(&again, 3), get(&again, 5)), (None, Some(5)));
    }

    #[test]
    fn no_more_gathers_than_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 1 << 20).unwrap();
        for key in 0..40_u8 {
            let mut batch = Batch::default();
            batch.put(vec![7, key], vec![0; GATHERED_BYTES / 16]);
            store.apply(batch).unwrap();
            assert!(store.gathered().bytes < GATHERED_BYTES);
        }
        assert_eq!(store.get(&[7, 0]).unwrap().map(|value| value.len()), Some(GATHERED_BYTES / 16));
    }
}
