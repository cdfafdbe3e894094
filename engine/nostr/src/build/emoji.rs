//! Sets of custom emoji: kind 30030 with the one `d` value that everybody's palette is made of.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::reaction::{shortcode, MAX_EMOJI_URL_BYTES};
use super::{check_http_url, BuildError};
use crate::event::{Draft, Event};
use crate::kind::EMOJI_SET;

/// The `d` value of the sets.
pub const SET_ID: &str = "buzz:custom-emoji";

/// A custom emoji.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Emoji {
    /// Its name, without colons, in lower case.
    pub shortcode: String,
    /// Its picture.
    pub url: String,
}

impl Emoji {
    /// An emoji with a name and a picture that are fit for use.
    pub fn new(code: &str, url: &str) -> Result<Self, BuildError> {
        check_http_url("the emoji's address", url, MAX_EMOJI_URL_BYTES)?;
        Ok(Self { shortcode: shortcode(code)?, url: url.to_owned() })
    }
}

/// The emoji of a set, in its order: of two with one name the first, and none that is unfit.
pub fn of_set(event: &Event) -> Vec<Emoji> {
    let mut seen = BTreeSet::new();
    let tags = event.tags_named("emoji");
    tags.filter_map(|tag| Emoji::new(tag.get(1)?, tag.get(2)?).ok())
        .filter(|emoji| seen.insert(emoji.shortcode.clone()))
        .collect()
}

/// What all sets offer together, by name: of each name the picture of the newest set.
pub fn palette(sets: &[Event]) -> Vec<Emoji> {
    let mut newest: Vec<_> = sets.iter().collect();
    newest.sort_by_key(|event| (std::cmp::Reverse(event.created_at), event.id));
    let mut by_code = BTreeMap::new();
    for emoji in newest.into_iter().flat_map(of_set) {
        by_code.entry(emoji.shortcode).or_insert(emoji.url);
    }
    by_code.into_iter().map(|(shortcode, url)| Emoji { shortcode, url }).collect()
}

/// The set with this emoji, in the place of one of the same name.
pub fn with(mut set: Vec<Emoji>, emoji: Emoji) -> Vec<Emoji> {
    match set.iter_mut().find(|old| old.shortcode == emoji.shortcode) {
        Some(old) => *old = emoji,
        None => set.push(emoji),
    }
    set
}

/// The set and what is new in another list: a name that the set has keeps its picture, and so does the first
/// of two in the list.
pub fn merged(mut set: Vec<Emoji>, more: impl IntoIterator<Item = Emoji>) -> Vec<Emoji> {
    let mut names: BTreeSet<_> = set.iter().map(|emoji| emoji.shortcode.clone()).collect();
    set.extend(more.into_iter().filter(|emoji| names.insert(emoji.shortcode.clone())));
    set
}

/// The event of a set: `d`, `emoji`...
pub fn draft(set: &[Emoji], created_at: u64) -> Draft {
    let draft = Draft::new(EMOJI_SET, "", created_at).tag(["d", SET_ID]);
    set.iter().fold(draft, |draft, emoji| draft.tag(["emoji", &emoji.shortcode, &emoji.url]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Keys;

    fn emoji(code: &str, url: &str) -> Emoji {
        Emoji { shortcode: code.into(), url: format!("https://e.example/{url}") }
    }

    #[test]
    fn a_set_is_read_as_it_was_written_without_what_is_unfit() {
        let set = [emoji("cat", "c"), emoji("ant", "a")];
        let written = draft(&set, 5);
        assert_eq!(
            (written.kind, written.tags[0].as_slice()),
            (30_030, ["d", SET_ID].map(String::from).as_slice())
        );
        let odd = written
            .tag(["emoji", "CAT", "https://e.example/other"])
            .tag(["emoji", "a b", "https://e.example/x"])
            .tag(["emoji", "dog", "ftp://e.example/x"])
            .tag(["emoji", "dog"]);
        assert_eq!(of_set(&Keys::generate().sign(odd)), set);
    }

    #[test]
    fn the_newest_set_decides_what_a_name_looks_like() {
        let old = Keys::generate().sign(draft(&[emoji("dog", "old"), emoji("cat", "c")], 5));
        let new = Keys::generate().sign(draft(&[emoji("dog", "new")], 6));
        let wanted = [emoji("cat", "c"), emoji("dog", "new")];
        assert_eq!(palette(&[old.clone(), new.clone()]), wanted);
        assert_eq!(palette(&[new, old]), wanted);
    }

    #[test]
    fn setting_replaces_and_merging_keeps() {
        let set = vec![emoji("cat", "c"), emoji("dog", "d")];
        assert_eq!(with(set.clone(), emoji("cat", "new")), [emoji("cat", "new"), emoji("dog", "d")]);
        assert_eq!(with(set.clone(), emoji("ant", "a")).len(), 3);
        let more = [emoji("dog", "other"), emoji("ant", "1"), emoji("ant", "2")];
        assert_eq!(merged(set, more), [emoji("cat", "c"), emoji("dog", "d"), emoji("ant", "1")]);
    }

    #[test]
    fn an_emoji_has_a_name_and_a_web_address() {
        assert_eq!(Emoji::new(":Cat:", "https://e.example/c"), Ok(emoji("cat", "c")));
        assert!(Emoji::new("two words", "https://e.example/c").is_err());
        assert!(Emoji::new("x", "ftp://e.example/c").is_err());
    }
}
