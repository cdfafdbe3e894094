//! Pull requests: kind 1618, and 1619 for the commits that come later.

use super::{check_subject, with_each, with_people, CommitId, RepoAddress};
use crate::build::{check_bytes, BuildError, MAX_TEXT_BYTES};
use crate::channel::ChannelId;
use crate::event::Draft;
use crate::id::{EventId, PublicKey};
use crate::kind::{GIT_PULL_REQUEST, GIT_PULL_REQUEST_UPDATE};

/// What a pull request says.
#[derive(Debug, Clone)]
pub struct PullRequest {
    /// Where it should go.
    pub repo: RepoAddress,
    /// Its title: 1 to 256 bytes.
    pub subject: String,
    /// Its text, up to [`MAX_TEXT_BYTES`].
    pub content: String,
    /// The newest commit.
    pub tip: CommitId,
    /// Where the commits can be fetched: one URL or more.
    pub clone: Vec<String>,
    /// What the branch is called there.
    pub branch_name: Option<String>,
    /// The last commit that it has in common with the repository.
    pub merge_base: Option<CommitId>,
    /// The repository's earliest unique commit.
    pub earliest_commit: Option<CommitId>,
    /// Its labels.
    pub labels: Vec<String>,
    /// Who is told beside the repository's owner.
    pub to: Vec<PublicKey>,
    /// Where it is talked of.
    pub channel: Option<ChannelId>,
    /// The patch that it takes the place of.
    pub revision_of: Option<EventId>,
}

/// New commits of a pull request.
#[derive(Debug, Clone)]
pub struct Update {
    /// Where it should go.
    pub repo: RepoAddress,
    /// The pull request.
    pub pull_request: EventId,
    /// Whose that is.
    pub author: PublicKey,
    /// A text, up to [`MAX_TEXT_BYTES`].
    pub content: String,
    /// The newest commit now.
    pub tip: CommitId,
    /// Where the commits can be fetched: one URL or more.
    pub clone: Vec<String>,
    /// The last commit that it has in common with the repository.
    pub merge_base: Option<CommitId>,
    /// The repository's earliest unique commit.
    pub earliest_commit: Option<CommitId>,
    /// Who is told beside the repository's owner.
    pub to: Vec<PublicKey>,
}

impl PullRequest {
    /// The event: `a`, `r`, `p`..., `subject`, `t`..., `c`, `h`, `clone`, `branch-name`, `merge-base`, `e`.
    pub fn draft(self, now: u64) -> Result<Draft, BuildError> {
        check_subject(&self.subject)?;
        check_bytes("the text of a pull request", &self.content, MAX_TEXT_BYTES)?;
        let clone = clone_tag(&self.clone)?;
        let draft = Draft::new(GIT_PULL_REQUEST, self.content, now).tag(["a", &self.repo.to_string()]);
        let draft = with_each(draft, "r", self.earliest_commit);
        let draft = with_people(draft, [self.repo.owner].into_iter().chain(self.to));
        let draft = with_each(draft.tag(["subject", &self.subject]), "t", &self.labels);
        let draft = with_each(draft.tag(["c", &self.tip.to_string()]), "h", self.channel).tag(clone);
        let draft = with_each(draft, "branch-name", self.branch_name);
        let draft = with_each(draft, "merge-base", self.merge_base);
        Ok(with_each(draft, "e", self.revision_of))
    }
}

impl Update {
    /// The event: `a`, `r`, `p`..., `E`, `P`, `c`, `clone`, `merge-base`.
    pub fn draft(self, now: u64) -> Result<Draft, BuildError> {
        check_bytes("the text of an update", &self.content, MAX_TEXT_BYTES)?;
        let clone = clone_tag(&self.clone)?;
        let draft = Draft::new(GIT_PULL_REQUEST_UPDATE, self.content, now).tag(["a", &self.repo.to_string()]);
        let draft = with_each(draft, "r", self.earliest_commit);
        let draft = with_people(draft, [self.repo.owner].into_iter().chain(self.to))
            .tag(["E", &self.pull_request.to_hex()])
            .tag(["P", &self.author.to_hex()])
            .tag(["c", &self.tip.to_string()])
            .tag(clone);
        Ok(with_each(draft, "merge-base", self.merge_base))
    }
}

