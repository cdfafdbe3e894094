//! Slugs: the names of memories, and how a text refers to them.

use std::fmt;
use std::str::FromStr;

/// The slug of what an agent always knows.
pub const CORE: &str = "core";
/// The longest slug, in bytes.
pub const MAX_SLUG_BYTES: usize = 255;
const PREFIX: &str = "mem/";
const MAX_SEGMENT_BYTES: usize = 64;

/// The name of a memory: `core`, or `mem/` and segments of `a-z`, `0-9`, `_` and `-` joined by `/`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slug(String);

/// A text that is no slug.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "bad slug {0:?}: use core, or mem/ and segments of a-z, 0-9, _ and - that begin with a letter or digit, \
     joined by /; at most {MAX_SEGMENT_BYTES} bytes a segment, {MAX_SLUG_BYTES} in all"
)]
pub struct SlugError(String);

impl Slug {
    /// The slug `core`.
    pub fn core() -> Self {
        Self(CORE.to_owned())
    }

    /// Reads what a person typed: `mem/` may be left out.
    pub fn expand(text: &str) -> Result<Self, SlugError> {
        if text == CORE || text.starts_with(PREFIX) {
            text.parse()
        } else {
            format!("{PREFIX}{text}").parse().map_err(|_| SlugError::of(text))
        }
    }

    /// The slug as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is `core`.
    pub fn is_core(&self) -> bool {
        self.0 == CORE
    }
}

impl SlugError {
    fn of(text: &str) -> Self {
        Self(text.chars().take(80).collect())
    }
}

impl FromStr for Slug {
    type Err = SlugError;

    fn from_str(text: &str) -> Result<Self, SlugError> {
        match is_slug(text) {
            true => Ok(Self(text.to_owned())),
            false => Err(SlugError::of(text)),
        }
    }
}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

fn is_slug(text: &str) -> bool {
    let is_path = || text.strip_prefix(PREFIX).is_some_and(|path| path.split('/').all(is_segment));
    text == CORE || (text.len() <= MAX_SLUG_BYTES && is_path())
}

fn is_segment(text: &str) -> bool {
    let is_start = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= MAX_SEGMENT_BYTES
        && text.as_bytes().first().is_some_and(is_start)
        && text.bytes().all(|byte| is_start(&byte) || matches!(byte, b'_' | b'-'))
}

/// The slugs that a text refers to as `[[slug]]`, each once, in order. The first `]]` closes, a `[[` before
/// it starts anew, and what is no slug is passed over.
pub fn references(text: &str) -> Vec<Slug> {
    let mut found: Vec<Slug> = Vec::new();
    let mut rest = text;
    while let Some(end) = rest.find("]]") {
        let opened = rest[..end].rfind("[[").map(|start| &rest[start + 2..end]);
        if let Some(slug) = opened.and_then(|name| name.parse().ok()) {
            if !found.contains(&slug) {
                found.push(slug);
            }
        }
        rest = &rest[end + 2..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_may_leave_the_prefix_out() {
        for (typed, wanted) in [("a/b", "mem/a/b"), ("mem/a", "mem/a"), ("core", "core"), ("mem", "mem/mem")]
        {
            assert_eq!(Slug::expand(typed).unwrap().as_str(), wanted);
        }
        for typed in ["", "A", "mem/", "a//b", "/a", "../a", "a b", "é"] {
            let error = Slug::expand(typed).unwrap_err();
            assert_eq!(error, SlugError(typed.to_owned()));
        }
    }

    #[test]
    fn the_limits_of_segment_and_whole_hold() {
        let segment = "a".repeat(64);
        let whole = |last: usize| format!("mem/{segment}/{segment}/{segment}/{}", "b".repeat(last));
        assert_eq!(whole(56).len(), MAX_SLUG_BYTES);
        assert!(whole(56).parse::<Slug>().is_ok());
        assert!(whole(57).parse::<Slug>().is_err());
        assert!(format!("mem/{segment}a").parse::<Slug>().is_err());
    }

    #[test]
    fn references_are_read_in_order_and_once() {
        let slugs = |text| references(text).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(slugs("[[mem/b]] [[core]] [[mem/b]]"), ["mem/b", "core"]);
        assert_eq!(slugs("[[x [[mem/a]] ]] [[mem/A]] [[mem/c"), ["mem/a"]);
        assert_eq!(slugs("[[mem/a]]]] é]] [[é]] [[]]"), ["mem/a"]);
        assert_eq!(slugs("[[mem/a\n]]"), [""; 0]);
    }
}
