//! Patches: kind 1617, whose content is the file as it is.

use std::str::FromStr;

use super::{with_each, with_people, CommitId, RepoAddress};
use crate::build::{check_bytes, BuildError};
use crate::event::Draft;
use crate::id::{EventId, PublicKey};
use crate::kind::GIT_PATCH;

/// Longest patch, in bytes.
pub const MAX_PATCH_BYTES: usize = 61_440;

/// Where in a series a patch stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// The first of a series.
    Root,
    /// The first of a new version of a series.
    RootRevision,
}

/// Who committed, and when: `name|email|seconds|time zone`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committer([String; 4]);

impl FromStr for Committer {
    type Err = BuildError;

    fn from_str(text: &str) -> Result<Self, BuildError> {
        let parts: Vec<_> = text.split('|').map(str::to_owned).collect();
        parts
            .try_into()
            .map(Self)
            .map_err(|_| BuildError::invalid("a committer", "four parts: name|email|seconds|time zone", text))
    }
}

/// What is sent with a patch.
#[derive(Debug, Clone)]
pub struct Patch {
    /// Where it should go.
    pub repo: RepoAddress,
    /// The file as `git format-patch` wrote it, up to [`MAX_PATCH_BYTES`].
    pub content: String,
    /// The repository's earliest unique commit.
    pub earliest_commit: Option<CommitId>,
    /// Who is told beside the repository's owner.
    pub to: Vec<PublicKey>,
    /// The patch before it.
    pub reply_to: Option<EventId>,
    /// Where it stands, if it begins something.
    pub position: Option<Position>,
    /// The commit that it makes.
    pub commit: Option<CommitId>,
    /// The commit that it applies to.
    pub parent_commit: Option<CommitId>,
    /// The commit's PGP signature.
    pub commit_pgp_sig: Option<String>,
    /// Who committed.
    pub committer: Option<Committer>,
}

impl Patch {
    /// The event: `a`, `r`, `p`..., `e`, `t`, `commit` and `r`, `parent-commit`, `commit-pgp-sig`, `committer`.
    pub fn draft(self, now: u64) -> Result<Draft, BuildError> {
        if self.content.trim().is_empty() {
            return Err(BuildError::invalid(
                "a patch",
                "a text, as git format-patch writes it",
                &self.content,
            ));
        }
        check_bytes("the patch", &self.content, MAX_PATCH_BYTES)?;
        let mut draft = Draft::new(GIT_PATCH, self.content, now).tag(["a", &self.repo.to_string()]);
        if let Some(commit) = &self.earliest_commit {
            draft = draft.tag(["r", &commit.to_string(), "euc"]);
        }
        draft = with_people(draft, [self.repo.owner].into_iter().chain(self.to));
        if let Some(patch) = &self.reply_to {
            draft = draft.tag(["e", &patch.to_hex(), "", "reply"]);
        }
        draft = match self.position {
            Some(Position::Root) => draft.tag(["t", "root"]),
            Some(Position::RootRevision) => draft.tag(["t", "root-revision"]),
            None => draft,
        };
        if let Some(commit) = &self.commit {
            draft = draft.tag(["commit", &commit.to_string()]).tag(["r", &commit.to_string()]);
        }
        draft = with_each(draft, "parent-commit", self.parent_commit);
        draft = with_each(draft, "commit-pgp-sig", self.commit_pgp_sig);
        Ok(match self.committer {
            Some(Committer(parts)) => draft.tag(["committer".to_owned()].into_iter().chain(parts)),
            None => draft,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{commit, repo};
    use super::*;
    use crate::Keys;

    fn patch(content: &str) -> Patch {
        Patch {
            repo: repo(),
            content: content.into(),
            earliest_commit: None,
            to: Vec::new(),
            reply_to: None,
            position: None,
            commit: None,
            parent_commit: None,
            commit_pgp_sig: None,
            committer: None,
        }
    }

    #[test]
    fn a_patch_has_its_tags_in_order() {
        let (carol, before) = (Keys::generate().public_key(), EventId::from_bytes([7; 32]));
        let full = Patch {
            earliest_commit: Some(commit('1')),
            to: vec![carol],
            reply_to: Some(before),
            position: Some(Position::RootRevision),
            commit: Some(commit('2')),
            parent_commit: Some(commit('3')),
            commit_pgp_sig: Some("-----BEGIN".into()),
            committer: Some("Ann|ann@a.example|1700000000|60".parse().unwrap()),
            ..patch("From 0\n")
        };
        let (address, owner) = (full.repo.to_string(), full.repo.owner.to_hex());
        let draft = full.draft(5).unwrap();
        let wanted: Vec<Vec<String>> = [
            vec!["a", &address],
            vec!["r", &"1".repeat(40), "euc"],
            vec!["p", &owner],
            vec!["p", &carol.to_hex()],
            vec!["e", &before.to_hex(), "", "reply"],
            vec!["t", "root-revision"],
            vec!["commit", &"2".repeat(40)],
            vec!["r", &"2".repeat(40)],
            vec!["parent-commit", &"3".repeat(40)],
            vec!["commit-pgp-sig", "-----BEGIN"],
            vec!["committer", "Ann", "ann@a.example", "1700000000", "60"],
        ]
        .iter()
        .map(|tag| tag.iter().map(|value| (*value).to_owned()).collect())
        .collect();
        assert_eq!((draft.kind, draft.content.as_str(), draft.tags), (1617, "From 0\n", wanted));
    }

    #[test]
    fn the_first_patch_of_a_series_says_so() {
        let draft = Patch { position: Some(Position::Root), ..patch("x") }.draft(5).unwrap();
        assert_eq!(draft.tags.last().unwrap(), &["t", "root"]);
    }

    #[test]
    fn a_patch_is_a_text_of_61440_bytes_at_most() {
        assert!(patch(&"x".repeat(61_440)).draft(5).is_ok());
        for content in ["", " \n", &"x".repeat(61_441)] {
            assert!(patch(content).draft(5).is_err());
        }
    }

    #[test]
    fn a_committer_has_four_parts() {
        for text in ["", "a|b", "a|b|c", "a|b|c|d|e"] {
            assert!(text.parse::<Committer>().is_err(), "{text}");
        }
        assert!("a|b|c|d".parse::<Committer>().is_ok());
    }
}
