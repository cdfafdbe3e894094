//! Walks over indexes: one entry after the other, the union of some, and where several meet.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::index::{Index, Scan};
use crate::store::key::{self, Place};
use crate::store::{Store, StoreError};

/// How many entries are stepped over before a walk jumps.
const STEPS_BEFORE_JUMP: usize = 8;

/// A walk over the places of one index prefix, in their order.
struct Cursor<'a> {
    prefix: Vec<u8>,
    scan: Scan<'a>,
    here: Option<Place>,
}

impl<'a> Cursor<'a> {
    fn open(store: &'a Store, index: &Index, prefix: Vec<u8>, from: Place) -> Result<Self, StoreError> {
        let scan = index.scan(store, &prefix, &key::with_place(prefix.clone(), from))?;
        let mut cursor = Self { prefix, scan, here: None };
        cursor.step()?;
        Ok(cursor)
    }

    fn step(&mut self) -> Result<(), StoreError> {
        let key = self.scan.next_key()?;
        let place = |key: Vec<u8>| {
            Place::at_end_of(&key).ok_or_else(|| StoreError("an index key holds no place".into()))
        };
        self.here = key.map(place).transpose()?;
        Ok(())
    }

    /// Goes to the first place that is not before `to`.
    fn seek(&mut self, to: Place) -> Result<(), StoreError> {
        for _ in 0..STEPS_BEFORE_JUMP {
            if self.here.is_none_or(|here| here >= to) {
                return Ok(());
            }
            self.step()?;
        }
        if self.here.is_some_and(|here| here < to) {
            self.scan.seek(&key::with_place(self.prefix.clone(), to))?;
            self.step()?;
        }
        Ok(())
    }
}

/// The places of any of some prefixes, each once.
pub(crate) struct Union<'a> {
    cursors: Vec<Cursor<'a>>,
    line: BinaryHeap<Reverse<(Place, usize)>>,
}

impl<'a> Union<'a> {
    pub(crate) fn open(
        store: &'a Store,
        index: &Index,
        prefixes: impl IntoIterator<Item = Vec<u8>>,
        from: Place,
    ) -> Result<Self, StoreError> {
        let mut union = Self { cursors: Vec::new(), line: BinaryHeap::new() };
        for prefix in prefixes {
            let cursor = Cursor::open(store, index, prefix, from)?;
            if let Some(here) = cursor.here {
                union.line.push(Reverse((here, union.cursors.len())));
                union.cursors.push(cursor);
            }
        }
        Ok(union)
    }

    pub(crate) fn here(&self) -> Option<Place> {
        self.line.peek().map(|Reverse((place, _))| *place)
    }

    fn seek(&mut self, to: Place) -> Result<(), StoreError> {
        while let Some(Reverse((place, index))) = self.line.peek().copied() {
            if place >= to {
                break;
            }
            self.line.pop();
            self.cursors[index].seek(to)?;
            if let Some(here) = self.cursors[index].here {
                self.line.push(Reverse((here, index)));
            }
        }
        Ok(())
    }

    /// Goes past the place where it is.
    fn step(&mut self) -> Result<(), StoreError> {
        let Some(place) = self.here() else { return Ok(()) };
        while let Some(Reverse((same, index))) = self.line.peek().copied() {
            if same != place {
                break;
            }
            self.line.pop();
            self.cursors[index].step()?;
            if let Some(here) = self.cursors[index].here {
                self.line.push(Reverse((here, index)));
            }
        }
        Ok(())
    }
}

/// The places that all of some unions have.
pub(crate) struct Meeting<'a> {
    unions: Vec<Union<'a>>,
}

impl<'a> Meeting<'a> {
    /// Without any union there is no place.
    pub(crate) fn new(unions: Vec<Union<'a>>) -> Self {
        Self { unions }
    }

    /// The next place of all, in order.
    pub(crate) fn next(&mut self) -> Result<Option<Place>, StoreError> {
        let Some(mut target) = self.unions.first().and_then(Union::here) else { return Ok(None) };
        let mut agreeing = 0;
        let mut turn = 0;
        while agreeing < self.unions.len() {
            let union = &mut self.unions[turn];
            union.seek(target)?;
            match union.here() {
                None => return Ok(None),
                Some(here) if here == target => agreeing += 1,
                Some(here) => {
                    target = here;
                    agreeing = 1;
                }
            }
            turn = (turn + 1) % self.unions.len();
        }
        self.unions[0].step()?;
        Ok(Some(target))
    }
}
