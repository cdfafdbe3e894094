//! A channel's top level, page by page, with what belongs to its rows.

use std::collections::HashSet;

use serde_json::json;
use waxlog_nostr::channel::ChannelId;
use waxlog_nostr::kind::{DELETE_MESSAGE, DELETION, EDIT, REACTION, WINDOW_BOUNDS};
use waxlog_nostr::{Draft, EventId, Filter};

use super::fields::{Fields, Window};
use super::{Reader, Wanted};
use crate::live::Row;
use crate::store::record::Record;
use crate::store::StoreError;
use crate::writer::summary::Replies;

/// How many rows a window has if it does not say, and at most.
const LIMITS: (usize, usize) = (50, 200);
/// How many events that touch the rows go with a window, for each of the two hops.
const MAX_AUX: usize = 2000;

impl Reader<'_> {
    /// The rows, what touches them, their summaries, and at last one event with the bounds.
    pub(crate) fn window(
        &self,
        filter: &Filter,
        window: &Window,
        fields: &Fields,
    ) -> Result<Vec<Row>, StoreError> {
        let Ok(channel) = window.channel.parse::<ChannelId>() else { return Ok(Vec::new()) };
        let limit = filter.limit.unwrap_or(LIMITS.0).min(LIMITS.1);
        let is_top =
            |record: &Record| record.thread.is_none_or(|thread| thread.depth == 1 && thread.broadcast);
        // One more than asked for tells whether there is more, also at the border of a page.
        let wanted = Wanted {
            limit: limit + 1,
            after: fields.after,
            channel: Some(channel),
            accept: Some(&is_top),
            ..Wanted::default()
        };
        let mut rows = self.find(filter, &wanted)?;
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let ids: Vec<_> = rows.iter().map(|row| row.event.id).collect();
        let bounds = self.bounds(&channel, fields, has_more, rows.last());
        if window.include_aux {
            let aux = self.touching(&ids)?;
            rows.extend(aux);
        }
        if window.include_summaries {
            for id in &ids {
                let replies = Replies::load(self.store, id)?;
                if !replies.is_empty() {
                    let event = self.keys.sign(replies.draft(&channel, id, self.now));
                    rows.push(Row { event, channel: Some(channel) });
                }
            }
        }
        rows.push(bounds);
        Ok(rows)
    }

    fn bounds(&self, channel: &ChannelId, fields: &Fields, has_more: bool, last: Option<&Row>) -> Row {
        let place = match fields.after {
            Some((until, id)) => format!("{channel}:{until}:{id}"),
            None => format!("{channel}:head"),
        };
        let cursor = last.filter(|_| has_more);
        let cursor = cursor.map(|row| json!({"created_at": row.event.created_at, "id": row.event.id}));
        let content = json!({"has_more": has_more, "next_cursor": cursor}).to_string();
        let draft = Draft::new(WINDOW_BOUNDS, content, self.now);
        let event = self.keys.sign(draft.tag(["d", &place]).tag(["h", &channel.to_string()]));
        Row { event, channel: Some(*channel) }
    }

    /// Reactions, edits and deletions of these events, and of those again.
    fn touching(&self, ids: &[EventId]) -> Result<Vec<Row>, StoreError> {
        let mut seen: HashSet<EventId> = ids.iter().copied().collect();
        let mut targets = ids.to_vec();
        let mut aux = Vec::new();
        for _ in 0..2 {
            let filter = Filter::new()
                .kinds([DELETION, REACTION, DELETE_MESSAGE, EDIT])
                .tag('e', targets.iter().map(EventId::to_hex));
            let found = self.find(&filter, &Wanted { limit: MAX_AUX, ..Wanted::default() })?;
            let found: Vec<_> = found.into_iter().filter(|row| seen.insert(row.event.id)).collect();
            targets = found.iter().map(|row| row.event.id).collect();
            aux.extend(found);
        }
        Ok(aux)
    }
}
