//! `channels update`, `topic` and `purpose`.

use structopt::StructOpt;
use waxlog_nostr::build::channel::{self, check_ttl, Ttl};
use waxlog_nostr::channel::ChannelId;

use super::super::context::Context;
use super::super::failure::{as_usage, Failure};
use super::super::output::Output;

// (Doc comments on these structs would replace those of the commands.)
#[derive(StructOpt)]
pub(crate) struct Update {
    /// The channel
    #[structopt(long, value_name = "UUID")]
    channel: ChannelId,
    /// A new name
    #[structopt(long, value_name = "TEXT")]
    name: Option<String>,
    /// A new description
    #[structopt(long, value_name = "TEXT", allow_hyphen_values = true)]
    description: Option<String>,
    /// How long it lives without messages
    #[structopt(long, value_name = "SECONDS", conflicts_with = "no-ttl")]
    ttl: Option<u32>,
    /// Lets it live without end
    #[structopt(long)]
    no_ttl: bool,
}

#[derive(StructOpt)]
pub(crate) struct Topic {
    /// The channel
    #[structopt(long, value_name = "UUID")]
    channel: ChannelId,
    /// The topic
    #[structopt(long, value_name = "TEXT", allow_hyphen_values = true)]
    topic: String,
}

#[derive(StructOpt)]
pub(crate) struct Purpose {
    /// The channel
    #[structopt(long, value_name = "UUID")]
    channel: ChannelId,
    /// The purpose
    #[structopt(long, value_name = "TEXT", allow_hyphen_values = true)]
    purpose: String,
}

impl Update {
    pub(super) fn run(self, context: &Context) -> Result<Output, Failure> {
        if let Some(seconds) = self.ttl {
            check_ttl(seconds).map_err(as_usage)?;
        }
        if self.name.is_none() && self.description.is_none() && self.ttl.is_none() && !self.no_ttl {
            let text = "nothing to change; give --name, --description, --ttl or --no-ttl";
            return Err(Failure::Usage(text.to_owned()));
        }
        let ttl = self.ttl.map(Ttl::Seconds).or(self.no_ttl.then_some(Ttl::Never));
        let (name, about) = (self.name.as_deref(), self.description.as_deref());
        context.publish(channel::update(&self.channel, name, about, ttl, context.now())?)
    }
}

impl Topic {
    pub(super) fn run(self, context: &Context) -> Result<Output, Failure> {
        context.publish(channel::topic(&self.channel, &self.topic, context.now()))
    }
}

impl Purpose {
    pub(super) fn run(self, context: &Context) -> Result<Output, Failure> {
        context.publish(channel::purpose(&self.channel, &self.purpose, context.now()))
    }
}
