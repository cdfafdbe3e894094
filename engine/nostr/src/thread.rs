//! Threads (NIP-10): the `e` tags of a reply, and how each reader finds the root and the parent in them.
//!
//! A marked tag is an `e` tag of at least four elements whose element 3 is `root` or `reply`; the last of a
//! marker counts. Readers differ in what they make of a tag that is missing or malformed:
//!
//! | reader | only `reply` | only `root` | an id that is none |
//! |---|---|---|---|
//! | [`Thread::under`], who writes a reply | root of the thread | root of the thread | passed over |
//! | [`Thread::stored`], the relay | root = parent | no reply | an error |
//! | [`Shown::of`], the agent's prompt | root = parent | root = parent | shown as it is |

use crate::event::{Event, Tag};
use crate::id::{EventId, HexError};

/// The deepest reply that a relay takes, counted from the root at 0.
pub const MAX_DEPTH: u32 = 100;
const ROOT: &str = "root";
const REPLY: &str = "reply";

/// Where a reply belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Thread {
    /// The event that began the thread.
    pub root: EventId,
    /// The event that is answered; the root itself for a direct reply.
    pub parent: EventId,
}

impl Thread {
    /// Where a reply to `parent` belongs. Malformed ids in the parent's tags are passed over, so that they
    /// cannot block a reply.
    pub fn under(parent: &Event) -> Self {
        let last_valid = |marker| marked(parent, marker).filter_map(|id| id.parse().ok()).last();
        let root = last_valid(ROOT).or_else(|| last_valid(REPLY)).unwrap_or(parent.id);
        Self { root, parent: parent.id }
    }

    /// Where a relay stores an event: nothing for one that is at top level, as one with a root marker only.
    /// An id that is none is an error, since it can be no stored parent.
    pub fn stored(event: &Event) -> Result<Option<Self>, HexError> {
        let Some(parent) = marked(event, REPLY).last() else { return Ok(None) };
        let parent = parent.parse()?;
        let root = marked(event, ROOT).last().map_or(Ok(parent), str::parse)?;
        Ok(Some(Self { root, parent }))
    }

    /// The tags of a reply: one for a direct reply, root and parent for a nested one.
    pub fn tags(&self) -> Vec<Tag> {
        let tag = |id: &EventId, marker: &str| -> Tag {
            vec!["e".to_owned(), id.to_hex(), String::new(), marker.to_owned()]
        };
        if self.root == self.parent {
            vec![tag(&self.parent, REPLY)]
        } else {
            vec![tag(&self.root, ROOT), tag(&self.parent, REPLY)]
        }
    }
}

/// The thread of an event as an agent is shown it: the texts of the tags, which may be no ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown<'a> {
    /// What the tags call the root.
    pub root: &'a str,
    /// What the tags call the answered event.
    pub parent: &'a str,
}

impl<'a> Shown<'a> {
    /// The thread of an event, if it has a marked tag at all. A missing marker is filled from the other.
    pub fn of(event: &'a Event) -> Option<Self> {
        let (root, reply) = (marked(event, ROOT).last(), marked(event, REPLY).last());
        Some(Self { root: root.or(reply)?, parent: reply.or(root)? })
    }
}

/// Whether a reply is to be seen at the top of its channel too: the tag `["broadcast","1"]`, exactly.
pub fn is_broadcast(event: &Event) -> bool {
    event.tags.iter().any(|tag| *tag == ["broadcast", "1"])
}

