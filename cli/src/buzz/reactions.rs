//! `reactions`: react to an event, take a reaction back, count them.

use std::collections::BTreeMap;

use serde_json::json;
use structopt::StructOpt;
use waxlog_nostr::build::reaction;
use waxlog_nostr::kind::REACTION;
use waxlog_nostr::{Event, EventId, Filter, PublicKey};

use super::context::Context;
use super::failure::Failure;
use super::output::Output;

/// What an empty reaction means.
const LIKE: &str = "+";

// Reacts to messages. (A doc comment here would replace that of the group.)
#[derive(StructOpt)]
#[structopt(after_help = "EXAMPLE:\n    waxlog reactions add --event ID --emoji 👍")]
pub(crate) enum Reactions {
    /// Reacts to an event.
    #[structopt(after_help = "EXAMPLE:\n    waxlog reactions add --event ID --emoji 👍")]
    Add {
        /// The event
        #[structopt(long, value_name = "ID")]
        event: EventId,
        /// The emoji, or the name of a custom one
        #[structopt(long, value_name = "EMOJI")]
        emoji: String,
        /// The picture of a custom emoji
        #[structopt(long, value_name = "URL")]
        emoji_url: Option<String>,
    },
    /// Takes back a reaction of yours.
    #[structopt(after_help = "EXAMPLE:\n    waxlog reactions remove --event ID --emoji 👍")]
    Remove {
        /// The event
        #[structopt(long, value_name = "ID")]
        event: EventId,
        /// The reaction's content: an emoji, or `:name:` of a custom one
        #[structopt(long, value_name = "EMOJI")]
        emoji: String,
    },
    /// Counts the reactions to an event.
    #[structopt(after_help = "EXAMPLE:\n    waxlog reactions get --event ID")]
    Get {
        /// The event
        #[structopt(long, value_name = "ID")]
        event: EventId,
    },
}

impl Reactions {
    pub(crate) fn run(self, context: &Context) -> Result<Output, Failure> {
        match self {
            Reactions::Add { event, emoji, emoji_url } => {
                context.publish(reaction::add(&event, &emoji, emoji_url.as_deref(), context.now())?)
            }
            Reactions::Remove { event, emoji } => remove(context, &event, &emoji),
            Reactions::Get { event } => {
                let reactions = context.query(&[to(&event)])?;
                Ok(counted(&reactions).into())
            }
        }
    }
}

fn to(event: &EventId) -> Filter {
    Filter::new().kinds([REACTION]).tag('e', [event.to_hex()])
}

fn remove(context: &Context, event: &EventId, emoji: &str) -> Result<Output, Failure> {
    let own = context.query(&[to(event).authors([context.me()])])?;
    let Some(found) = own.iter().find(|reaction| reaction.content == emoji) else {
        return Err(Failure::Other(format!(
            "you have no reaction {emoji:?} to event {event}; `reactions get` lists what there is"
        )));
    };
    context.publish(reaction::remove(&found.id, context.now()))
}

fn counted(reactions: &[Event]) -> serde_json::Value {
    let mut by_emoji: BTreeMap<&str, Vec<PublicKey>> = BTreeMap::new();
    for reaction in reactions {
        let emoji = if reaction.content.is_empty() { LIKE } else { &reaction.content };
        by_emoji.entry(emoji).or_default().push(reaction.pubkey);
    }
    let entries = by_emoji
        .into_iter()
        .map(|(emoji, pubkeys)| json!({"emoji": emoji, "count": pubkeys.len(), "pubkeys": pubkeys}));
    json!({"reactions": entries.collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use waxlog_nostr::{Draft, Keys};

    use super::*;

    #[test]
    fn reactions_are_counted_by_emoji_and_an_empty_one_is_a_like() {
        let (ann, bob) = (Keys::generate(), Keys::generate());
        let reaction = |keys: &Keys, emoji: &str| keys.sign(Draft::new(REACTION, emoji, 1));
        let all = [reaction(&ann, ""), reaction(&bob, "+"), reaction(&bob, "!")];
        let wanted = json!({"reactions": [
            {"emoji": "!", "count": 1, "pubkeys": [bob.public_key()]},
            {"emoji": "+", "count": 2, "pubkeys": [ann.public_key(), bob.public_key()]},
        ]});
        assert_eq!(counted(&all), wanted);
    }
}
