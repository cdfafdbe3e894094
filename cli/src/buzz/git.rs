//! What the groups on repositories have in common: which repository, texts of two origins, statuses, lists.

use std::path::PathBuf;

use structopt::StructOpt;
use waxlog_nostr::build::git::status::{Merge, State, Status};
use waxlog_nostr::build::git::{CommitId, RepoAddress, RepoId};
use waxlog_nostr::{Draft, EventId, Filter, PublicKey};

use super::context::{text_or_stdin, Context};
use super::failure::{as_usage, Failure};
use super::input::file_or_stdin;
use super::output::{raw_list, Output};

// Which repository. (A doc comment on these would become the help of the commands.)
#[derive(StructOpt)]
pub(crate) struct Repo {
    /// Who announced the repository
    #[structopt(long, value_name = "PUBKEY")]
    repo_owner: PublicKey,
    /// What the repository is called
    #[structopt(long, value_name = "ID")]
    repo_id: RepoId,
}

impl From<Repo> for RepoAddress {
    fn from(repo: Repo) -> RepoAddress {
        RepoAddress { owner: repo.repo_owner, id: repo.repo_id }
    }
}

#[derive(StructOpt)]
pub(crate) struct MaybeRepo {
    /// Who announced the repository
    #[structopt(long, value_name = "PUBKEY", requires = "repo-id")]
    repo_owner: Option<PublicKey>,
    /// What the repository is called
    #[structopt(long, value_name = "ID", requires = "repo-owner")]
    repo_id: Option<RepoId>,
    /// The repository's earliest unique commit
    #[structopt(long, value_name = "COMMIT")]
    euc: Option<CommitId>,
    /// Who else is told; may be repeated
    #[structopt(long, value_name = "PUBKEY", number_of_values = 1)]
    to: Vec<PublicKey>,
}

#[derive(StructOpt)]
pub(crate) struct Body {
    /// The text, or - for stdin
    #[structopt(long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "body-file")]
    body: Option<String>,
    /// The text's file, or - for stdin
    #[structopt(long, value_name = "PATH")]
    body_file: Option<PathBuf>,
}

impl Body {
    /// The text; empty if none was given.
    pub(crate) fn text(self) -> Result<String, Failure> {
        match (self.body, self.body_file) {
            (Some(text), _) => text_or_stdin(text),
            (None, Some(path)) => file_or_stdin(&path),
            (None, None) => Ok(String::new()),
        }
    }
}

/// Sends what was built and prints the relay's line. Values that cannot be built are the caller's slip.
pub(crate) fn send<E: std::fmt::Display>(
    context: &Context,
    draft: Result<Draft, E>,
) -> Result<Output, Failure> {
    Ok(context.send(draft.map_err(as_usage)?)?.into())
}

/// Sends a status.
pub(crate) fn send_status(
    context: &Context,
    root: EventId,
    state: State,
    content: String,
    repo: MaybeRepo,
    revision: Option<EventId>,
    merge: Merge,
) -> Result<Output, Failure> {
    let address = repo.repo_owner.zip(repo.repo_id).map(|(owner, id)| RepoAddress { owner, id });
    let status = Status {
        root,
        state,
        content,
        revision,
        repo: address,
        earliest_commit: repo.euc,
        to: repo.to,
        merge,
    };
    send(context, status.draft(context.now()))
}

/// Prints the event of a kind with an id, in a list.
pub(crate) fn get(context: &Context, kind: u16, event: EventId) -> Result<Output, Failure> {
    let found = context.query(&[Filter::new().kinds([kind]).ids([event])])?;
    Ok(raw_list(&found).into())
}

#[derive(StructOpt)]
pub(crate) struct List {
    #[structopt(flatten)]
    repo: Repo,
    /// Only by this author
    #[structopt(long, value_name = "PUBKEY")]
    author: Option<PublicKey>,
    /// Only with this label
    #[structopt(long, value_name = "LABEL")]
    label: Option<String>,
    /// At most so many
    #[structopt(long, value_name = "N")]
    limit: Option<usize>,
}

impl List {
    /// Prints the events of a kind that belong to the repository.
    pub(crate) fn run(self, context: &Context, kind: u16) -> Result<Output, Failure> {
        let address = RepoAddress::from(self.repo).to_string();
        let mut filter = Filter::new().kinds([kind]).tag('a', [address]);
        filter.authors = self.author.map(|author| vec![author]);
        if let Some(label) = self.label {
            filter = filter.tag('t', [label]);
        }
        filter.limit = self.limit;
        Ok(raw_list(&context.query(&[filter])?).into())
    }
}
