//! `messages`: write to a channel, read it, search it.

mod change;
mod diff;
mod read;
mod send;

pub(crate) use self::read::author_of;

use structopt::StructOpt;

use super::context::Context;
use super::failure::Failure;
use super::output::Output;

// Writes to channels and reads them. (A doc comment here would replace that of the group.)
#[derive(StructOpt)]
#[structopt(after_help = "EXAMPLE:\n    waxlog messages send --channel UUID --content 'hello @Ann'")]
pub(crate) enum Messages {
    /// Sends a message, a forum post or a comment.
    #[structopt(after_help = "EXAMPLE:\n    echo 'hello' | waxlog messages send --channel UUID --content -")]
    Send(send::Send),
    /// Shows a diff in a channel.
    #[structopt(
        after_help = "EXAMPLE:\n    git show | waxlog messages send-diff --channel UUID --repo URL --commit SHA --diff -"
    )]
    SendDiff(diff::SendDiff),
    /// Gives a message a new text.
    #[structopt(after_help = "EXAMPLE:\n    waxlog messages edit --event ID --content 'better words'")]
    Edit(change::Edit),
    /// Deletes a message.
    #[structopt(after_help = "EXAMPLE:\n    waxlog messages delete --event ID")]
    Delete(change::Delete),
    /// Votes on a forum post or comment.
    #[structopt(after_help = "EXAMPLE:\n    waxlog messages vote --event ID --direction up")]
    Vote(change::VoteOn),
    /// Lists the newest messages of a channel, oldest first.
    #[structopt(after_help = "EXAMPLE:\n    waxlog --format compact messages get --channel UUID --limit 20")]
    Get(read::Get),
    /// Lists a message and the replies to it, oldest first.
    #[structopt(after_help = "EXAMPLE:\n    waxlog messages thread --channel UUID --event ID")]
    Thread(read::ThreadOf),
    /// Finds messages by words or author.
    #[structopt(after_help = "EXAMPLE:\n    waxlog messages search --query 'release date' --author Ann")]
    Search(read::Search),
}

impl Messages {
    pub(crate) fn run(self, context: &Context) -> Result<Output, Failure> {
        match self {
            Messages::Send(command) => command.run(context),
            Messages::SendDiff(command) => command.run(context),
            Messages::Edit(command) => command.run(context),
            Messages::Delete(command) => command.run(context),
            Messages::Vote(command) => command.run(context),
            Messages::Get(command) => command.run(context),
            Messages::Thread(command) => command.run(context),
            Messages::Search(command) => command.run(context),
        }
    }
}
