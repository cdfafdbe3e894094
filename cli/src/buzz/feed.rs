//! `feed`: what names you.

use std::cmp::Reverse;

use structopt::StructOpt;
use waxlog_nostr::Filter;

use super::context::Context;
use super::failure::Failure;
use super::output::{event_list, Output};

/// The most events of one list.
const MAX_FEED: usize = 50;
/// What can be asked for.
const TYPES: [&str; 4] = ["mentions", "needs_action", "activity", "agent_activity"];

// Lists what names you. (A doc comment here would replace that of the group.)
#[derive(StructOpt)]
#[structopt(after_help = "EXAMPLE:\n    waxlog feed get --types mentions")]
pub(crate) enum Feed {
    /// Lists what names you, newest first.
    #[structopt(after_help = "EXAMPLE:\n    waxlog feed get --types mentions,needs_action --limit 10")]
    Get {
        /// Not older than this, in seconds since 1970
        #[structopt(long, value_name = "SECONDS")]
        since: Option<u64>,
        /// How many, at most 50
        #[structopt(long, value_name = "COUNT", default_value = "20")]
        limit: usize,
        /// Of mentions, needs_action, activity and agent_activity, separated by commas
        #[structopt(long, value_name = "LIST")]
        types: Option<String>,
    },
}

impl Feed {
    pub(crate) fn run(self, context: &Context) -> Result<Output, Failure> {
        let Feed::Get { since, limit, types } = self;
        let mut filter = Filter::new().tag('p', [context.me().to_hex()]).limit(limit.min(MAX_FEED));
        filter.since = since;
        if let Some(types) = types {
            filter = filter.extension("feed_types", feed_types(&types)?);
        }
        let mut events = context.query(&[filter])?;
        events.sort_by_key(|event| Reverse(event.created_at));
        Ok(event_list(&events, context.format()).into())
    }
}

fn feed_types(list: &str) -> Result<Vec<&str>, Failure> {
    list.split(',')
        .map(str::trim)
        .map(|word| match TYPES.contains(&word) {
            true => Ok(word),
            false => Err(Failure::Usage(format!("unknown type {word:?}: use {}", TYPES.join(", ")))),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_words_of_a_list() {
        assert_eq!(feed_types("mentions, needs_action").unwrap(), ["mentions", "needs_action"]);
        for wrong in ["gossip", "", "mentions,"] {
            assert!(feed_types(wrong).is_err(), "{wrong}");
        }
    }
}
