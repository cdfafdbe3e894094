//! `messages edit`, `delete` and `vote`: events about a message, in its own channel.

use structopt::StructOpt;
use uuid::Uuid;
use waxlog_nostr::build::message::{self, Moderation, Vote};
use waxlog_nostr::build::{check_bytes, MAX_TEXT_BYTES};
use waxlog_nostr::channel::ChannelId;
use waxlog_nostr::{EventId, Filter};

use super::super::context::Context;
use super::super::failure::{as_usage, Failure};
use super::super::output::Output;

// (Doc comments on these structs would replace those of the commands.)
#[derive(StructOpt)]
pub(crate) struct Edit {
    /// The message
    #[structopt(long, value_name = "ID")]
    event: EventId,
    /// The new text, as it is: - is a dash
    #[structopt(long, value_name = "TEXT", allow_hyphen_values = true)]
    content: String,
}

#[derive(StructOpt)]
pub(crate) struct Delete {
    /// The message
    #[structopt(long, value_name = "ID")]
    event: EventId,
    /// The id of a moderator's act
    #[structopt(long, value_name = "UUID")]
    action_id: Option<Uuid>,
    /// A moderator's reason, for programs
    #[structopt(long, value_name = "WORD")]
    reason_code: Option<String>,
    /// A moderator's reason, for everybody
    #[structopt(long, value_name = "TEXT")]
    public_reason: Option<String>,
}

#[derive(StructOpt)]
pub(crate) struct VoteOn {
    /// The post or comment
    #[structopt(long, value_name = "ID")]
    event: EventId,
    /// up or down
    #[structopt(long, possible_values = &["up", "down"])]
    direction: String,
}

impl Edit {
    pub(super) fn run(self, context: &Context) -> Result<Output, Failure> {
        check_bytes("the message", &self.content, MAX_TEXT_BYTES).map_err(as_usage)?;
        let channel = channel_of(context, &self.event)?;
        context.publish(message::edit(&channel, &self.event, &self.content, context.now())?)
    }
}

impl Delete {
    pub(super) fn run(self, context: &Context) -> Result<Output, Failure> {
        let channel = channel_of(context, &self.event)?;
        let action_id = self.action_id.map(|id| id.to_string());
        let moderation = Moderation {
            action_id: action_id.as_deref(),
            reason_code: self.reason_code.as_deref(),
            public_reason: self.public_reason.as_deref(),
        };
        context.publish(message::delete(&channel, &self.event, &moderation, context.now()))
    }
}

impl VoteOn {
    pub(super) fn run(self, context: &Context) -> Result<Output, Failure> {
        let vote = if self.direction == "up" { Vote::Up } else { Vote::Down };
        let channel = channel_of(context, &self.event)?;
        context.publish(message::vote(&channel, &self.event, vote, context.now()))
    }
}

/// The channel that an event stands in.
fn channel_of(context: &Context, id: &EventId) -> Result<ChannelId, Failure> {
    let Some(event) = context.first(Filter::new().ids([*id]))? else {
        return Err(Failure::Other(format!("event {id} is not there, or you may not see it")));
    };
    ChannelId::of(&event).ok_or_else(|| Failure::Other(format!("event {id} stands in no channel")))
}
