//! The replies under a root, oldest first.

use waxlog_nostr::{EventId, Filter};

use super::fields::ThreadPage;
use super::{matches, Reader};
use crate::live::Row;
use crate::store::key::{self, Place};
use crate::store::StoreError;

/// How many replies a page has if it does not say, and at most.
const LIMITS: (usize, usize) = (100, 500);

impl Reader<'_> {
    /// The replies of a thread up to a depth; the root itself is not one.
    pub(crate) fn thread(&self, filter: &Filter, page: &ThreadPage) -> Result<Vec<Row>, StoreError> {
        let mut rows = Vec::new();
        let limit = filter.limit.unwrap_or(LIMITS.0).min(LIMITS.1);
        let Ok(root) = page.root.parse::<EventId>() else { return Ok(rows) };
        // A nested reply belongs to the thread whatever its tags are; the rest of the filter holds.
        let mut filter = filter.clone();
        filter.tags.remove(&'e');
        let prefix = key::by_thread(&root);
        let from = match page.after {
            Some((created_at, Some(id))) => {
                key::with_place(prefix.clone(), key::in_thread(created_at, &id, u64::MAX))
            }
            Some((created_at, None)) => key::with_place(prefix.clone(), key::thread_after(created_at)),
            None => prefix.clone(),
        };
        let mut scan = self.index.scan(self.store, &prefix, &from)?;
        while rows.len() < limit {
            let Some(key) = scan.next_key()? else { break };
            let record = Place::at_end_of(&key).map(|place| self.at(place)).transpose()?.flatten();
            let Some(record) = record else { continue };
            let is_in = record
                .thread
                .is_some_and(|thread| thread.root == root && u32::from(thread.depth) <= page.max_depth);
            if is_in && matches(&filter, &record) && self.shows(&record) {
                rows.push(Row { event: record.event, channel: record.channel });
            }
        }
        Ok(rows)
    }
}
