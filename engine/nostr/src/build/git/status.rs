//! What has become of an issue, a pull request or a patch: kinds 1630 to 1633.

use std::str::FromStr;

use super::{with_each, with_people, CommitId, RepoAddress};
use crate::build::{check_bytes, BuildError, MAX_TEXT_BYTES};
use crate::event::{Draft, Tag};
use crate::id::{EventId, PublicKey};
use crate::kind::{GIT_STATUS_CLOSED, GIT_STATUS_DRAFT, GIT_STATUS_MERGED, GIT_STATUS_OPEN};

/// What has become of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It waits.
    Open,
    /// Patches were applied, a pull request merged, an issue resolved.
    Merged,
    /// It is not wanted, or not any more.
    Closed,
    /// It is not ready.
    Draft,
}

impl State {
    /// The kind of the event that says so.
    pub const fn kind(self) -> u16 {
        match self {
            Self::Open => GIT_STATUS_OPEN,
            Self::Merged => GIT_STATUS_MERGED,
            Self::Closed => GIT_STATUS_CLOSED,
            Self::Draft => GIT_STATUS_DRAFT,
        }
    }
}

impl FromStr for State {
    type Err = BuildError;

    fn from_str(text: &str) -> Result<Self, BuildError> {
        match text {
            "open" => Ok(Self::Open),
            "merged" | "resolved" => Ok(Self::Merged),
            "closed" => Ok(Self::Closed),
            "draft" => Ok(Self::Draft),
            _ => {
                let words = "one of open, merged (of an issue: resolved), closed, draft";
                Err(BuildError::invalid("the status", words, text))
            }
        }
    }
}

/// A patch that was applied: `id`, `id:relay` or `id:relay:author`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quote {
    event: EventId,
    relay: Option<String>,
    author: Option<PublicKey>,
}

impl FromStr for Quote {
    type Err = BuildError;

    /// The relay's URL may hold colons: only 64 hex digits behind the last one are an author.
    fn from_str(text: &str) -> Result<Self, BuildError> {
        let wanted = "ID, ID:RELAY or ID:RELAY:AUTHOR";
        let wrong = || BuildError::invalid("an applied patch", wanted, text);
        let (id, rest) = text.split_once(':').map_or((text, None), |(id, rest)| (id, Some(rest)));
        let event = id.parse().map_err(|_| wrong())?;
        let Some(rest) = rest else { return Ok(Self { event, relay: None, author: None }) };
        let (relay, author) = match rest.rsplit_once(':').map(|(relay, key)| (relay, key.parse())) {
            Some((relay, Ok(author))) => (relay, Some(author)),
            _ => (rest, None),
        };
        match relay.is_empty() {
            true => Err(wrong()),
            false => Ok(Self { event, relay: Some(relay.to_owned()), author }),
        }
    }
}

impl Quote {
    fn tag(&self) -> Tag {
        let parts = [Some("q".to_owned()), Some(self.event.to_hex()), self.relay.clone()];
        parts.into_iter().chain([self.author.map(|author| author.to_hex())]).flatten().collect()
    }
}

/// What is known of how something was merged. Only with [`State::Merged`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Merge {
    /// The patches that were applied.
    pub quotes: Vec<Quote>,
    /// The commit that merged it.
    pub merge_commit: Option<CommitId>,
    /// The commits that patches became.
    pub applied_as: Vec<CommitId>,
}

/// A new status.
#[derive(Debug, Clone)]
pub struct Status {
    /// The issue, the pull request or the first patch.
    pub root: EventId,
    /// What has become of it.
    pub state: State,
    /// A text, up to [`MAX_TEXT_BYTES`].
    pub content: String,
    /// The version of the patches that this is about.
    pub revision: Option<EventId>,
    /// Where it belongs.
    pub repo: Option<RepoAddress>,
    /// The repository's earliest unique commit.
    pub earliest_commit: Option<CommitId>,
    /// Who is told beside the repository's owner.
    pub to: Vec<PublicKey>,
    /// How it was merged.
    pub merge: Merge,
}

impl Status {
    /// The event: `e` root, `e` reply, `p`..., `a`, `r`, `q`..., `merge-commit` and `r`, `applied-as-commits` and
    /// `r`...
    pub fn draft(self, now: u64) -> Result<Draft, BuildError> {
        if self.state != State::Merged && self.merge != Merge::default() {
            return Err(BuildError::Together(
                "a merge commit, applied patches and applied commits go with the status merged only",
            ));
        }
        check_bytes("the text of a status", &self.content, MAX_TEXT_BYTES)?;
        let mut draft = Draft::new(self.state.kind(), self.content, now).tag(marked(&self.root, "root"));
        if let Some(revision) = &self.revision {
            draft = draft.tag(marked(revision, "reply"));
        }
        let owner = self.repo.as_ref().map(|repo| repo.owner);
        draft = with_people(draft, owner.into_iter().chain(self.to));
        draft = with_each(draft, "a", self.repo);
        draft = with_each(draft, "r", self.earliest_commit);
        Ok(self.merge.add_to(draft))
    }
}

