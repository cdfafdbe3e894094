//! `messages get`, `thread` and `search`.

use std::cmp::Reverse;

use structopt::StructOpt;
use waxlog_nostr::channel::ChannelId;
use waxlog_nostr::kind::{DIFF_MESSAGE, EDIT, FORUM_COMMENT, FORUM_POST, MESSAGE, MESSAGE_V2};
use waxlog_nostr::{EventId, Filter, PublicKey};

use super::super::context::Context;
use super::super::failure::Failure;
use super::super::output::{event_list, Output};
use super::super::users::{named, shown_name};

/// The most messages of one list.
const MAX_GET: usize = 200;
/// The most messages of one thread.
const MAX_THREAD: usize = 500;
/// The most messages that a search finds.
const MAX_SEARCH: usize = 100;
/// How many users of one name an error lists.
const SHOWN_USERS: usize = 5;

// (Doc comments on these structs would replace those of the commands.)
#[derive(StructOpt)]
pub(crate) struct Get {
    /// The channel
    #[structopt(long, value_name = "UUID")]
    channel: ChannelId,
    /// How many, at most 200
    #[structopt(long, value_name = "COUNT", default_value = "50")]
    limit: usize,
    /// Not newer than this, in seconds since 1970
    #[structopt(long, value_name = "SECONDS")]
    before: Option<u64>,
    /// Not older than this, in seconds since 1970
    #[structopt(long, value_name = "SECONDS")]
    since: Option<u64>,
    /// Kinds of events, separated by commas [default: messages, diffs, posts and comments]
    #[structopt(long, value_name = "LIST")]
    kinds: Option<String>,
}

#[derive(StructOpt)]
pub(crate) struct ThreadOf {
    /// The channel
    #[structopt(long, value_name = "UUID")]
    channel: ChannelId,
    /// The message that began it
    #[structopt(long, value_name = "ID")]
    event: EventId,
    /// How many replies, at most 500
    #[structopt(long, value_name = "COUNT", default_value = "100")]
    limit: usize,
    /// How deep replies to replies may be
    #[structopt(long, value_name = "DEPTH")]
    depth_limit: Option<u32>,
}

#[derive(StructOpt)]
pub(crate) struct Search {
    /// Words
    #[structopt(long, value_name = "TEXT", allow_hyphen_values = true)]
    query: Option<String>,
    /// Who wrote it: hex, npub or a name
    #[structopt(long, value_name = "WHO")]
    author: Option<String>,
    /// Not older than this, in seconds since 1970
    #[structopt(long, value_name = "SECONDS")]
    since: Option<u64>,
    /// How many, at most 100
    #[structopt(long, value_name = "COUNT", default_value = "20")]
    limit: usize,
}

impl Get {
    pub(super) fn run(self, context: &Context) -> Result<Output, Failure> {
        let mut filter = Filter::new()
            .kinds(kinds(self.kinds.as_deref()))
            .tag('h', [self.channel.to_string()])
            .limit(self.limit.min(MAX_GET));
        filter.until = self.before;
        filter.since = self.since;
        let mut events = context.query(&[filter])?;
        events.sort_by_key(|event| event.created_at);
        Ok(event_list(&events, context.format()).into())
    }
}

fn kinds(list: Option<&str>) -> Vec<u16> {
    let read = |list: &str| list.split(',').filter_map(|kind| kind.trim().parse().ok()).collect();
    list.map(read)
        .filter(|kinds: &Vec<_>| !kinds.is_empty())
        .unwrap_or_else(|| vec![MESSAGE, MESSAGE_V2, DIFF_MESSAGE, FORUM_POST, FORUM_COMMENT])
}

impl ThreadOf {
    pub(super) fn run(self, context: &Context) -> Result<Output, Failure> {
        let mut replies = Filter::new()
            .kinds([MESSAGE, MESSAGE_V2, EDIT, DIFF_MESSAGE, FORUM_COMMENT])
            .tag('h', [self.channel.to_string()])
            .tag('e', [self.event.to_hex()])
            .limit(self.limit.min(MAX_THREAD));
        if let Some(depth) = self.depth_limit {
            replies = replies.extension("depth_limit", depth);
        }
        let root = Filter::new().ids([self.event]).limit(1);
        let mut events = context.query(&[replies, root])?;
        events.sort_by_key(|event| (event.created_at, event.id != self.event));
        events.dedup_by_key(|event| event.id);
        Ok(event_list(&events, context.format()).into())
    }
}

impl Search {
    pub(super) fn run(self, context: &Context) -> Result<Output, Failure> {
        if self.query.is_none() && self.author.is_none() {
            return Err(Failure::Usage("give --query, --author or both".to_owned()));
        }
        let mut filter = Filter::new()
            .kinds([MESSAGE, MESSAGE_V2, FORUM_POST, FORUM_COMMENT])
            .limit(self.limit.min(MAX_SEARCH));
        filter.since = self.since;
        filter.search = self.query;
        if let Some(author) = self.author {
            filter = filter.authors([author_of(context, &author)?]);
        }
        let by_relevance = filter.search.is_some();
        let mut events = context.query(&[filter])?;
        if !by_relevance {
            events.sort_by_key(|event| Reverse(event.created_at));
        }
        Ok(event_list(&events, context.format()).into())
    }
}

/// Who is meant: a key, or the only user of a name.
pub(crate) fn author_of(context: &Context, who: &str) -> Result<PublicKey, Failure> {
    match PublicKey::parse(who) {
        Ok(key) => return Ok(key),
        Err(error) if who.starts_with("npub1") => return Err(Failure::Usage(error.to_string())),
        Err(_) => {}
    }
    let wanted = who.to_lowercase();
    let mut users = named(context, who)?;
    users.retain(|(_, profile)| {
        ["display_name", "name"].iter().any(|key| {
            profile.get(*key).and_then(|name| name.as_str()).is_some_and(|name| name.to_lowercase() == wanted)
        })
    });
    users.dedup_by_key(|(key, _)| *key);
    match users.as_slice() {
        [(key, _)] => Ok(*key),
        [] => Err(Failure::Usage(format!("no user is called {who:?}; give a key, or the whole name"))),
        several => {
            let some = several.iter().take(SHOWN_USERS);
            let shown: Vec<_> =
                some.map(|(key, profile)| format!("{key} ({})", shown_name(profile))).collect();
            let count = several.len();
            Err(Failure::Usage(format!("{count} users are called {who:?}, give a key: {}", shown.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_that_are_none_are_passed_over_and_without_any_it_is_the_usual_ones() {
        assert_eq!(kinds(Some("40002, 9,zzz,70000")), [40_002, 9]);
        for none in [None, Some(""), Some("zzz")] {
            assert_eq!(kinds(none), [9, 40_002, 40_008, 45_001, 45_003]);
        }
    }
}
