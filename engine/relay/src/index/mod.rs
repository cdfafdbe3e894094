//! The index: sorted keys that lead to events, most of them in blocks, the newest ones in memory.
//!
//! The store's tree pays for each of its keys, in time and in memory, whether in use or not; an event has
//! ten index keys and more. So they are gathered in memory and written as sorted runs of blocks, and runs of
//! a size are merged. What is only in memory at a kill is made anew from the events after the last run.

mod block;
mod scan;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use serde::{Deserialize, Serialize};

use crate::store::record::{pack, unpack};
use crate::store::{key, Batch, Store, StoreError};
use block::{Entry, BLOCK_ENTRIES};
pub(crate) use scan::Scan;

/// How many entries are gathered in memory before they become a run.
const GATHERED_ENTRIES: usize = 16_384;
/// How many runs of a tier become one of the next.
const RUNS_TO_MERGE: usize = 8;
/// Runs of this tier are not merged any more, so that no merge takes long.
const LAST_TIER: u8 = 1;

/// What is gathered: each key, and whether it is there or there no more.
type Gathered = Arc<RwLock<BTreeMap<Vec<u8>, bool>>>;

/// The index of a store.
pub(crate) struct Index {
    view: RwLock<View>,
    /// Runs that were merged into others and are deleted when nobody reads them any more.
    retired: Mutex<Vec<Arc<Run>>>,
}

/// What a reader walks over. It stays as it is while the index goes on.
#[derive(Clone)]
pub(crate) struct View {
    gathered: Gathered,
    runs: Arc<Vec<Arc<Run>>>,
}

/// A sorted run in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Run {
    number: u64,
    tier: u8,
}

/// Which runs count, and from which event on the index is not in them.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Manifest {
    runs: Vec<Run>,
    next_run: u64,
    next_seq: u64,
    /// Runs that were merged into others and may still be read or there.
    retired: Vec<Run>,
}

impl Index {
    /// Reads which runs there are. Returns the first event that is in none of them.
    pub(crate) fn open(store: &Store) -> Result<(Self, u64), StoreError> {
        let mut manifest = manifest(store)?;
        let mut batch = Batch::default();
        for run in std::mem::take(&mut manifest.retired) {
            delete_run(store, &mut batch, &run)?;
        }
        batch.put(key::manifest(), pack(&manifest)?);
        store.apply(batch)?;
        let runs = manifest.runs.into_iter().map(Arc::new).collect();
        let view = View { gathered: Gathered::default(), runs: Arc::new(runs) };
        Ok((Self { view: RwLock::new(view), retired: Mutex::default() }, manifest.next_seq))
    }

    /// Adds keys and takes keys away.
    pub(crate) fn change(&self, added: Vec<Vec<u8>>, removed: Vec<Vec<u8>>) {
        let view = self.view();
        let mut gathered = view.gathered.write().unwrap_or_else(PoisonError::into_inner);
        gathered.extend(added.into_iter().map(|key| (key, true)));
        gathered.extend(removed.into_iter().map(|key| (key, false)));
    }

    /// Whether so much is gathered that it should become a run.
    pub(crate) fn is_full(&self) -> bool {
        let view = self.view();
        let gathered = view.gathered.read().unwrap_or_else(PoisonError::into_inner);
        gathered.len() >= GATHERED_ENTRIES
    }

    /// Makes what is gathered a run, and merges runs if there are enough of one tier. `next_seq` is the first
    /// event that is not indexed yet.
    pub(crate) fn write_run(&self, store: &Store, next_seq: u64) -> Result<(), StoreError> {
        let view = self.view().clone();
        let mut manifest = manifest(store)?;
        let mut batch = Batch::default();
        let run = Run { number: manifest.next_run, tier: 0 };
        {
            let gathered = view.gathered.read().unwrap_or_else(PoisonError::into_inner);
            let entry =
                |(key, is_alive): (&Vec<u8>, &bool)| Ok(Entry { key: key.clone(), is_alive: *is_alive });
            put_run(&mut batch, &run, gathered.iter().map(entry))?;
        }
        manifest.next_run += 1;
        manifest.next_seq = next_seq;
        let mut runs = view.runs.to_vec();
        runs.push(Arc::new(run));
        drop(view);
        self.commit(store, batch, &mut manifest, runs)?;
        while let Some(merged) = self.merge(store, &mut manifest)? {
            log::debug!("the relay's index has merged {RUNS_TO_MERGE} runs of tier {merged}");
        }
        self.delete_unread(store, &mut manifest)
    }

