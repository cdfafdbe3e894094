//! A walk over the index: what is gathered and all runs, as one sorted sequence.

use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::PoisonError;

use super::block::{self, Entry, BLOCK_ENTRIES};
use super::{Gathered, View};
use crate::store::{self, key, Store, StoreError};

/// A walk over the keys of one prefix.
pub(crate) struct Scan<'a> {
    prefix: Vec<u8>,
    sources: Vec<Source<'a>>,
}

/// One of the sorted sequences, read ahead by a block.
struct Source<'a> {
    ahead: VecDeque<Entry>,
    rest: Rest<'a>,
}

enum Rest<'a> {
    /// What is gathered after this key.
    Gathered { entries: Gathered, last: Vec<u8> },
    /// The blocks of a run.
    Run { store: &'a Store, number: u64, blocks: store::Scan },
}

impl<'a> Scan<'a> {
    pub(super) fn open(
        store: &'a Store,
        view: &View,
        prefix: &[u8],
        from: &[u8],
    ) -> Result<Self, StoreError> {
        let mut scan = Self { prefix: prefix.to_vec(), sources: Vec::with_capacity(view.runs.len() + 1) };
        scan.take(Rest::Gathered { entries: view.gathered.clone(), last: Vec::new() }, from)?;
        for run in view.runs.iter() {
            let number = run.number;
            let blocks = store.scan(&key::block(number, &[]), &key::block(number, &[]));
            scan.take(Rest::Run { store, number, blocks }, from)?;
        }
        Ok(scan)
    }

    fn take(&mut self, rest: Rest<'a>, from: &[u8]) -> Result<(), StoreError> {
        let mut source = Source { ahead: VecDeque::new(), rest };
        source.jump(from, &self.prefix)?;
        if !source.ahead.is_empty() {
            self.sources.push(source);
        }
        Ok(())
    }

    /// The next key.
    pub(crate) fn next_key(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        while let Some(entry) = self.next_entry()? {
            if entry.is_alive {
                return Ok(Some(entry.key));
            }
        }
        Ok(None)
    }

    /// The next key, also one that is there no more. A key that any source says is gone is gone: it never
    /// comes back.
    pub(super) fn next_entry(&mut self) -> Result<Option<Entry>, StoreError> {
        let Some(first) = self.sources.iter().filter_map(|source| source.ahead.front()).min() else {
            return Ok(None);
        };
        let mut next = first.clone();
        for source in &mut self.sources {
            while source.ahead.front().is_some_and(|entry| entry.key == next.key) {
                next.is_alive &= source.ahead.pop_front().is_some_and(|entry| entry.is_alive);
                if source.ahead.is_empty() {
                    source.read_ahead(&self.prefix)?;
                }
            }
        }
        Ok(Some(next))
    }

    /// Goes on at the first key that is not before `to`.
    pub(crate) fn seek(&mut self, to: &[u8]) -> Result<(), StoreError> {
        for source in &mut self.sources {
            let is_within = source.ahead.back().is_some_and(|last| *last.key >= *to);
            match is_within {
                true => source.skip(to),
                false if source.ahead.is_empty() => {}
                false => source.jump(to, &self.prefix)?,
            }
        }
        Ok(())
    }
}

impl Source<'_> {
    /// Goes to the first key that is not before `to`, wherever it is.
    fn jump(&mut self, to: &[u8], prefix: &[u8]) -> Result<(), StoreError> {
        self.ahead.clear();
        match &mut self.rest {
            Rest::Gathered { entries, last } => {
                let gathered = entries.read().unwrap_or_else(PoisonError::into_inner);
                let range = gathered.range::<[u8], _>((Bound::Included(to), Bound::Unbounded));
                fill(&mut self.ahead, range, prefix);
                *last = self.ahead.back().map(|entry| entry.key.clone()).unwrap_or_default();
            }
            Rest::Run { store, number, blocks } => {
                *blocks = store.scan_from_floor(&key::block(*number, &[]), &key::block(*number, to))?;
                self.read_ahead(prefix)?;
                self.skip(to);
                if self.ahead.is_empty() {
                    self.read_ahead(prefix)?;
                }
            }
        }
        Ok(())
    }

    fn skip(&mut self, to: &[u8]) {
        while self.ahead.front().is_some_and(|entry| *entry.key < *to) {
            self.ahead.pop_front();
        }
    }

    /// Reads the next entries with this prefix; none of them means that there are no more.
    fn read_ahead(&mut self, prefix: &[u8]) -> Result<(), StoreError> {
        match &mut self.rest {
            Rest::Gathered { entries, last } => {
                let gathered = entries.read().unwrap_or_else(PoisonError::into_inner);
                let range = gathered.range::<[u8], _>((Bound::Excluded(&**last), Bound::Unbounded));
                fill(&mut self.ahead, range, prefix);
                if let Some(entry) = self.ahead.back() {
                    *last = entry.key.clone();
                }
            }
            Rest::Run { blocks, .. } => {
                let Some(entries) = blocks.next_with(|_, value| block::decode(value))? else { return Ok(()) };
                // A block may begin before the prefix; only what comes after it ends the walk.
                let is_before = |entry: &Entry| !entry.key.starts_with(prefix) && *entry.key < *prefix;
                let entries = entries.into_iter().skip_while(is_before);
                self.ahead.extend(entries.take_while(|entry| entry.key.starts_with(prefix)));
            }
        }
        Ok(())
    }
}

fn fill<'e>(
    ahead: &mut VecDeque<Entry>,
    range: impl Iterator<Item = (&'e Vec<u8>, &'e bool)>,
    prefix: &[u8],
) {
    let within = range.take_while(|(key, _)| key.starts_with(prefix)).take(BLOCK_ENTRIES);
    ahead.extend(within.map(|(key, is_alive)| Entry { key: key.clone(), is_alive: *is_alive }));
}
