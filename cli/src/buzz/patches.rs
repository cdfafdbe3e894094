//! `patches`: changes to a repository, each a file of `git format-patch`.

use std::path::PathBuf;

use structopt::StructOpt;
use waxlog_nostr::build::git::patch::{Committer, Patch, Position};
use waxlog_nostr::build::git::status::{Merge, Quote, State};
use waxlog_nostr::build::git::CommitId;
use waxlog_nostr::kind::GIT_PATCH;
use waxlog_nostr::{EventId, PublicKey};

use super::context::{text_or_stdin, Context};
use super::failure::Failure;
use super::git::{get, send, send_status, List, MaybeRepo, Repo};
use super::input::file_or_stdin;
use super::output::Output;

// Sends patches to a repository, and says what became of them. (A doc comment here would replace that of the group.)
#[derive(StructOpt)]
#[structopt(after_help = "EXAMPLE:\n    waxlog patches list --repo-owner PUBKEY --repo-id tool")]
pub(crate) enum Patches {
    /// Sends a patch.
    #[structopt(
        after_help = "EXAMPLE:\n    git format-patch --stdout -1 | waxlog patches send --patch-file - --repo-owner PUBKEY --repo-id tool --root"
    )]
    Send(Box<Send>),
    /// Shows a patch.
    #[structopt(after_help = "EXAMPLE:\n    waxlog patches get --event ID")]
    Get {
        /// The patch
        #[structopt(long, value_name = "ID")]
        event: EventId,
    },
    /// Lists the patches of a repository.
    #[structopt(
        after_help = "EXAMPLE:\n    waxlog patches list --repo-owner PUBKEY --repo-id tool --limit 10"
    )]
    List(List),
    /// Says what became of patches.
    #[structopt(
        after_help = "EXAMPLE:\n    waxlog patches status --root ID --status merged --merge-commit COMMIT"
    )]
    Status(Box<StatusOptions>),
}

// (A doc comment on these would become the help of the commands.)
#[derive(StructOpt)]
pub(crate) struct Send {
    /// The patch's file, or - for stdin
    #[structopt(long, value_name = "PATH")]
    patch_file: PathBuf,
    #[structopt(flatten)]
    repo: Repo,
    /// The repository's earliest unique commit
    #[structopt(long, value_name = "COMMIT")]
    euc: Option<CommitId>,
    /// Who else is told; may be repeated
    #[structopt(long, value_name = "PUBKEY", number_of_values = 1)]
    to: Vec<PublicKey>,
    /// The patch before it
    #[structopt(long, value_name = "ID")]
    reply_to: Option<EventId>,
    /// It is the first of a series
    #[structopt(long, conflicts_with = "root-revision")]
    root: bool,
    /// It is the first of a new version of a series
    #[structopt(long)]
    root_revision: bool,
    /// The commit that it makes
    #[structopt(long, value_name = "COMMIT")]
    commit: Option<CommitId>,
    /// The commit that it applies to
    #[structopt(long, value_name = "COMMIT")]
    parent_commit: Option<CommitId>,
    /// The commit's PGP signature
    #[structopt(long, value_name = "TEXT", allow_hyphen_values = true)]
    commit_pgp_sig: Option<String>,
    /// Who committed: name|email|seconds|time zone
    #[structopt(long, value_name = "COMMITTER")]
    committer: Option<Committer>,
}

#[derive(StructOpt)]
pub(crate) struct StatusOptions {
    /// The first patch
    #[structopt(long, value_name = "ID")]
    root: EventId,
    /// open, merged, closed or draft
    #[structopt(long, value_name = "STATUS")]
    status: State,
    /// A text, or - for stdin
    #[structopt(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        default_value = "",
        hide_default_value = true
    )]
    content: String,
    #[structopt(flatten)]
    repo: MaybeRepo,
    /// The version of the patches that this is about
    #[structopt(long, value_name = "ID")]
    revision: Option<EventId>,
    /// A patch that was applied: ID, ID:RELAY or ID:RELAY:AUTHOR; may be repeated
    #[structopt(long, value_name = "PATCH", number_of_values = 1)]
    q: Vec<Quote>,
    /// The commit that merged them
    #[structopt(long, value_name = "COMMIT")]
    merge_commit: Option<CommitId>,
    /// A commit that a patch became; may be repeated
    #[structopt(long, value_name = "COMMIT", number_of_values = 1)]
    applied_as_commit: Vec<CommitId>,
}

impl Patches {
    pub(crate) fn run(self, context: &Context) -> Result<Output, Failure> {
        match self {
            Patches::Send(patch) => patch.run(context),
            Patches::Get { event } => get(context, GIT_PATCH, event),
            Patches::List(list) => list.run(context, GIT_PATCH),
            Patches::Status(status) => status.run(context),
        }
    }
}

impl Send {
    fn run(self, context: &Context) -> Result<Output, Failure> {
        let position = match (self.root, self.root_revision) {
            (true, _) => Some(Position::Root),
            (false, true) => Some(Position::RootRevision),
            (false, false) => None,
        };
        let patch = Patch {
            repo: self.repo.into(),
            content: file_or_stdin(&self.patch_file)?,
            earliest_commit: self.euc,
            to: self.to,
            reply_to: self.reply_to,
            position,
            commit: self.commit,
            parent_commit: self.parent_commit,
            commit_pgp_sig: self.commit_pgp_sig,
            committer: self.committer,
        };
        send(context, patch.draft(context.now()))
    }
}

impl StatusOptions {
    fn run(self, context: &Context) -> Result<Output, Failure> {
        let merge =
            Merge { quotes: self.q, merge_commit: self.merge_commit, applied_as: self.applied_as_commit };
        let content = text_or_stdin(self.content)?;
        send_status(context, self.root, self.status, content, self.repo, self.revision, merge)
    }
}
