//! `pr`: commits that ask to be taken into a repository.

use structopt::StructOpt;
use waxlog_nostr::build::git::pull_request::{PullRequest, Update};
use waxlog_nostr::build::git::status::{Merge, State};
use waxlog_nostr::build::git::CommitId;
use waxlog_nostr::channel::ChannelId;
use waxlog_nostr::kind::GIT_PULL_REQUEST;
use waxlog_nostr::{EventId, PublicKey};

use super::context::Context;
use super::failure::Failure;
use super::git::{get, send, send_status, Body, List, MaybeRepo, Repo};
use super::output::Output;

// Opens pull requests, adds commits to them, and says what became of them. (A doc comment here would replace that of the group.)
#[derive(StructOpt)]
#[structopt(after_help = "EXAMPLE:\n    waxlog pr list --repo-owner PUBKEY --repo-id tool")]
pub(crate) enum Pr {
    /// Opens a pull request.
    #[structopt(
        after_help = "EXAMPLE:\n    waxlog pr open --repo-owner PUBKEY --repo-id tool --subject 'Fix it' --commit COMMIT --clone URL"
    )]
    Open(Box<Open>),
    /// Says that there are new commits.
    #[structopt(
        after_help = "EXAMPLE:\n    waxlog pr update --repo-owner PUBKEY --repo-id tool --pr ID --pr-author PUBKEY --commit COMMIT --clone URL"
    )]
    Update(Box<New>),
    /// Shows a pull request.
    #[structopt(after_help = "EXAMPLE:\n    waxlog pr get --event ID")]
    Get {
        /// The pull request
        #[structopt(long, value_name = "ID")]
        event: EventId,
    },
    /// Lists the pull requests of a repository.
    #[structopt(after_help = "EXAMPLE:\n    waxlog pr list --repo-owner PUBKEY --repo-id tool --limit 10")]
    List(List),
    /// Says what became of a pull request.
    #[structopt(after_help = "EXAMPLE:\n    waxlog pr status --pr ID --status merged --merge-commit COMMIT")]
    Status {
        /// The pull request
        #[structopt(long, value_name = "ID")]
        pr: EventId,
        /// open, merged, closed or draft
        #[structopt(long, value_name = "STATUS")]
        status: State,
        /// The commit that merged it
        #[structopt(long, value_name = "COMMIT")]
        merge_commit: Option<CommitId>,
        #[structopt(flatten)]
        body: Body,
        #[structopt(flatten)]
        repo: MaybeRepo,
    },
}

// Where the commits are. (A doc comment on these would become the help of the commands.)
#[derive(StructOpt)]
pub(crate) struct Commits {
    /// The newest commit
    #[structopt(long, value_name = "COMMIT")]
    commit: CommitId,
    /// Where the commits can be fetched; may be repeated
    #[structopt(long, value_name = "URL", required = true, number_of_values = 1)]
    clone: Vec<String>,
    /// The last commit in common with the repository
    #[structopt(long, value_name = "COMMIT")]
    merge_base: Option<CommitId>,
    /// The repository's earliest unique commit
    #[structopt(long, value_name = "COMMIT")]
    euc: Option<CommitId>,
    /// Who else is told; may be repeated
    #[structopt(long, value_name = "PUBKEY", number_of_values = 1)]
    to: Vec<PublicKey>,
}

#[derive(StructOpt)]
pub(crate) struct Open {
    #[structopt(flatten)]
    repo: Repo,
    /// The title
    #[structopt(long, value_name = "TEXT", allow_hyphen_values = true, alias = "title")]
    subject: String,
    #[structopt(flatten)]
    body: Body,
    #[structopt(flatten)]
    commits: Commits,
    /// What the branch is called
    #[structopt(long, value_name = "NAME")]
    branch_name: Option<String>,
    /// A label; may be repeated
    #[structopt(long, value_name = "LABEL", number_of_values = 1)]
    label: Vec<String>,
    /// Where it is talked of
    #[structopt(long, value_name = "UUID")]
    channel: Option<ChannelId>,
    /// The patch that it takes the place of
    #[structopt(long, value_name = "ID")]
    revision_of: Option<EventId>,
}

#[derive(StructOpt)]
pub(crate) struct New {
    #[structopt(flatten)]
    repo: Repo,
    /// The pull request
    #[structopt(long, value_name = "ID")]
    pr: EventId,
    /// Whose that is
    #[structopt(long, value_name = "PUBKEY")]
    pr_author: PublicKey,
    #[structopt(flatten)]
    body: Body,
    #[structopt(flatten)]
    commits: Commits,
}

impl Pr {
    pub(crate) fn run(self, context: &Context) -> Result<Output, Failure> {
        match self {
            Pr::Open(open) => open.run(context),
            Pr::Update(new) => new.run(context),
            Pr::Get { event } => get(context, GIT_PULL_REQUEST, event),
            Pr::List(list) => list.run(context, GIT_PULL_REQUEST),
            Pr::Status { pr, status, merge_commit, body, repo } => {
                let merge = Merge { merge_commit, ..Merge::default() };
                send_status(context, pr, status, body.text()?, repo, None, merge)
            }
        }
    }
}

impl Open {
    fn run(self, context: &Context) -> Result<Output, Failure> {
        let request = PullRequest {
            repo: self.repo.into(),
            subject: self.subject,
            content: self.body.text()?,
            tip: self.commits.commit,
            clone: self.commits.clone,
            branch_name: self.branch_name,
            merge_base: self.commits.merge_base,
            earliest_commit: self.commits.euc,
            labels: self.label,
            to: self.commits.to,
            channel: self.channel,
            revision_of: self.revision_of,
        };
        send(context, request.draft(context.now()))
    }
}

impl New {
    fn run(self, context: &Context) -> Result<Output, Failure> {
        let update = Update {
            repo: self.repo.into(),
            pull_request: self.pr,
            author: self.pr_author,
            content: self.body.text()?,
            tip: self.commits.commit,
            clone: self.commits.clone,
            merge_base: self.commits.merge_base,
            earliest_commit: self.commits.euc,
            to: self.commits.to,
        };
        send(context, update.draft(context.now()))
    }
}
