//! Reactions: kind 7, and the deletion that takes one back.

use super::{check_http_url, BuildError};
use crate::event::Draft;
use crate::id::EventId;
use crate::kind::{DELETION, REACTION};

/// Longest emoji, in characters.
pub const MAX_EMOJI_CHARS: usize = 64;
/// Longest name of a custom emoji, in bytes.
pub const MAX_SHORTCODE_BYTES: usize = 64;
/// Longest address of a custom emoji's picture, in bytes.
pub const MAX_EMOJI_URL_BYTES: usize = 2048;

/// A reaction with an emoji, or with a custom one that has a picture: then `emoji` is its name.
pub fn add(target: &EventId, emoji: &str, url: Option<&str>, now: u64) -> Result<Draft, BuildError> {
    let on_target = |content: &str| Draft::new(REACTION, content, now).tag(["e", &target.to_hex()]);
    let Some(url) = url else {
        let got = emoji.chars().count();
        return match got > MAX_EMOJI_CHARS {
            true => Err(BuildError::TooLong {
                what: "the emoji",
                got,
                limit: MAX_EMOJI_CHARS,
                unit: "characters",
            }),
            false => Ok(on_target(emoji)),
        };
    };
    let code = shortcode(emoji)?;
    check_http_url("the emoji's address", url, MAX_EMOJI_URL_BYTES)?;
    Ok(on_target(&format!(":{code}:")).tag(["emoji", &code, url]))
}

/// Takes back a reaction of one's own.
pub fn remove(reaction: &EventId, now: u64) -> Draft {
    Draft::new(DELETION, "", now).tag(["e", &reaction.to_hex()])
}

/// The name of a custom emoji: without blanks and colons around it, in lower case.
pub fn shortcode(text: &str) -> Result<String, BuildError> {
    let code = text.trim_matches(|c: char| c == ':' || c.is_whitespace()).to_ascii_lowercase();
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    match (1..=MAX_SHORTCODE_BYTES).contains(&code.len()) && code.bytes().all(is_known) {
        true => Ok(code),
        false => {
            Err(BuildError::invalid("the name of a custom emoji", "1 to 64 of A-Z, a-z, 0-9, _ and -", text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: EventId = EventId::from_bytes([7; 32]);

    #[test]
    fn an_emoji_is_the_content_and_the_target_the_only_tag() {
        let draft = add(&TARGET, "👍", None, 5).unwrap();
        assert_eq!((draft.kind, draft.content.as_str(), draft.created_at), (7, "👍", 5));
        assert_eq!(draft.tags, [["e", &TARGET.to_hex()]]);
    }

    #[test]
    fn an_emoji_has_64_characters_at_most_whatever_their_bytes() {
        assert!(add(&TARGET, &"ü".repeat(64), None, 5).is_ok());
        assert!(add(&TARGET, &"ü".repeat(65), None, 5).is_err());
    }

    #[test]
    fn a_custom_emoji_has_a_name_and_an_address() {
        let draft = add(&TARGET, " :Party_Parrot: ", Some("https://e.example/p.gif"), 5).unwrap();
        assert_eq!(draft.content, ":party_parrot:");
        assert_eq!(draft.tags[1], ["emoji", "party_parrot", "https://e.example/p.gif"]);
        for name in ["", "::", "a b", "ü", &"a".repeat(65)] {
            assert!(add(&TARGET, name, Some("https://e.example"), 5).is_err(), "{name}");
        }
        assert!(add(&TARGET, "a", Some("ftp://e.example"), 5).is_err());
        assert!(add(&TARGET, "a", Some(&format!("http://e/{}", "x".repeat(2048))), 5).is_err());
    }
}
