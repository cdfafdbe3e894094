//! Issues, pull requests, patches and their statuses (NIP-34). The order of the tags is part of the form.

pub mod patch;
pub mod pull_request;
pub mod status;

use std::fmt;
use std::str::FromStr;

use super::{check_bytes, BuildError, MAX_TEXT_BYTES};
use crate::coordinate::Coordinate;
use crate::event::Draft;
use crate::id::PublicKey;
use crate::kind::{GIT_ISSUE, REPO};

/// Longest name of a repository in addresses, in bytes.
pub const MAX_REPO_ID_BYTES: usize = 64;
/// Longest subject of an issue or pull request, in bytes.
pub const MAX_SUBJECT_BYTES: usize = 256;

/// What a repository is called in addresses: 1 to 64 of letters, digits, `.`, `_` and `-`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoId(String);

impl RepoId {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RepoId {
    type Err = BuildError;

    fn from_str(text: &str) -> Result<Self, BuildError> {
        let is_known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let is_fit = (1..=MAX_REPO_ID_BYTES).contains(&text.len())
            && text.bytes().all(is_known)
            && !text.starts_with('.')
            && !text.contains("..");
        match is_fit {
            true => Ok(Self(text.to_owned())),
            false => Err(BuildError::invalid(
                "a repository id",
                "1 to 64 of A-Z, a-z, 0-9, ., _ and -, without a dot in front or two in a row",
                text,
            )),
        }
    }
}

impl fmt::Display for RepoId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A commit's id: 40 or 64 hex digits, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitId(String);

impl FromStr for CommitId {
    type Err = BuildError;

    fn from_str(text: &str) -> Result<Self, BuildError> {
        match matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            true => Ok(Self(text.to_ascii_lowercase())),
            false => Err(BuildError::invalid("a commit id", "40 or 64 hex digits", text)),
        }
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which repository: whose, and what it is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoAddress {
    /// Who announced it.
    pub owner: PublicKey,
    /// What it is called.
    pub id: RepoId,
}

impl fmt::Display for RepoAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Coordinate::new(REPO, self.owner, self.id.as_str()).fmt(f)
    }
}

/// What an issue says.
#[derive(Debug, Clone)]
pub struct Issue {
    /// Where it belongs.
    pub repo: RepoAddress,
    /// Its title: 1 to 256 bytes.
    pub subject: String,
    /// Its text, up to [`MAX_TEXT_BYTES`].
    pub content: String,
    /// Its labels.
    pub labels: Vec<String>,
    /// Who is told beside the repository's owner.
    pub to: Vec<PublicKey>,
}

impl Issue {
    /// The event: `a`, `p`..., `subject`, `t`...
    pub fn draft(self, now: u64) -> Result<Draft, BuildError> {
        check_subject(&self.subject)?;
        check_bytes("the text of an issue", &self.content, MAX_TEXT_BYTES)?;
        let draft = Draft::new(GIT_ISSUE, self.content, now).tag(["a", &self.repo.to_string()]);
        let draft = with_people(draft, [self.repo.owner].into_iter().chain(self.to));
        Ok(with_each(draft.tag(["subject", &self.subject]), "t", &self.labels))
    }
}

pub(crate) fn check_subject(subject: &str) -> Result<(), BuildError> {
    match subject.is_empty() {
        true => Err(BuildError::invalid("the subject", "1 to 256 bytes long", subject)),
        false => check_bytes("the subject", subject, MAX_SUBJECT_BYTES),
    }
}

/// Adds a `p` tag for each, once.
pub(crate) fn with_people(mut draft: Draft, people: impl IntoIterator<Item = PublicKey>) -> Draft {
    let mut named = Vec::new();
    for key in people {
        if !named.contains(&key) {
            draft = draft.tag(["p", &key.to_hex()]);
            named.push(key);
        }
    }
    draft
}

/// Adds a tag of two elements for each value.
pub(crate) fn with_each<V: fmt::Display>(
    draft: Draft,
    name: &str,
    values: impl IntoIterator<Item = V>,
) -> Draft {
    values.into_iter().fold(draft, |draft, value| draft.tag([name, &value.to_string()]))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Keys;

    /// A commit id, of the digit repeated.
    pub(crate) fn commit(digit: char) -> CommitId {
        digit.to_string().repeat(40).parse().unwrap()
    }

    /// Somebody's repository.
    pub(crate) fn repo() -> RepoAddress {
        RepoAddress { owner: Keys::generate().public_key(), id: "tool".parse().unwrap() }
    }

    #[test]
    fn a_repository_id_has_its_letters_and_length_and_no_dots_to_climb_with() {
        for good in ["a", "My_repo-1.rs", "a.b.c", &"x".repeat(64)] {
            assert_eq!(good.parse::<RepoId>().unwrap().as_str(), good);
        }
        for bad in ["", ".x", "a..b", "a b", "a/b", "ü", &"x".repeat(65)] {
            let error = bad.parse::<RepoId>().unwrap_err().to_string();
            assert!(error.contains(&format!("{bad:?}")), "{error}");
        }
    }

    #[test]
    fn a_commit_id_has_40_or_64_digits() {
        assert_eq!("A".repeat(40).parse::<CommitId>().unwrap().to_string(), "a".repeat(40));
        assert!("0".repeat(64).parse::<CommitId>().is_ok());
        for bad in ["", "1234567", &"g".repeat(40), &"0".repeat(41), &"0".repeat(63)] {
            assert!(bad.parse::<CommitId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_issue_has_its_tags_in_order_and_each_person_once() {
        let (repo, carol) = (repo(), Keys::generate().public_key());
        let issue = Issue {
            repo: repo.clone(),
            subject: "It breaks".into(),
            content: "badly".into(),
            labels: vec!["bug".into(), "urgent".into()],
            to: vec![carol, repo.owner, carol],
        };
        let draft = issue.draft(7).unwrap();
        assert_eq!((draft.kind, draft.content.as_str(), draft.created_at), (1621, "badly", 7));
        let (owner, carol) = (repo.owner.to_hex(), carol.to_hex());
        let wanted = [
            ["a", &format!("30617:{owner}:tool")],
            ["p", &owner],
            ["p", &carol],
            ["subject", "It breaks"],
            ["t", "bug"],
            ["t", "urgent"],
        ];
        assert_eq!(draft.tags, wanted);
    }

    #[test]
    fn an_issue_keeps_the_limits_of_its_texts() {
        let issue = |subject: usize, content: usize| Issue {
            repo: repo(),
            subject: "s".repeat(subject),
            content: "c".repeat(content),
            labels: Vec::new(),
            to: Vec::new(),
        };
        assert!(issue(256, 65_536).draft(1).is_ok() && issue(1, 0).draft(1).is_ok());
        for (subject, content) in [(0, 1), (257, 1), (1, 65_537)] {
            assert!(issue(subject, content).draft(1).is_err(), "{subject} {content}");
        }
    }
}
