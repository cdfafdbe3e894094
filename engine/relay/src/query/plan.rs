//! Which indexes answer a filter: all that restrict it, walked together, so that the narrowest sets the pace.

use std::collections::BTreeSet;

use waxlog_nostr::Filter;

use super::stream::{Meeting, Union};
use crate::index::Index;
use crate::store::key::{self, Place};
use crate::store::{Store, StoreError};

/// How many prefixes one part of a filter may open. A part that needs more is looked at event by event.
const MAX_PREFIXES: usize = 16_384;

/// The places of all events that may answer the filter, and few others, from `from` on.
pub(crate) fn places<'a>(
    store: &'a Store,
    index: &Index,
    filter: &Filter,
    known_kinds: &BTreeSet<u16>,
    from: Place,
) -> Result<Meeting<'a>, StoreError> {
    let kinds: Vec<u16> = match &filter.kinds {
        Some(kinds) => {
            kinds.iter().copied().filter(|kind| known_kinds.contains(kind)).collect::<BTreeSet<_>>()
        }
        None => known_kinds.clone(),
    }
    .into_iter()
    .collect();
    let mut unions = Vec::new();
    for (letter, values) in &filter.tags {
        let values: BTreeSet<_> = values.iter().collect();
        if values.len().saturating_mul(kinds.len()) <= MAX_PREFIXES {
            let prefixes =
                values.iter().flat_map(|value| kinds.iter().map(|kind| key::by_tag(*letter, value, *kind)));
            unions.push(Union::open(store, index, prefixes, from)?);
        }
    }
    if let Some(authors) = &filter.authors {
        let authors: BTreeSet<_> = authors.iter().collect();
        if authors.len().saturating_mul(kinds.len()) <= MAX_PREFIXES {
            let prefixes =
                authors.iter().flat_map(|author| kinds.iter().map(|kind| key::by_author(author, *kind)));
            unions.push(Union::open(store, index, prefixes, from)?);
        }
    }
    if unions.is_empty() {
        unions.push(Union::open(store, index, kinds.iter().map(|kind| key::by_kind(*kind)), from)?);
    }
    Ok(Meeting::new(unions))
}
