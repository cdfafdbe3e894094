//! Reads: a request's gates, its filters one by one, and what of it the asker may see.

pub(crate) mod feed;
pub(crate) mod fields;
pub(crate) mod gate;
mod plan;
pub(crate) mod search;
mod stream;
pub(crate) mod thread;
pub(crate) mod window;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::RwLock;

use waxlog_nostr::channel::ChannelId;
use waxlog_nostr::{EventId, Filter, Keys};

use crate::asker::{Asker, Via};
use crate::desk::{shared, Scope};
use crate::index::Index;
use crate::kinds;
use crate::live::Row;
use crate::reply::{Refusal, NOT_A_MEMBER};
use crate::rules::find;
use crate::state::State;
use crate::store::key::{self, Place};
use crate::store::record::{Record, Stored};
use crate::store::{Store, StoreError};
use fields::{Fields, Page};

/// How many events one filter gives at most.
pub const MAX_LIMIT: usize = 1000;
/// How many events a search over HTTP gives if it does not say, and at most.
const SEARCH_LIMITS: (usize, usize) = (100, 500);
/// How many candidates a count looks at that must be seen one by one for the asker.
const MAX_GATED_CANDIDATES: u64 = 5000;
/// How many candidates any count looks at.
const MAX_CANDIDATES: u64 = 200_000;
const MIXED_SEARCH: &str = "mixed search and non-search filters not supported";
const TOO_WIDE: &str = "count filter requires narrower constraints";

/// Why a read gives nothing.
pub(crate) enum Failure {
    Refused(Refusal),
    Store(StoreError),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// One read by one asker.
pub(crate) struct Reader<'a> {
    pub(crate) store: &'a Store,
    pub(crate) index: &'a Index,
    pub(crate) state: &'a RwLock<State>,
    pub(crate) keys: &'a Keys,
    pub(crate) asker: &'a Asker,
    /// Seconds since 1970.
    pub(crate) now: u64,
    readable: RefCell<HashMap<ChannelId, bool>>,
}

