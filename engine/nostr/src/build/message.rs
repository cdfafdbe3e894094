//! Messages of a channel: texts, forum posts and comments, and what is done to them afterwards.

use super::{check_bytes, in_channel, BuildError, MAX_TEXT_BYTES};
use crate::channel::ChannelId;
use crate::event::{Draft, Tag};
use crate::id::{EventId, PublicKey};
use crate::kind::{DELETE_MESSAGE, EDIT, FORUM_COMMENT, FORUM_POST, FORUM_VOTE, MESSAGE};
use crate::mention;
use crate::thread::Thread;

/// What a message, a post and a comment have in common.
#[derive(Debug, Clone)]
pub struct Text<'a> {
    /// Where it stands.
    pub channel: ChannelId,
    /// The words, with links to the attachments.
    pub content: &'a str,
    /// Whom it calls.
    pub mentions: &'a [PublicKey],
    /// The `imeta` tags of the attachments.
    pub attachments: &'a [Tag],
    /// Seconds since 1970.
    pub now: u64,
}

/// Who takes a message away, and why, when it is a moderator's act.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Moderation<'a> {
    /// The act's own id, a UUID.
    pub action_id: Option<&'a str>,
    /// The reason, for programs.
    pub reason_code: Option<&'a str>,
    /// The reason, for everybody.
    pub public_reason: Option<&'a str>,
}

/// How a forum post or comment is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vote {
    /// For it.
    Up,
    /// Against it.
    Down,
}

impl Text<'_> {
    fn draft(&self, kind: u16, thread: Option<&Thread>, broadcast: bool) -> Result<Draft, BuildError> {
        check_bytes("the message", self.content, MAX_TEXT_BYTES)?;
        let mut draft = in_channel(kind, &self.channel, self.content, self.now);
        draft.tags.extend(thread.map(Thread::tags).unwrap_or_default());
        draft.tags.extend(mention::tags(self.mentions, None)?);
        if broadcast {
            draft = draft.tag(["broadcast", "1"]);
        }
        draft.tags.extend_from_slice(self.attachments);
        Ok(draft)
    }
}

/// A message. With `broadcast` a reply is to be seen at the top of its channel too.
pub fn message(text: &Text<'_>, thread: Option<&Thread>, broadcast: bool) -> Result<Draft, BuildError> {
    text.draft(MESSAGE, thread, broadcast)
}

/// A post of a forum.
pub fn forum_post(text: &Text<'_>) -> Result<Draft, BuildError> {
    text.draft(FORUM_POST, None, false)
}

/// A comment on a post, or on a comment.
pub fn forum_comment(text: &Text<'_>, thread: &Thread) -> Result<Draft, BuildError> {
    text.draft(FORUM_COMMENT, Some(thread), false)
}

/// A new text for a message.
pub fn edit(channel: &ChannelId, target: &EventId, content: &str, now: u64) -> Result<Draft, BuildError> {
    check_bytes("the message", content, MAX_TEXT_BYTES)?;
    Ok(in_channel(EDIT, channel, content, now).tag(["e", &target.to_hex()]))
}

/// The end of a message.
pub fn delete(channel: &ChannelId, target: &EventId, moderation: &Moderation<'_>, now: u64) -> Draft {
    let mut draft = in_channel(DELETE_MESSAGE, channel, "", now).tag(["e", &target.to_hex()]);
    for (name, value) in [
        ("action_id", moderation.action_id),
        ("reason_code", moderation.reason_code),
        ("public_reason", moderation.public_reason),
    ] {
        draft.tags.extend(value.map(|value| vec![name.to_owned(), value.to_owned()]));
    }
    draft
}

/// A vote on a post or comment.
pub fn vote(channel: &ChannelId, target: &EventId, vote: Vote, now: u64) -> Draft {
    let content = match vote {
        Vote::Up => "+",
        Vote::Down => "-",
    };
    in_channel(FORUM_VOTE, channel, content, now).tag(["e", &target.to_hex()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Keys;

    const CHANNEL: &str = "99999999-9999-4999-8999-999999999999";

    fn text<'a>(content: &'a str, mentions: &'a [PublicKey], attachments: &'a [Tag]) -> Text<'a> {
        Text { channel: CHANNEL.parse().unwrap(), content, mentions, attachments, now: 5 }
    }

    fn id(byte: u8) -> EventId {
        EventId::from_bytes([byte; 32])
    }

    #[test]
    fn tags_stand_in_their_order() {
        let bob = Keys::generate().public_key();
        let thread = Thread { root: id(1), parent: id(2) };
        let imeta = vec![vec!["imeta".to_owned(), "url u".to_owned()]];
        let draft = message(&text("hi", &[bob, bob], &imeta), Some(&thread), true).unwrap();
        let names: Vec<_> = draft.tags.iter().map(|tag| tag[0].as_str()).collect();
        assert_eq!(names, ["h", "e", "e", "p", "broadcast", "imeta"]);
        assert_eq!(draft.tags[0], ["h", CHANNEL]);
        assert_eq!(draft.tags[3], ["p", &bob.to_hex()]);
        assert_eq!((draft.kind, draft.content.as_str()), (9, "hi"));
    }

    #[test]
    fn a_text_has_65536_bytes_at_most() {
        let (just, over) = ("x".repeat(65_536), "é".repeat(32_769));
        assert!(message(&text(&just, &[], &[]), None, false).is_ok());
        assert!(edit(&CHANNEL.parse().unwrap(), &id(1), &just, 5).is_ok());
        let error = message(&text(&over, &[], &[]), None, false).unwrap_err().to_string();
        assert!(error.contains("65538") && error.contains("65536"), "{error}");
        assert!(edit(&CHANNEL.parse().unwrap(), &id(1), &over, 5).is_err());
    }

    #[test]
    fn a_message_calls_50_at_most() {
        let many: Vec<_> = (0..51).map(|_| Keys::generate().public_key()).collect();
        assert!(message(&text("", &many[..50], &[]), None, false).is_ok());
        assert!(message(&text("", &many, &[]), None, false).is_err());
    }

    #[test]
    fn posts_stand_alone_and_comments_below_something() {
        let post = forum_post(&text("p", &[], &[])).unwrap();
        assert_eq!((post.kind, post.tags.len()), (45_001, 1));
        let comment = forum_comment(&text("c", &[], &[]), &Thread { root: id(1), parent: id(1) }).unwrap();
        assert_eq!(comment.kind, 45_003);
        assert_eq!(comment.tags[1], ["e", &id(1).to_hex(), "", "reply"]);
        let vote = vote(&CHANNEL.parse().unwrap(), &id(1), Vote::Down, 5);
        assert_eq!((vote.kind, vote.content.as_str()), (45_002, "-"));
    }

    #[test]
    fn a_moderators_deletion_says_why() {
        let channel = CHANNEL.parse().unwrap();
        let plain = delete(&channel, &id(1), &Moderation::default(), 5);
        assert_eq!(plain.tags, [["h", CHANNEL], ["e", &id(1).to_hex()]]);
        let why =
            Moderation { action_id: Some("a"), reason_code: Some("spam"), public_reason: Some("off topic") };
        let told = delete(&channel, &id(1), &why, 5);
        assert_eq!(
            told.tags[2..],
            [["action_id", "a"], ["reason_code", "spam"], ["public_reason", "off topic"]]
        );
    }
}