fn marked(event: &EventId, marker: &str) -> Tag {
    vec!["e".into(), event.to_hex(), String::new(), marker.into()]
}

impl Merge {
    fn add_to(self, draft: Draft) -> Draft {
        let mut draft = self.quotes.iter().fold(draft, |draft, quote| draft.tag(quote.tag()));
        draft = with_each(draft, "merge-commit", &self.merge_commit);
        draft = with_each(draft, "r", &self.merge_commit);
        if self.applied_as.is_empty() {
            return draft;
        }
        let commits = self.applied_as.iter().map(ToString::to_string);
        draft = draft.tag(["applied-as-commits".to_owned()].into_iter().chain(commits));
        with_each(draft, "r", &self.applied_as)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{commit, repo};
    use super::*;
    use crate::Keys;

    const ROOT: EventId = EventId::from_bytes([7; 32]);

    fn status(state: State) -> Status {
        Status {
            root: ROOT,
            state,
            content: String::new(),
            revision: None,
            repo: None,
            earliest_commit: None,
            to: Vec::new(),
            merge: Merge::default(),
        }
    }

    #[test]
    fn each_word_is_its_kind_and_merged_and_resolved_are_one() {
        for (word, kind) in
            [("open", 1630), ("merged", 1631), ("resolved", 1631), ("closed", 1632), ("draft", 1633)]
        {
            let draft = status(word.parse().unwrap()).draft(5).unwrap();
            assert_eq!(draft.kind, kind, "{word}");
            assert_eq!(draft.tags, [["e", &ROOT.to_hex(), "", "root"]]);
        }
        assert!("wontfix".parse::<State>().is_err() && "Open".parse::<State>().is_err());
    }

    #[test]
    fn a_merge_has_its_tags_in_order() {
        let (repo, carol) = (repo(), Keys::generate().public_key());
        let (revision, applied) = (EventId::from_bytes([8; 32]), EventId::from_bytes([9; 32]).to_hex());
        let merge = Merge {
            quotes: vec![applied.parse().unwrap()],
            merge_commit: Some(commit('1')),
            applied_as: vec![commit('2'), commit('3')],
        };
        let full = Status {
            revision: Some(revision),
            repo: Some(repo.clone()),
            earliest_commit: Some(commit('4')),
            to: vec![carol, repo.owner],
            merge,
            ..status(State::Merged)
        };
        let [one, two, three, four] = ["1", "2", "3", "4"].map(|digit| digit.repeat(40));
        let wanted: Vec<Vec<String>> = [
            vec!["e", &ROOT.to_hex(), "", "root"],
            vec!["e", &revision.to_hex(), "", "reply"],
            vec!["p", &repo.owner.to_hex()],
            vec!["p", &carol.to_hex()],
            vec!["a", &repo.to_string()],
            vec!["r", &four],
            vec!["q", &applied],
            vec!["merge-commit", &one],
            vec!["r", &one],
            vec!["applied-as-commits", &two, &three],
            vec!["r", &two],
            vec!["r", &three],
        ]
        .iter()
        .map(|tag| tag.iter().map(|value| (*value).to_owned()).collect())
        .collect();
        assert_eq!(full.draft(5).unwrap().tags, wanted);
    }

    #[test]
    fn what_belongs_to_a_merge_is_refused_with_another_state() {
        let parts = [
            Merge { merge_commit: Some(commit('1')), ..Merge::default() },
            Merge { applied_as: vec![commit('1')], ..Merge::default() },
            Merge { quotes: vec![ROOT.to_hex().parse().unwrap()], ..Merge::default() },
        ];
        for merge in parts {
            let with = |state| Status { merge: merge.clone(), ..status(state) };
            assert!(with(State::Merged).draft(5).is_ok());
            for state in [State::Open, State::Closed, State::Draft] {
                assert!(with(state).draft(5).is_err(), "{merge:?} {state:?}");
            }
        }
    }

    #[test]
    fn an_applied_patch_may_name_a_relay_with_colons_and_an_author() {
        let (id, author) = (ROOT.to_hex(), Keys::generate().public_key().to_hex());
        let relay = "wss://relay.example:7000/a";
        for (text, wanted) in [
            (id.clone(), vec!["q", &id]),
            (format!("{id}:{relay}"), vec!["q", &id, relay]),
            (format!("{id}:{relay}:{author}"), vec!["q", &id, relay, &author]),
        ] {
            assert_eq!(text.parse::<Quote>().unwrap().tag(), wanted, "{text}");
        }
        for text in ["", "abc", &format!("{id}:"), &format!("{id}::{author}"), relay] {
            assert!(text.parse::<Quote>().is_err(), "{text}");
        }
    }
}
