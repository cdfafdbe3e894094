//! What an announcement says of pushes: `buzz-protect` tags, each a pattern of refs and its rules.

use std::fmt;
use std::str::FromStr;

use crate::build::BuildError;
use crate::event::{Draft, Tag};

/// The tag of a rule.
pub const PROTECT_TAG: &str = "buzz-protect";
/// Longest pattern, in characters.
pub const MAX_PATTERN_CHARS: usize = 256;
/// Most wildcards in a pattern.
pub const MAX_WILDCARDS: usize = 3;
/// Most protected patterns of a repository.
pub const MAX_PROTECTIONS: usize = 50;

const NO_FORCE_PUSH: &str = "no-force-push";
const NO_DELETE: &str = "no-delete";
const REQUIRE_PATCH: &str = "require-patch";

/// Who may push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pusher {
    /// Owners of the channel.
    Owner,
    /// Owners and admins.
    Admin,
    /// Every member.
    Member,
}

impl FromStr for Pusher {
    type Err = BuildError;

    fn from_str(text: &str) -> Result<Self, BuildError> {
        match text {
            "owner" => Ok(Self::Owner),
            "admin" => Ok(Self::Admin),
            "member" => Ok(Self::Member),
            _ => Err(BuildError::invalid("who may push", "owner, admin or member", text)),
        }
    }
}

impl fmt::Display for Pusher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Owner => "push:owner",
            Self::Admin => "push:admin",
            Self::Member => "push:member",
        })
    }
}

/// A pattern of refs: begins with `refs/`, at most 256 characters, at most 3 of them `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Pattern {
    type Err = BuildError;

    fn from_str(text: &str) -> Result<Self, BuildError> {
        let is_fit = text.strip_prefix("refs/").is_some_and(|rest| !rest.is_empty())
            && text.chars().count() <= MAX_PATTERN_CHARS
            && text.matches('*').count() <= MAX_WILDCARDS;
        match is_fit {
            true => Ok(Self(text.to_owned())),
            false => Err(BuildError::invalid(
                "a pattern of refs",
                "refs/... of at most 256 characters with at most 3 *",
                text,
            )),
        }
    }
}

/// The rules for one pattern, to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protection {
    /// Which refs.
    pub pattern: Pattern,
    /// Who may push to them.
    pub push: Option<Pusher>,
    /// Whether history stays.
    pub no_force_push: bool,
    /// Whether they stay.
    pub no_delete: bool,
    /// Whether changes come as patches.
    pub require_patch: bool,
}

impl Protection {
    /// Whether there is a rule at all.
    pub fn check(&self) -> Result<(), BuildError> {
        self.tag().map(|_| ())
    }

    fn tag(&self) -> Result<Tag, BuildError> {
        let mut tag = vec![PROTECT_TAG.to_owned(), self.pattern.0.clone()];
        tag.extend(self.push.map(|pusher| pusher.to_string()));
        let flags = [
            (self.no_force_push, NO_FORCE_PUSH),
            (self.no_delete, NO_DELETE),
            (self.require_patch, REQUIRE_PATCH),
        ];
        tag.extend(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, rule)| (*rule).to_owned()));
        match tag.len() {
            0..=2 => Err(BuildError::Together(
                "a protection needs a rule: --push, --no-force-push, --no-delete or --require-patch",
            )),
            _ => Ok(tag),
        }
    }
}

/// The rules of one tag, as they are written, whether they are known or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The pattern.
    pub pattern: String,
    /// The rules.
    pub rules: Vec<String>,
}

impl Stored {
    /// The rules that nobody here knows.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        let is_known = |rule: &str| match rule.strip_prefix("push:") {
            Some(pusher) => pusher.parse::<Pusher>().is_ok(),
            None => matches!(rule, NO_FORCE_PUSH | NO_DELETE | REQUIRE_PATCH),
        };
        self.rules.iter().map(String::as_str).filter(move |rule| !is_known(rule))
    }
}

/// The protections among an event's tags, in their order.
pub fn stored(tags: &[Tag]) -> Vec<Stored> {
    let protects = tags.iter().filter(|tag| is_protection(tag));
    protects
        .map(|tag| Stored {
            pattern: tag.get(1).cloned().unwrap_or_default(),
            rules: tag.iter().skip(2).cloned().collect(),
        })
        .collect()
}

fn is_protection(tag: &Tag) -> bool {
    tag.first().is_some_and(|name| name == PROTECT_TAG)
}

/// Whether stored protections are well-formed: patterns, at least a rule for each, and their number. Rules
/// that are not known are no fault.
pub fn check_stored(protections: &[Stored]) -> Result<(), BuildError> {
    for protection in protections {
        protection.pattern.parse::<Pattern>()?;
        if protection.rules.is_empty() {
            return Err(BuildError::invalid("a protection", "a pattern and rules", &protection.pattern));
        }
    }
    match protections.len() {
        got if got > MAX_PROTECTIONS => Err(BuildError::TooLong {
            what: "the list of protections",
            got,
            limit: MAX_PROTECTIONS,
            unit: "entries",
        }),
        _ => Ok(()),
    }
}

