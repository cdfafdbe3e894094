//! `channels`: find, create, change and leave channels, and say who is in them.

mod create;
mod list;
mod members;
mod roster;
mod template;
mod update;

use structopt::StructOpt;
use waxlog_nostr::build::channel;
use waxlog_nostr::channel::ChannelId;

use super::context::Context;
use super::failure::Failure;
use super::output::Output;

// Finds, creates and changes channels. (A doc comment here would replace that of the group.)
#[derive(StructOpt)]
#[structopt(after_help = "EXAMPLE:\n    waxlog channels list --member")]
pub(crate) enum Channels {
    /// Lists the channels that you may see.
    #[structopt(after_help = "EXAMPLE:\n    waxlog --format compact channels list --member")]
    List(list::List),
    /// Shows one channel, or null.
    #[structopt(after_help = "EXAMPLE:\n    waxlog channels get --channel UUID")]
    Get(OfChannel),
    /// Finds channels by name.
    #[structopt(after_help = "EXAMPLE:\n    waxlog channels search --query general --exact")]
    Search(list::Search),
    /// Creates a channel.
    #[structopt(
        after_help = "EXAMPLE:\n    waxlog channels create --name bees --type stream --visibility open"
    )]
    Create(create::Create),
    /// Changes name, description or time to live.
    #[structopt(after_help = "EXAMPLE:\n    waxlog channels update --channel UUID --name hives")]
    Update(update::Update),
    /// Says what is talked of now.
    #[structopt(after_help = "EXAMPLE:\n    waxlog channels topic --channel UUID --topic 'the new hive'")]
    Topic(update::Topic),
    /// Says what the channel is good for.
    #[structopt(
        after_help = "EXAMPLE:\n    waxlog channels purpose --channel UUID --purpose 'all about bees'"
    )]
    Purpose(update::Purpose),
    /// Joins an open channel.
    #[structopt(after_help = "EXAMPLE:\n    waxlog channels join --channel UUID")]
    Join(OfChannel),
    /// Leaves a channel.
    #[structopt(after_help = "EXAMPLE:\n    waxlog channels leave --channel UUID")]
    Leave(OfChannel),
    /// Closes a channel to writers.
    #[structopt(after_help = "EXAMPLE:\n    waxlog channels archive --channel UUID")]
    Archive(OfChannel),
    /// Opens an archived channel again.
    #[structopt(after_help = "EXAMPLE:\n    waxlog channels unarchive --channel UUID")]
    Unarchive(OfChannel),
    /// Deletes a channel with all that is in it.
    #[structopt(after_help = "EXAMPLE:\n    waxlog channels delete --channel UUID")]
    Delete(OfChannel),
    /// Lists the members and their roles.
    #[structopt(after_help = "EXAMPLE:\n    waxlog channels members --channel UUID")]
    Members(OfChannel),
    /// Adds a member, or changes its role.
    #[structopt(
        after_help = "EXAMPLE:\n    waxlog channels add-member --channel UUID --pubkey HEX --role admin"
    )]
    AddMember(members::AddMember),
    /// Removes a member.
    #[structopt(after_help = "EXAMPLE:\n    waxlog channels remove-member --channel UUID --pubkey HEX")]
    RemoveMember(members::RemoveMember),
    /// Says who may add you to channels.
    #[structopt(after_help = "EXAMPLE:\n    waxlog channels set-add-policy --policy owner_only")]
    SetAddPolicy(members::SetAddPolicy),
}

// The option of commands that have no other. (A doc comment here would replace those of the commands.)
#[derive(StructOpt)]
pub(crate) struct OfChannel {
    /// The channel
    #[structopt(long, value_name = "UUID")]
    channel: ChannelId,
}

impl Channels {
    pub(crate) fn run(self, context: &Context) -> Result<Output, Failure> {
        let now = context.now();
        match self {
            Channels::List(command) => command.run(context),
            Channels::Get(of) => list::get(context, &of.channel),
            Channels::Search(command) => command.run(context),
            Channels::Create(command) => command.run(context),
            Channels::Update(command) => command.run(context),
            Channels::Topic(command) => command.run(context),
            Channels::Purpose(command) => command.run(context),
            Channels::Join(of) => context.publish(channel::join(&of.channel, now)),
            Channels::Leave(of) => context.publish(channel::leave(&of.channel, now)),
            Channels::Archive(of) => context.publish(channel::archive(&of.channel, true, now)),
            Channels::Unarchive(of) => context.publish(channel::archive(&of.channel, false, now)),
            Channels::Delete(of) => context.publish(channel::delete(&of.channel, now)),
            Channels::Members(of) => members::list(context, &of.channel),
            Channels::AddMember(command) => command.run(context),
            Channels::RemoveMember(command) => command.run(context),
            Channels::SetAddPolicy(command) => command.run(context),
        }
    }
}
