//! Long notes (NIP-23): kind 30023, each under a name of its author's.

use std::fmt;
use std::str::FromStr;

use super::BuildError;
use crate::coordinate::Coordinate;
use crate::event::{Draft, Event};
use crate::id::PublicKey;
use crate::kind::{DELETION, LONG_FORM};

/// Longest name, in bytes.
pub const MAX_SLUG_BYTES: usize = 80;

/// What a note is called: 1 to 80 of `a-z`, `0-9`, `.`, `_` and `-`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slug(String);

impl Slug {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Where an author's note of this name is.
    pub fn of(&self, author: PublicKey) -> Coordinate {
        Coordinate::new(LONG_FORM, author, self.0.clone())
    }
}

impl FromStr for Slug {
    type Err = BuildError;

    fn from_str(text: &str) -> Result<Self, BuildError> {
        let is_known =
            |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9') || matches!(byte, b'.' | b'_' | b'-');
        match (1..=MAX_SLUG_BYTES).contains(&text.len()) && text.bytes().all(is_known) {
            true => Ok(Self(text.to_owned())),
            false => Err(BuildError::invalid("the name of a note", "1 to 80 of a-z, 0-9, ., _ and -", text)),
        }
    }
}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a note says about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// Its title; absent if it is empty.
    pub title: Option<String>,
    /// What is in it; absent if it is empty.
    pub summary: Option<String>,
    /// Its topics.
    pub topics: Vec<String>,
    /// When it was first published, in seconds since 1970.
    pub published_at: Option<u64>,
}

impl Header {
    /// What an event says. A time that is none counts as absent.
    pub fn of(event: &Event) -> Self {
        let text = |name| event.tag_value(name).filter(|value| !value.is_empty()).map(str::to_owned);
        Self {
            title: text("title"),
            summary: text("summary"),
            topics: event.tag_values("t").map(str::to_owned).collect(),
            published_at: event.tag_value("published_at").and_then(|time| time.parse().ok()),
        }
    }
}

/// What a new version of a note changes. What is absent stays, an empty text goes.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// The title.
    pub title: Option<String>,
    /// The summary.
    pub summary: Option<String>,
    /// All topics.
    pub topics: Option<Vec<String>>,
}

impl Change {
    /// The header of the next version. The first version needs a title.
    pub fn apply(self, old: Option<&Event>, now: u64) -> Result<Header, BuildError> {
        let kept = old.map(Header::of).unwrap_or_default();
        let is_first = old.is_none();
        let choose = |new: Option<String>, kept| match new {
            Some(text) => Some(text).filter(|text| !text.is_empty()),
            None => kept,
        };
        let title = choose(self.title, kept.title);
        if is_first && title.is_none() {
            return Err(BuildError::Together("a note that is new needs a title: --title"));
        }
        let first = kept.published_at.or(old.map(|event| event.created_at));
        Ok(Header {
            title,
            summary: choose(self.summary, kept.summary),
            topics: self.topics.unwrap_or(kept.topics),
            published_at: Some(first.unwrap_or(now)),
        })
    }
}

/// The event of a note: `d`, `title`, `summary`, `t`..., `published_at`.
pub fn draft(slug: &Slug, header: &Header, content: &str, created_at: u64) -> Draft {
    let mut draft = Draft::new(LONG_FORM, content, created_at).tag(["d", slug.as_str()]);
    for (name, value) in [("title", &header.title), ("summary", &header.summary)] {
        draft = value.iter().fold(draft, |draft, value| draft.tag([name, value]));
    }
    draft = header.topics.iter().fold(draft, |draft, topic| draft.tag(["t", topic]));
    let published_at = header.published_at.map(|time| time.to_string());
    published_at.iter().fold(draft, |draft, time| draft.tag(["published_at", time]))
}

/// Takes back all versions up to now, or up to `head` if that is dated later.
pub fn deletion(address: &Coordinate, head: u64, now: u64) -> Draft {
    Draft::new(DELETION, "", now.max(head)).tag(["a", &address.to_string()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Keys;

    fn slug() -> Slug {
        "plan".parse().unwrap()
    }

    fn text(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    fn first() -> Event {
        let change = Change {
            title: text("The Plan"),
            summary: text("short"),
            topics: Some(vec!["one".into(), "two".into()]),
        };
        let header = change.apply(None, 5).unwrap();
        Keys::generate().sign(draft(&slug(), &header, "# Plan", 5))
    }

    #[test]
    fn a_note_has_its_tags_in_order() {
        let wanted = [
            ["d", "plan"],
            ["title", "The Plan"],
            ["summary", "short"],
            ["t", "one"],
            ["t", "two"],
            ["published_at", "5"],
        ];
        assert_eq!((first().kind, first().content.as_str()), (30_023, "# Plan"));
        assert_eq!(first().tags, wanted);
    }

    #[test]
    fn a_new_version_keeps_what_is_left_out_and_when_it_was_first_published() {
        assert_eq!(Change::default().apply(Some(&first()), 9), Ok(Header::of(&first())));
        let change = Change { title: text("Other"), topics: Some(vec!["three".into()]), ..Change::default() };
        let header = change.apply(Some(&first()), 9).unwrap();
        assert_eq!((header.title, header.summary), (text("Other"), text("short")));
        assert_eq!((header.topics, header.published_at), (vec!["three".to_owned()], Some(5)));
    }

    #[test]
    fn an_empty_text_clears() {
        let change = Change { title: text(""), summary: text(""), topics: Some(Vec::new()) };
        let header = change.apply(Some(&first()), 9).unwrap();
        assert_eq!(header, Header { published_at: Some(5), ..Header::default() });
    }

    #[test]
    fn a_first_version_needs_a_title() {
        for title in [None, text("")] {
            assert!(Change { title, ..Change::default() }.apply(None, 5).is_err());
        }
    }

    #[test]
    fn a_note_of_others_making_without_a_date_keeps_its_own() {
        let old =
            Keys::generate().sign(Draft::new(LONG_FORM, "", 3).tag(["d", "plan"]).tag(["published_at", "x"]));
        assert_eq!(Change::default().apply(Some(&old), 9).unwrap().published_at, Some(3));
    }

    #[test]
    fn a_deletion_has_one_a_tag_and_covers_the_newest_version() {
        let address = slug().of(first().pubkey);
        let wanted = [["a", &format!("30023:{}:plan", address.pubkey)]];
        for (head, now, created_at) in [(5, 9, 9), (9, 5, 9)] {
            let draft = deletion(&address, head, now);
            assert_eq!((draft.kind, draft.created_at), (5, created_at));
            assert_eq!(draft.tags, wanted);
        }
    }

    #[test]
    fn a_name_has_its_letters_and_length() {
        for good in ["a", "plan-2.0_x", &"x".repeat(80)] {
            assert!(good.parse::<Slug>().is_ok(), "{good}");
        }
        for bad in ["", "Bad Name", "Upper", "a/b", "ü", &"x".repeat(81)] {
            assert!(bad.parse::<Slug>().is_err(), "{bad}");
        }
    }
}