/// One tag for all URLs.
fn clone_tag(urls: &[String]) -> Result<Vec<String>, BuildError> {
    if urls.is_empty() {
        return Err(BuildError::Together(
            "a pull request needs a URL where its commits can be fetched: --clone",
        ));
    }
    if let Some(blank) = urls.iter().find(|url| url.trim().is_empty()) {
        return Err(BuildError::invalid("a clone URL", "not blank", blank));
    }
    Ok(["clone".to_owned()].into_iter().chain(urls.iter().cloned()).collect())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{commit, repo};
    use super::*;
    use crate::Keys;

    const CHANNEL: &str = "00112233-4455-4677-8899-aabbccddeeff";

    fn request() -> PullRequest {
        PullRequest {
            repo: repo(),
            subject: "Fix it".into(),
            content: String::new(),
            tip: commit('0'),
            clone: vec!["https://a.example".into(), "https://b.example".into()],
            branch_name: None,
            merge_base: None,
            earliest_commit: None,
            labels: Vec::new(),
            to: Vec::new(),
            channel: None,
            revision_of: None,
        }
    }

    #[test]
    fn a_pull_request_has_its_tags_in_order() {
        let (carol, patch) = (Keys::generate().public_key(), EventId::from_bytes([7; 32]));
        let full = PullRequest {
            branch_name: Some("fix".into()),
            merge_base: Some(commit('1')),
            earliest_commit: Some(commit('2')),
            labels: vec!["bug".into()],
            to: vec![carol],
            channel: Some(CHANNEL.to_uppercase().parse().unwrap()),
            revision_of: Some(patch),
            ..request()
        };
        let (address, owner) = (full.repo.to_string(), full.repo.owner.to_hex());
        let draft = full.draft(5).unwrap();
        let wanted: Vec<Vec<String>> = [
            vec!["a", &address],
            vec!["r", &"2".repeat(40)],
            vec!["p", &owner],
            vec!["p", &carol.to_hex()],
            vec!["subject", "Fix it"],
            vec!["t", "bug"],
            vec!["c", &"0".repeat(40)],
            vec!["h", CHANNEL],
            vec!["clone", "https://a.example", "https://b.example"],
            vec!["branch-name", "fix"],
            vec!["merge-base", &"1".repeat(40)],
            vec!["e", &patch.to_hex()],
        ]
        .iter()
        .map(|tag| tag.iter().map(|value| (*value).to_owned()).collect())
        .collect();
        assert_eq!((draft.kind, draft.tags), (1618, wanted));
    }

    #[test]
    fn a_pull_request_needs_a_url_and_a_subject() {
        assert!(request().draft(5).is_ok());
        assert!(PullRequest { clone: Vec::new(), ..request() }.draft(5).is_err());
        assert!(PullRequest { clone: vec![" ".into()], ..request() }.draft(5).is_err());
        assert!(PullRequest { subject: String::new(), ..request() }.draft(5).is_err());
        assert!(PullRequest { content: "x".repeat(65_537), ..request() }.draft(5).is_err());
    }

    #[test]
    fn an_update_names_the_request_and_its_author() {
        let (author, pull_request) = (Keys::generate().public_key(), EventId::from_bytes([8; 32]));
        let update = Update {
            repo: repo(),
            pull_request,
            author,
            content: String::new(),
            tip: commit('3'),
            clone: vec!["https://a.example".into()],
            merge_base: Some(commit('1')),
            earliest_commit: None,
            to: Vec::new(),
        };
        let (address, owner) = (update.repo.to_string(), update.repo.owner.to_hex());
        assert!(Update { clone: Vec::new(), ..update.clone() }.draft(5).is_err());
        let draft = update.draft(5).unwrap();
        let wanted = [
            ["a", &address],
            ["p", &owner],
            ["E", &pull_request.to_hex()],
            ["P", &author.to_hex()],
            ["c", &"3".repeat(40)],
            ["clone", "https://a.example"],
            ["merge-base", &"1".repeat(40)],
        ];
        assert_eq!(draft.kind, 1619);
        assert_eq!(draft.tags, wanted);
    }
}