    /// Merges the last runs if there are enough of one tier. Returns that tier.
    fn merge(&self, store: &Store, manifest: &mut Manifest) -> Result<Option<u8>, StoreError> {
        let view = self.view().clone();
        let Some(tier) = view.runs.last().map(|run| run.tier) else { return Ok(None) };
        let of_tier = view.runs.iter().rev().take_while(|run| run.tier == tier).count();
        if tier >= LAST_TIER || of_tier < RUNS_TO_MERGE {
            return Ok(None);
        }
        let (older, merged) = view.runs.split_at(view.runs.len() - of_tier);
        let part = View { gathered: Gathered::default(), runs: Arc::new(merged.to_vec()) };
        let mut scan = Scan::open(store, &part, &[], &[])?;
        // What is there no more is told only to runs below that may still hold it.
        let is_needed = |entry: &Entry| entry.is_alive || !older.is_empty();
        let entries = std::iter::from_fn(|| scan.next_entry().transpose());
        let entries = entries.filter(|entry| entry.as_ref().map_or(true, is_needed));
        let mut batch = Batch::default();
        let run = Run { number: manifest.next_run, tier: tier + 1 };
        put_run(&mut batch, &run, entries)?;
        manifest.next_run += 1;
        manifest.retired.extend(merged.iter().map(|run| **run));
        self.retired.lock().unwrap_or_else(PoisonError::into_inner).extend(merged.iter().cloned());
        let runs = older.iter().cloned().chain([Arc::new(run)]).collect();
        self.commit(store, batch, manifest, runs)?;
        Ok(Some(tier))
    }

    fn commit(
        &self,
        store: &Store,
        mut batch: Batch,
        manifest: &mut Manifest,
        runs: Vec<Arc<Run>>,
    ) -> Result<(), StoreError> {
        manifest.runs = runs.iter().map(|run| **run).collect();
        batch.put(key::manifest(), pack(manifest)?);
        store.apply(batch)?;
        let view = View { gathered: Gathered::default(), runs: Arc::new(runs) };
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = view;
        Ok(())
    }

    /// Deletes runs that were merged into others and that no reader walks over.
    fn delete_unread(&self, store: &Store, manifest: &mut Manifest) -> Result<(), StoreError> {
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        let (unread, read): (Vec<_>, Vec<_>) = retired.drain(..).partition(|run| Arc::strong_count(run) == 1);
        *retired = read;
        if unread.is_empty() {
            return Ok(());
        }
        let mut batch = Batch::default();
        for run in &unread {
            delete_run(store, &mut batch, run)?;
        }
        manifest.retired.retain(|run| !unread.iter().any(|gone| **gone == *run));
        batch.put(key::manifest(), pack(manifest)?);
        store.apply(batch)
    }

    /// The keys that begin with `prefix`, from `from` on, each once.
    pub(crate) fn scan<'a>(
        &self,
        store: &'a Store,
        prefix: &[u8],
        from: &[u8],
    ) -> Result<Scan<'a>, StoreError> {
        Scan::open(store, &self.view().clone(), prefix, from)
    }

    fn view(&self) -> RwLockReadGuard<'_, View> {
        self.view.read().unwrap_or_else(PoisonError::into_inner)
    }
}

fn manifest(store: &Store) -> Result<Manifest, StoreError> {
    Ok(store.read(&key::manifest(), |bytes| unpack(bytes))?.unwrap_or_default())
}

fn put_run(
    batch: &mut Batch,
    run: &Run,
    entries: impl Iterator<Item = Result<Entry, StoreError>>,
) -> Result<(), StoreError> {
    let mut block = Vec::with_capacity(BLOCK_ENTRIES);
    let mut put = |block: &mut Vec<Entry>| {
        if let Some(first) = block.first() {
            batch.put(key::block(run.number, &first.key), block::encode(block));
            block.clear();
        }
    };
    for entry in entries {
        block.push(entry?);
        if block.len() == BLOCK_ENTRIES {
            put(&mut block);
        }
    }
    put(&mut block);
    Ok(())
}

fn delete_run(store: &Store, batch: &mut Batch, run: &Run) -> Result<(), StoreError> {
    let prefix = key::block(run.number, &[]);
    let mut blocks = store.scan(&prefix, &prefix);
    while let Some(key) = blocks.next_with(|key, _| Ok(key.to_vec()))? {
        batch.delete(key);
    }
    Ok(())
}