/// The announcement with this protection in place of all others of its pattern.
pub fn set(draft: Draft, protection: &Protection) -> Result<Draft, BuildError> {
    let tag = protection.tag()?;
    let (draft, _) = remove(draft, &protection.pattern.0);
    let draft = draft.tag(tag);
    check_stored(&stored(&draft.tags))?;
    Ok(draft)
}

/// The announcement without the protections of a pattern, and how many those were.
pub fn remove(mut draft: Draft, pattern: &str) -> (Draft, usize) {
    let count = draft.tags.len();
    draft.tags.retain(|tag| !(is_protection(tag) && tag.get(1).is_some_and(|value| value == pattern)));
    let removed = count - draft.tags.len();
    (draft, removed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::REPO;

    fn protection(pattern: &str) -> Protection {
        Protection {
            pattern: pattern.parse().unwrap(),
            push: Some(Pusher::Owner),
            no_force_push: false,
            no_delete: false,
            require_patch: false,
        }
    }

    fn repo() -> Draft {
        Draft::new(REPO, "", 5)
            .tag(["d", "tool"])
            .tag([PROTECT_TAG, "refs/heads/main", "push:admin", "later-rule"])
            .tag(["name", "Tool"])
            .tag([PROTECT_TAG, "refs/tags/*", NO_DELETE])
            .tag([PROTECT_TAG, "refs/heads/main", NO_FORCE_PUSH])
    }

    #[test]
    fn a_protection_takes_the_place_of_all_of_its_pattern_and_leaves_the_rest() {
        let all = Protection {
            no_force_push: true,
            no_delete: true,
            require_patch: true,
            ..protection("refs/heads/main")
        };
        let wanted = [
            vec!["d", "tool"],
            vec!["name", "Tool"],
            vec![PROTECT_TAG, "refs/tags/*", NO_DELETE],
            vec![PROTECT_TAG, "refs/heads/main", "push:owner", NO_FORCE_PUSH, NO_DELETE, REQUIRE_PATCH],
        ];
        assert_eq!(set(repo(), &all).unwrap().tags, wanted);
    }

    #[test]
    fn a_protection_without_a_rule_is_refused() {
        let none = Protection { push: None, ..protection("refs/heads/main") };
        assert!(set(repo(), &none).is_err());
    }

    #[test]
    fn removing_counts_what_it_removed() {
        let (draft, removed) = remove(repo(), "refs/heads/main");
        assert_eq!((removed, stored(&draft.tags).len(), draft.tags.len()), (2, 1, 3));
        assert_eq!(remove(draft, "refs/heads/main").1, 0);
    }

    #[test]
    fn a_repository_has_50_protections_at_most() {
        let many = (0..50).fold(repo(), |draft, n| {
            remove(draft, "refs/heads/main").0.tag([PROTECT_TAG, &format!("refs/heads/{n}"), NO_DELETE])
        });
        let (many, _) = remove(many, "refs/tags/*");
        assert_eq!(check_stored(&stored(&many.tags)), Ok(()));
        assert!(set(many.clone(), &protection("refs/heads/7")).is_ok());
        assert!(set(many, &protection("refs/heads/50")).is_err());
    }

    #[test]
    fn a_pattern_begins_with_refs_and_has_its_length_and_wildcards() {
        for good in ["refs/heads/main", "refs/*/*/*", &format!("refs/{}", "ü".repeat(251))] {
            assert!(good.parse::<Pattern>().is_ok(), "{good}");
        }
        for bad in ["", "refs/", "heads/main", "refs/*/*/*/*", &format!("refs/{}", "x".repeat(252))] {
            assert!(bad.parse::<Pattern>().is_err(), "{bad}");
        }
    }

    #[test]
    fn unknown_rules_stay_visible_and_are_no_fault() {
        let found = stored(&repo().tags);
        assert_eq!(found[0].unknown().collect::<Vec<_>>(), ["later-rule"]);
        assert_eq!(check_stored(&found), Ok(()));
        let king = Stored { pattern: "refs/x".into(), rules: vec!["push:king".into()] };
        assert_eq!(king.unknown().collect::<Vec<_>>(), ["push:king"]);
    }

    #[test]
    fn malformed_protections_are_a_fault() {
        for (pattern, rules) in [("main", vec!["no-delete".to_owned()]), ("refs/heads/main", Vec::new())] {
            let stored = Stored { pattern: pattern.into(), rules };
            assert!(check_stored(&[stored]).is_err(), "{pattern}");
        }
        assert!("king".parse::<Pusher>().is_err());
    }
}
