//! `issues`: what is wrong with a repository.

use structopt::StructOpt;
use waxlog_nostr::build::git::status::{Merge, State};
use waxlog_nostr::build::git::Issue;
use waxlog_nostr::kind::GIT_ISSUE;
use waxlog_nostr::{EventId, PublicKey};

use super::context::{text_or_stdin, Context};
use super::failure::Failure;
use super::git::{get, send, send_status, List, MaybeRepo, Repo};
use super::output::Output;

// Opens issues of a repository, and says what became of them. (A doc comment here would replace that of the group.)
#[derive(StructOpt)]
#[structopt(after_help = "EXAMPLE:\n    waxlog issues list --repo-owner PUBKEY --repo-id tool")]
pub(crate) enum Issues {
    /// Opens an issue.
    #[structopt(
        after_help = "EXAMPLE:\n    waxlog issues create --repo-owner PUBKEY --repo-id tool --title 'It breaks' --content -"
    )]
    Create {
        #[structopt(flatten)]
        repo: Repo,
        /// The title
        #[structopt(long, value_name = "TEXT", allow_hyphen_values = true, alias = "subject")]
        title: String,
        /// The text, or - for stdin
        #[structopt(long, value_name = "TEXT", allow_hyphen_values = true)]
        content: String,
        /// A label; may be repeated
        #[structopt(long, value_name = "LABEL", number_of_values = 1)]
        label: Vec<String>,
        /// Who else is told; may be repeated
        #[structopt(long, value_name = "PUBKEY", number_of_values = 1)]
        to: Vec<PublicKey>,
    },
    /// Shows an issue.
    #[structopt(after_help = "EXAMPLE:\n    waxlog issues get --event ID")]
    Get {
        /// The issue
        #[structopt(long, value_name = "ID")]
        event: EventId,
    },
    /// Lists the issues of a repository.
    #[structopt(
        after_help = "EXAMPLE:\n    waxlog issues list --repo-owner PUBKEY --repo-id tool --label bug"
    )]
    List(List),
    /// Says what became of an issue.
    #[structopt(after_help = "EXAMPLE:\n    waxlog issues status --issue ID --status resolved")]
    Status {
        /// The issue
        #[structopt(long, value_name = "ID")]
        issue: EventId,
        /// open, resolved, closed or draft
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
    },
}

impl Issues {
    pub(crate) fn run(self, context: &Context) -> Result<Output, Failure> {
        match self {
            Issues::Create { repo, title, content, label, to } => {
                let content = text_or_stdin(content)?;
                let issue = Issue { repo: repo.into(), subject: title, content, labels: label, to };
                send(context, issue.draft(context.now()))
            }
            Issues::Get { event } => get(context, GIT_ISSUE, event),
            Issues::List(list) => list.run(context, GIT_ISSUE),
            Issues::Status { issue, status, content, repo } => {
                let content = text_or_stdin(content)?;
                send_status(context, issue, status, content, repo, None, Merge::default())
            }
        }
    }
}
