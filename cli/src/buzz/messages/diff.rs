//! `messages send-diff`: a diff as a message.

use structopt::StructOpt;
use waxlog_nostr::build::diff::{diff, Diff};
use waxlog_nostr::channel::ChannelId;
use waxlog_nostr::EventId;

use super::super::context::{text_or_stdin, Context};
use super::super::failure::Failure;
use super::super::output::Output;
use super::send::thread_under;

// (A doc comment here would replace that of the command.)
#[derive(StructOpt)]
pub(crate) struct SendDiff {
    /// The channel
    #[structopt(long, value_name = "UUID")]
    channel: ChannelId,
    /// The diff; - reads stdin
    #[structopt(long, value_name = "TEXT", allow_hyphen_values = true)]
    diff: String,
    /// The repository's address
    #[structopt(long, value_name = "URL")]
    repo: String,
    /// The commit, at least 7 hex digits
    #[structopt(long, value_name = "SHA")]
    commit: String,
    /// The file that it is about
    #[structopt(long, value_name = "PATH")]
    file: Option<String>,
    /// The commit before
    #[structopt(long, value_name = "SHA")]
    parent_commit: Option<String>,
    /// The branch that it comes from
    #[structopt(long, value_name = "NAME", requires = "target-branch")]
    source_branch: Option<String>,
    /// The branch that it goes to
    #[structopt(long, value_name = "NAME", requires = "source-branch")]
    target_branch: Option<String>,
    /// The pull request's number
    #[structopt(long, value_name = "NUMBER")]
    pr: Option<u64>,
    /// The language [default: by the file's name]
    #[structopt(long, value_name = "NAME")]
    lang: Option<String>,
    /// What it does
    #[structopt(long, value_name = "TEXT", allow_hyphen_values = true)]
    description: Option<String>,
    /// The message that it answers
    #[structopt(long, value_name = "ID")]
    reply_to: Option<EventId>,
}

impl SendDiff {
    pub(super) fn run(self, context: &Context) -> Result<Output, Failure> {
        let text = text_or_stdin(self.diff)?;
        let thread = self.reply_to.map(|parent| thread_under(context, &parent)).transpose()?;
        context.publish(diff(&Diff {
            channel: self.channel,
            text: &text,
            repo: &self.repo,
            commit: &self.commit,
            file: self.file.as_deref(),
            parent_commit: self.parent_commit.as_deref(),
            branches: self.source_branch.as_deref().zip(self.target_branch.as_deref()),
            pull_request: self.pr,
            language: self.lang.as_deref(),
            description: self.description.as_deref(),
            thread,
            now: context.now(),
        })?)
    }
}