/// What of a filter's events is wanted.
#[derive(Default)]
pub(crate) struct Wanted<'a> {
    pub(crate) limit: usize,
    /// How many of them are left out first.
    pub(crate) offset: usize,
    /// Only those after this one.
    pub(crate) after: Option<(u64, EventId)>,
    /// Only those that are stored in this channel.
    pub(crate) channel: Option<ChannelId>,
    /// Only those that pass this.
    pub(crate) accept: Option<&'a dyn Fn(&Record) -> bool>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(
        store: &'a Store,
        index: &'a Index,
        state: &'a RwLock<State>,
        keys: &'a Keys,
        asker: &'a Asker,
        now: u64,
    ) -> Self {
        Self { store, index, state, keys, asker, now, readable: RefCell::default() }
    }

    /// The scope of a subscription, if the asker may have it.
    pub(crate) fn scope(&self, filters: &[Filter]) -> Result<Scope, Refusal> {
        match gate::one_channel(filters) {
            Some(channel) if self.may_read(&channel) => Ok(Scope::Channel(channel)),
            Some(_) => Err(Refusal::restricted(NOT_A_MEMBER)),
            None => gate::pass(filters, self.asker, false).map(|()| Scope::Global),
        }
    }

    pub(crate) fn query(&self, filters: &[Filter]) -> Result<Vec<Row>, Failure> {
        match self.asker.via {
            Via::Socket => self.query_socket(filters),
            Via::Http => self.query_http(filters),
        }
    }

    fn query_socket(&self, filters: &[Filter]) -> Result<Vec<Row>, Failure> {
        let channel = match self.scope(filters)? {
            Scope::Channel(channel) => Some(channel),
            Scope::Global => None,
        };
        let searches = filters.iter().filter(|filter| fields::is_search(filter)).count();
        if searches > 0 && searches < filters.len() {
            return Err(Refusal::bad_request(format!("error: {MIXED_SEARCH}")).into());
        }
        let mut seen = HashSet::new();
        let mut rows = Vec::new();
        for filter in filters {
            let limit = filter.limit.unwrap_or(MAX_LIMIT).min(MAX_LIMIT);
            let wanted = Wanted { limit, channel, ..Wanted::default() };
            let found = match searches > 0 {
                true => self.search(filter, &wanted, false)?,
                false => self.find(filter, &wanted)?,
            };
            rows.extend(found.into_iter().filter(|row| seen.insert(row.event.id)));
        }
        Ok(rows)
    }

    fn query_http(&self, filters: &[Filter]) -> Result<Vec<Row>, Failure> {
        let fields = filters.iter().map(Fields::read).collect::<Result<Vec<_>, Refusal>>()?;
        gate::pass(filters, self.asker, false)?;
        let searches = filters.iter().filter(|filter| fields::is_search(filter)).count();
        if searches > 0 && searches < filters.len() {
            return Err(Refusal::bad_request(MIXED_SEARCH).into());
        }
        let (mut extended, mut plain) = (Vec::new(), Vec::new());
        for (filter, fields) in filters.iter().zip(&fields) {
            if self.is_shut_out(filter) {
                continue;
            }
            match &fields.page {
                Page::Window(window) => extended.extend(self.window(filter, window, fields)?),
                Page::Feed(types) => extended.extend(self.feed(filter, types)?),
                Page::Thread(thread) => extended.extend(self.thread(filter, thread)?),
                Page::Plain if fields::is_search(filter) => {
                    let (default, max) = SEARCH_LIMITS;
                    let limit = filter.limit.unwrap_or(default).min(max);
                    let offset = fields.offset(limit);
                    plain.extend(self.search(
                        filter,
                        &Wanted { limit, offset, ..Wanted::default() },
                        fields.prefix,
                    )?);
                }
                Page::Plain => {
                    let limit = filter.limit.unwrap_or(MAX_LIMIT).min(MAX_LIMIT);
                    let (offset, after) = (fields.offset(limit), fields.after);
                    plain.extend(self.find(filter, &Wanted { limit, offset, after, ..Wanted::default() })?);
                }
            }
        }
        extended.extend(plain);
        Ok(extended)
    }

    /// How many events the filters have, each for itself. The gates are those of reads; limits are not
    /// looked at.
    pub(crate) fn count(&self, filters: &[Filter]) -> Result<u64, Failure> {
        gate::pass(filters, self.asker, true)?;
        let mut sum = 0;
        for filter in filters.iter().filter(|filter| !self.is_shut_out(filter)) {
            if fields::is_search(filter) {
                let wanted = Wanted { limit: MAX_LIMIT, ..Wanted::default() };
                sum += self.search(filter, &wanted, false)?.len() as u64;
                continue;
            }
            let is_gated = |kinds: &Vec<u16>| kinds.iter().copied().any(kinds::is_gated_row_by_row);
            let max = match filter.kinds.as_ref().is_none_or(is_gated) {
                true => MAX_GATED_CANDIDATES,
                false => MAX_CANDIDATES,
            };
            let mut candidates = 0;
            self.each(filter, None, &mut |record| {
                candidates += 1;
                sum += u64::from(self.shows(&record));
                candidates <= max
            })?;
            if candidates > max {
                return Err(self.too_wide().into());
            }
        }
        Ok(sum)
    }

    fn too_wide(&self) -> Refusal {
        match self.asker.via {
            Via::Socket => Refusal::restricted(format!("restricted: {TOO_WIDE}")),
            Via::Http => Refusal::bad_request(TOO_WIDE),
        }
    }

    /// The events of a filter that the asker may see, newest first.
    pub(crate) fn find(&self, filter: &Filter, wanted: &Wanted<'_>) -> Result<Vec<Row>, StoreError> {
        let mut rows = Vec::new();
        let mut left_out = 0;
        if wanted.limit == 0 {
            return Ok(rows);
        }
        self.each(filter, wanted.after, &mut |record| {
            if self.is_wanted(&record, wanted) {
                match left_out < wanted.offset {
                    true => left_out += 1,
                    false => rows.push(Row { event: record.event, channel: record.channel }),
                }
            }
            rows.len() < wanted.limit
        })?;
        Ok(rows)
    }

    fn is_wanted(&self, record: &Record, wanted: &Wanted<'_>) -> bool {
        let is_after = |after: &(u64, EventId)| {
            let (created_at, id) = after;
            record.event.created_at < *created_at
                || (record.event.created_at == *created_at && record.event.id > *id)
        };
        wanted.after.as_ref().is_none_or(is_after)
            && wanted.channel.is_none_or(|channel| record.channel == Some(channel))
            && wanted.accept.is_none_or(|accept| accept(record))
            && self.shows(record)
    }

    /// Whether the asker may see an event.
    pub(crate) fn shows(&self, record: &Record) -> bool {
        record.channel.is_none_or(|channel| self.may_read(&channel))
            && gate::shows(&record.event, &self.asker.pubkey)
    }

    fn may_read(&self, channel: &ChannelId) -> bool {
        let known = self.readable.borrow().get(channel).copied();
        known.unwrap_or_else(|| {
            let may_read = shared(self.state).admits(channel, &self.asker.pubkey);
            self.readable.borrow_mut().insert(*channel, may_read);
            may_read
        })
    }

    /// Whether a filter names channels and the asker may read none of them.
    fn is_shut_out(&self, filter: &Filter) -> bool {
        let may_read = |value: &String| value.parse().is_ok_and(|channel| self.may_read(&channel));
        filter.tags.get(&'h').is_some_and(|values| !values.is_empty() && !values.iter().any(may_read))
    }

    /// Goes over all events that answer a filter, newest first, until `visit` says no. Who may see them is
    /// not looked at.
    pub(crate) fn each(
        &self,
        filter: &Filter,
        after: Option<(u64, EventId)>,
        visit: &mut dyn FnMut(Record) -> bool,
    ) -> Result<(), StoreError> {
        if let Some(ids) = &filter.ids {
            return self.each_of(ids, filter, visit);
        }
        let from = match (after, filter.until) {
            (Some((created_at, id)), _) => Place::at(created_at, &id),
            (None, Some(until)) => Place::until(until),
            (None, None) => Place::FIRST,
        };
        let mut places =
            plan::places(self.store, self.index, filter, &shared(self.state).kinds().clone(), from)?;
        while let Some(place) = places.next()? {
            if filter.since.is_some_and(|since| place.created_at() < since) {
                break;
            }
            let Some(record) = self.at(place)? else { continue };
            if matches(filter, &record) && !visit(record) {
                break;
            }
        }
        Ok(())
    }

    fn each_of(
        &self,
        ids: &[EventId],
        filter: &Filter,
        visit: &mut dyn FnMut(Record) -> bool,
    ) -> Result<(), StoreError> {
        let mut records = Vec::new();
        for id in ids.iter().collect::<HashSet<_>>() {
            let found = find(self.store, id)?.and_then(|(_, stored)| stored.here());
            records.extend(found.filter(|record| matches(filter, record)));
        }
        records.sort_by_key(|record| (std::cmp::Reverse(record.event.created_at), record.event.id));
        for record in records {
            if !visit(record) {
                break;
            }
        }
        Ok(())
    }

    /// The event at a place, if it is still there.
    pub(crate) fn at(&self, place: Place) -> Result<Option<Record>, StoreError> {
        Ok(self.store.read(&key::body(place.seq), Stored::from_bytes)?.and_then(Stored::here))
    }
}

/// Whether an event answers a filter, where it is stored.
pub(crate) fn matches(filter: &Filter, record: &Record) -> bool {
    let channel = record.channel.map(|channel| channel.to_string());
    filter.matches(&record.event, channel.as_deref())
}