fn marked<'a>(event: &'a Event, marker: &'a str) -> impl Iterator<Item = &'a str> + 'a {
    event.tags_named("e").filter_map(move |tag| match tag.as_slice() {
        [_, id, _, found, ..] if found == marker => Some(id.as_str()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Draft, Keys};

    fn id(byte: u8) -> EventId {
        EventId::from_bytes([byte; 32])
    }

    fn message(tags: &[&[&str]]) -> Event {
        let draft = tags.iter().fold(Draft::new(9, "", 1), |draft, tag| draft.tag(tag.iter().copied()));
        Keys::generate().sign(draft)
    }

    fn hexes() -> (String, String) {
        (id(1).to_hex(), id(2).to_hex())
    }

    #[test]
    fn a_direct_reply_has_one_tag_and_a_nested_one_has_root_then_reply() {
        let (one, two) = hexes();
        assert_eq!(Thread { root: id(1), parent: id(1) }.tags(), [["e", &one, "", "reply"]]);
        let nested = Thread { root: id(1), parent: id(2) }.tags();
        assert_eq!(nested, [["e", &one, "", "root"], ["e", &two, "", "reply"]]);
    }

    #[test]
    fn a_reply_joins_the_root_of_its_parent() {
        let (one, two) = hexes();
        let root_of = |tags: &[&[&str]]| Thread::under(&message(tags)).root;
        assert_eq!(root_of(&[&["e", &one, "", "root"], &["e", &two, "", "reply"]]), id(1));
        assert_eq!(root_of(&[&["e", &two, "", "reply"]]), id(2));
        assert_eq!(root_of(&[&["e", &one, "", "root"]]), id(1));
        assert_eq!(root_of(&[&["e", &one, "", "reply"], &["e", &two, "", "reply"]]), id(2));
    }

    #[test]
    fn a_reply_to_an_unmarked_or_malformed_parent_starts_at_that_parent() {
        let (one, two) = hexes();
        for tags in [&[][..], &[&["e", &one][..]], &[&["e", &one, "reply"]], &[&["e", "x", "", "root"]]] {
            let parent = message(tags);
            assert_eq!(Thread::under(&parent), Thread { root: parent.id, parent: parent.id });
        }
        let bad_root = message(&[&["e", "x", "", "root"], &["e", &two, "", "reply"]]);
        assert_eq!(Thread::under(&bad_root).root, id(2));
        let bad_last = message(&[&["e", &one, "", "root"], &["e", "x", "", "root"]]);
        assert_eq!(Thread::under(&bad_last).root, id(1));
    }

    #[test]
    fn a_root_marker_alone_is_a_thread_for_the_agent_and_none_for_the_relay() {
        let (one, _) = hexes();
        let event = message(&[&["e", &one, "", "root"]]);
        assert_eq!(Thread::stored(&event), Ok(None));
        assert_eq!(Shown::of(&event), Some(Shown { root: &one, parent: &one }));
    }

    #[test]
    fn a_reply_marker_alone_is_root_and_parent_for_both() {
        let (one, _) = hexes();
        let event = message(&[&["e", &one, "", "reply"]]);
        assert_eq!(Thread::stored(&event), Ok(Some(Thread { root: id(1), parent: id(1) })));
        assert_eq!(Shown::of(&event), Some(Shown { root: &one, parent: &one }));
    }

    #[test]
    fn both_markers_are_taken_as_given_and_the_last_of_each_counts() {
        let (one, two) = hexes();
        let event = message(&[
            &["e", &two, "", "root"],
            &["e", &one, "", "root"],
            &["e", &one, "", "reply"],
            &["e", &two, "wss://hint", "reply", "author"],
        ]);
        assert_eq!(Thread::stored(&event), Ok(Some(Thread { root: id(1), parent: id(2) })));
        assert_eq!(Shown::of(&event), Some(Shown { root: &one, parent: &two }));
    }

    #[test]
    fn an_id_that_is_none_is_an_error_for_the_relay_and_shown_to_the_agent() {
        let (one, _) = hexes();
        for tags in
            [&[&["e", "x", "", "reply"][..]][..], &[&["e", "x", "", "root"][..], &["e", &one, "", "reply"]]]
        {
            let event = message(tags);
            assert!(Thread::stored(&event).is_err());
            assert_eq!(Shown::of(&event).unwrap().root, "x");
        }
    }

    #[test]
    fn unmarked_tags_make_no_thread() {
        let (one, _) = hexes();
        let event = message(&[&["e", &one], &["e", &one, ""], &["e", &one, "", "mention"], &["p", &one]]);
        assert_eq!(Thread::stored(&event), Ok(None));
        assert_eq!(Shown::of(&event), None);
    }

    #[test]
    fn only_the_exact_tag_is_a_broadcast() {
        assert!(is_broadcast(&message(&[&["broadcast", "1"]])));
        for tag in [&["broadcast"][..], &["broadcast", "0"], &["broadcast", "1", ""], &["broadcast", "true"]]
        {
            assert!(!is_broadcast(&message(&[tag])), "{tag:?}");
        }
    }
}
