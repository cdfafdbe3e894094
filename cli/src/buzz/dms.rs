//! `dms`: conversations between a few.

use serde_json::{json, Value};
use structopt::StructOpt;
use uuid::Uuid;
use waxlog_nostr::build::dm;
use waxlog_nostr::channel::ChannelId;
use waxlog_nostr::kind::DM_CREATED;
use waxlog_nostr::{Event, Filter, PublicKey};

use super::context::Context;
use super::failure::{as_usage, Failure};
use super::output::{with_accepted, Output};

/// The most conversations of one list.
const MAX_LIST: usize = 200;
/// What stands before the JSON in a relay's answer to a command.
const RESPONSE: &str = "response:";

// Talks to a few people. (A doc comment here would replace that of the group.)
#[derive(StructOpt)]
#[structopt(after_help = "EXAMPLE:\n    waxlog dms open --pubkey HEX")]
pub(crate) enum Dms {
    /// Lists your conversations.
    #[structopt(after_help = "EXAMPLE:\n    waxlog dms list")]
    List {
        /// How many, at most 200
        #[structopt(long, value_name = "COUNT", default_value = "50")]
        limit: usize,
    },
    /// Opens the conversation with 1 to 8 others.
    #[structopt(after_help = "EXAMPLE:\n    waxlog dms open --pubkey HEX --pubkey HEX")]
    Open {
        /// Another one; may be repeated
        #[structopt(long, value_name = "HEX", number_of_values = 1)]
        pubkey: Vec<PublicKey>,
    },
    /// Opens the larger conversation with one more.
    #[structopt(after_help = "EXAMPLE:\n    waxlog dms add-member --channel UUID --pubkey HEX")]
    AddMember {
        /// The conversation
        #[structopt(long, value_name = "UUID")]
        channel: ChannelId,
        /// Who joins
        #[structopt(long, value_name = "HEX")]
        pubkey: PublicKey,
    },
    /// Keeps a conversation out of your lists.
    #[structopt(after_help = "EXAMPLE:\n    waxlog dms hide --channel UUID")]
    Hide {
        /// The conversation
        #[structopt(long, value_name = "UUID")]
        channel: ChannelId,
    },
}

impl Dms {
    pub(crate) fn run(self, context: &Context) -> Result<Output, Failure> {
        match self {
            Dms::List { limit } => list(context, limit),
            Dms::Open { pubkey } => open(context, &pubkey),
            Dms::AddMember { channel, pubkey } => {
                context.publish(dm::add_member(&channel, &pubkey, context.now()))
            }
            Dms::Hide { channel } => context.publish(dm::hide(&channel, context.now())),
        }
    }
}

fn list(context: &Context, limit: usize) -> Result<Output, Failure> {
    let filter =
        Filter::new().kinds([DM_CREATED]).tag('p', [context.me().to_hex()]).limit(limit.min(MAX_LIST));
    let item = |event: &Event| {
        json!({
            "dm_id": event.identifier(),
            "participants": event.tag_values("p").collect::<Vec<_>>(),
            "created_at": event.created_at,
        })
    };
    Ok(Value::from(context.query(&[filter])?.iter().map(item).collect::<Vec<_>>()).into())
}

fn open(context: &Context, others: &[PublicKey]) -> Result<Output, Failure> {
    let nonce = Uuid::new_v4().to_string();
    let draft = dm::open(others, &nonce, context.now()).map_err(as_usage)?;
    let mut answer = with_accepted(context.send(draft)?);
    let response = answer["message"].as_str().and_then(response);
    let id = response.and_then(|response| response["channel_id"].as_str().map(str::to_owned));
    answer["dm_id"] = json!(id.unwrap_or(nonce));
    Ok(answer.into())
}

/// The JSON in a relay's answer to a command.
fn response(message: &str) -> Option<Value> {
    serde_json::from_str(message.strip_prefix(RESPONSE)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_read_and_other_messages_give_none() {
        assert_eq!(response(r#"response:{"channel_id":"c"}"#).unwrap()["channel_id"], "c");
        for none in ["", "{}", "response:", "response:x", "duplicate: already processed"] {
            assert_eq!(response(none), None, "{none}");
        }
    }
}
