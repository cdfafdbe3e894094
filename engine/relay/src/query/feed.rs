//! What concerns a reader: mentions, requests for action, and what goes on in the channels.

use std::collections::HashSet;

use waxlog_nostr::kind::*;
use waxlog_nostr::Filter;

use super::{Reader, Wanted};
use crate::live::Row;
use crate::store::record::Record;
use crate::store::StoreError;

/// How many events a feed has if it does not say, and at most.
const LIMITS: (usize, usize) = (20, 100);
const MENTIONS: [u16; 12] = [
    MESSAGE,
    MESSAGE_V2,
    NOTE,
    FORUM_POST,
    FORUM_COMMENT,
    GIT_PULL_REQUEST,
    GIT_PULL_REQUEST_UPDATE,
    GIT_ISSUE,
    GIT_STATUS_OPEN,
    GIT_STATUS_MERGED,
    GIT_STATUS_CLOSED,
    GIT_STATUS_DRAFT,
];
/// A workflow waits for an approval; something is due.
const NEEDS_ACTION: [u16; 2] = [46_010, 40_007];
/// Messages and posts, and an agent's job that was asked for, goes on or is done.
const ACTIVITY: [u16; 6] = [MESSAGE, MESSAGE_V2, FORUM_POST, 43_001, 43_003, 43_004];

impl Reader<'_> {
    /// The events of each sort in the order of the sorts, each event once.
    pub(crate) fn feed(&self, filter: &Filter, types: &[String]) -> Result<Vec<Row>, StoreError> {
        let limit = filter.limit.unwrap_or(LIMITS.0).min(LIMITS.1);
        let mut seen = HashSet::new();
        let mut rows = Vec::new();
        for name in types {
            let (kinds, is_personal) = match &**name {
                "mentions" => (&MENTIONS[..], true),
                "needs_action" => (&NEEDS_ACTION[..], true),
                "activity" | "agent_activity" => (&ACTIVITY[..], false),
                _ => continue,
            };
            let mut sort = Filter::new().kinds(kinds.iter().copied());
            (sort.since, sort.until) = (filter.since, filter.until);
            if is_personal {
                sort = sort.tag('p', [self.asker.pubkey.to_hex()]);
            }
            let is_fresh = |record: &Record| {
                (is_personal || record.channel.is_some()) && !seen.contains(&record.event.id)
            };
            let wanted = Wanted { limit: limit - rows.len(), accept: Some(&is_fresh), ..Wanted::default() };
            let found = self.find(&sort, &wanted)?;
            seen.extend(found.iter().map(|row| row.event.id));
            rows.extend(found);
        }
        Ok(rows)
    }
}
