//! Drafts of events, from what a command was given: pure, with the limits that a relay would refuse too.

pub mod agent_draft;
pub mod archive;
pub mod channel;
pub mod diff;
pub mod dm;
pub mod emoji;
pub mod git;
pub mod message;
pub mod moderation;
pub mod note;
pub mod reaction;
pub mod repo;
pub mod social;
pub mod user;
pub mod workflow;

use crate::channel::{ChannelError, ChannelId};
use crate::event::Draft;
use crate::id::PublicKey;
use crate::mention::MentionError;
use crate::owner::OwnerTag;

/// Longest text of a message, note, edit, issue or status, in bytes.
pub const MAX_TEXT_BYTES: usize = 65_536;

/// Why an event cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A text is too long.
    #[error("{what} has {got} {unit}, at most {limit} are taken; shorten it")]
    TooLong {
        /// Which text.
        what: &'static str,
        /// Its length.
        got: usize,
        /// The longest that is taken.
        limit: usize,
        /// What is counted.
        unit: &'static str,
    },
    /// A value is not what it must be.
    #[error("{what} must be {wanted}, got {got:?}")]
    Invalid {
        /// Which value.
        what: &'static str,
        /// What it must be.
        wanted: &'static str,
        /// What it is, shortened to what an error can show.
        got: String,
    },
    /// Parts that do not go together, or one that is missing.
    #[error("{0}")]
    Together(&'static str),
    /// Who is mentioned.
    #[error(transparent)]
    Mention(#[from] MentionError),
    /// A channel's id, name or setting.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// An owner's tag that would stand on the event twice, or not at all.
    #[error("an event of an agent must carry its owner's tag exactly once, this one would carry {0}")]
    OwnerTags(usize),
}

/// How much of a wrong value an error repeats, in characters.
const SHOWN_CHARS: usize = 80;

impl BuildError {
    /// A value that is not what it must be.
    pub fn invalid(what: &'static str, wanted: &'static str, got: &str) -> Self {
        Self::Invalid { what, wanted, got: got.chars().take(SHOWN_CHARS).collect() }
    }
}

/// Checks a length in bytes.
pub fn check_bytes(what: &'static str, text: &str, limit: usize) -> Result<(), BuildError> {
    match text.len() {
        got if got > limit => Err(BuildError::TooLong { what, got, limit, unit: "bytes" }),
        _ => Ok(()),
    }
}

/// Checks that a text is an `http` or `https` URL of at most `limit` bytes.
pub fn check_http_url(what: &'static str, text: &str, limit: usize) -> Result<(), BuildError> {
    check_bytes(what, text, limit)?;
    let is_http = url::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    match is_http {
        true => Ok(()),
        false => Err(BuildError::invalid(what, "an http or https URL", text)),
    }
}

/// A draft that belongs to a channel: its `h` tag is the first.
fn in_channel(kind: u16, channel: &ChannelId, content: impl Into<String>, now: u64) -> Draft {
    Draft::new(kind, content, now).tag(["h", &channel.to_string()])
}

/// Makes a draft what `author` signs: without `p` tags that name the author itself, whom nobody needs to
/// call, and with the owner's tag as the last one.
pub fn complete(mut draft: Draft, author: &PublicKey, owner: Option<&OwnerTag>) -> Result<Draft, BuildError> {
    let own = author.to_hex();
    draft.tags.retain(|tag| !matches!(tag.as_slice(), [name, key, ..] if name == "p" && *key == own));
    draft.tags.extend(owner.map(OwnerTag::to_tag));
    let count = draft.tags.iter().filter(|tag| tag.first().is_some_and(|name| name == "auth")).count();
    match count == usize::from(owner.is_some()) {
        true => Ok(draft),
        false => Err(BuildError::OwnerTags(count)),
    }
}

/// The time of a write that takes the place of another: now, or just past it, so that a second write within
/// a second is not lost.
pub fn time_after(now: u64, replaced: Option<u64>) -> u64 {
    replaced.map_or(now, |replaced| now.max(replaced.saturating_add(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Keys;

    #[test]
    fn the_owners_tag_comes_last_and_the_author_is_not_called() {
        let (owner, agent, other) = (Keys::generate(), Keys::generate(), Keys::generate());
        let tag = OwnerTag::issue(&owner, &agent.public_key(), "").unwrap();
        let (me, other) = (agent.public_key(), other.public_key().to_hex());
        let draft = Draft::new(9, "", 1).tag(["p", &me.to_hex()]).tag(["p", &other]);
        let complete = complete(draft, &me, Some(&tag)).unwrap();
        assert_eq!(complete.tags, [vec!["p".to_owned(), other], tag.to_tag()]);
    }

    #[test]
    fn an_owners_tag_of_the_drafts_own_is_refused() {
        let author = Keys::generate().public_key();
        let draft = Draft::new(9, "", 1).tag(["auth", "x"]);
        assert_eq!(complete(draft, &author, None), Err(BuildError::OwnerTags(1)));
    }

    #[test]
    fn a_write_in_the_same_second_comes_after_the_one_it_replaces() {
        assert_eq!(time_after(10, None), 10);
        assert_eq!(time_after(10, Some(9)), 10);
        assert_eq!(time_after(10, Some(10)), 11);
        assert_eq!(time_after(10, Some(20)), 21);
    }

    #[test]
    fn only_web_addresses_of_their_length_pass() {
        assert_eq!(check_http_url("url", "https://a.example/x", 30), Ok(()));
        assert!(check_http_url("url", "https://a.example/x", 18).is_err());
        for text in ["", "ftp://a.example", "a.example", "http://"] {
            assert!(check_http_url("url", text, 100).is_err(), "{text}");
        }
    }
}
