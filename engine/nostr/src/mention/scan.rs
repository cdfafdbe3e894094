//! What a text without code says: names after `@`, and `nostr:` URIs.

use crate::id::PublicKey;

const URI_START: &str = "nostr:npub1";
const SCHEME: &str = "nostr:";
/// The characters of a bech32 public key behind `npub1`.
const NPUB_REST_CHARS: usize = 58;
/// What may follow a known name, beside a blank and the end of the text.
const AFTER_NAME: &[u8] = b",;.!?:)]}";

/// The names that a text mentions, in lower case, each once, in order.
///
/// A mention is `@` at the start or behind an ASCII blank, then a known name (the longest that fits, ASCII
/// case-insensitive) or else a word of ASCII letters, digits, `.`, `-` and `_`.
pub fn names(text: &str, known: &[&str]) -> Vec<String> {
    let mut longest_first: Vec<_> = known.iter().copied().filter(|name| !name.is_empty()).collect();
    longest_first.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let mut found = Vec::new();
    for (at, _) in text.match_indices('@') {
        if !text.as_bytes()[..at].last().is_none_or(u8::is_ascii_whitespace) {
            continue;
        }
        let rest = &text[at + 1..];
        let known = longest_first.iter().find(|name| begins_with(rest, name)).copied();
        let name = known.unwrap_or_else(|| word(rest)).to_ascii_lowercase();
        if !name.is_empty() && !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

fn begins_with(text: &str, name: &str) -> bool {
    let (Some(head), Some(rest)) = (text.get(..name.len()), text.get(name.len()..)) else { return false };
    head.eq_ignore_ascii_case(name)
        && rest
            .chars()
            .next()
            .is_none_or(|next| next.is_whitespace() || AFTER_NAME.iter().any(|end| next == char::from(*end)))
}

fn word(text: &str) -> &str {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    let end = text.bytes().position(|byte| !is_part(byte)).unwrap_or(text.len());
    &text[..end]
}

/// The keys that a text names as `nostr:npub1...`, each once, in order. The case of what follows `npub1` does
/// not matter; what is no key is passed over.
pub fn uris(text: &str) -> Vec<PublicKey> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices(URI_START) {
        let start = at + SCHEME.len();
        let Some(npub) = text.get(start..at + URI_START.len() + NPUB_REST_CHARS) else { continue };
        match PublicKey::from_npub(&npub.to_ascii_lowercase()) {
            Some(key) if !found.contains(&key) => found.push(key),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mention_needs_a_start_or_a_blank_before_it() {
        assert_eq!(names("@Alice and @alice", &[]), ["alice"]);
        assert_eq!(names("line\n@bob\t@eve", &[]), ["bob", "eve"]);
        for text in ["user@example.com", "@ ", "@", "(@ann)", "**@ann**", "\"@ann\"", "é@ann", "\u{a0}@ann"]
        {
            assert_eq!(names(text, &[]), [""; 0], "{text:?}");
        }
    }

    #[test]
    fn the_longest_known_name_wins_and_a_first_name_is_only_itself() {
        let known = ["Will", "Will Pfleger"];
        assert_eq!(names("@Will Pfleger! hi", &known), ["will pfleger"]);
        assert_eq!(names("@wILL how", &known), ["will"]);
        assert_eq!(names("@Will", &["Will Pfleger"]), ["will"]);
        assert_eq!(names("@Will Pflegers", &known), ["will"]);
    }

    #[test]
    fn a_known_name_ends_at_a_blank_a_mark_or_the_end() {
        for after in ["", " ", "\n", ",", ";", ".", "!", "?", ":", ")", "]", "}"] {
            assert_eq!(names(&format!("@Bob Ray{after}"), &["bob ray"]), ["bob ray"], "{after:?}");
        }
        for after in ["x", "-", "_", "'", "é"] {
            assert_eq!(names(&format!("@Bob Ray{after}"), &["bob ray"]), ["bob"], "{after:?}");
        }
    }

    #[test]
    fn an_unknown_word_keeps_its_dots() {
        assert_eq!(names("@bob. @a-b_c, x", &[]), ["bob.", "a-b_c"]);
    }

    #[test]
    fn multibyte_text_neither_matches_nor_panics() {
        assert_eq!(names("@ключ @日本 é @é", &["ab", "日"]), [""; 0]);
        assert_eq!(names("@日本, @Émile!", &["日本", "Émile"]), ["日本", "Émile"]);
        assert_eq!(names("@日", &["ab", "日本"]), [""; 0]);
    }

    fn npub(byte: u8) -> (PublicKey, String) {
        let secret = format!("{:064x}", u32::from(byte) + 1);
        let key = crate::Keys::parse(&secret).unwrap().public_key();
        (key, key.to_npub())
    }

    #[test]
    fn a_uri_is_read_in_either_case_once_and_without_its_scheme_not_at_all() {
        let ((one, first), (two, second)) = (npub(1), npub(2));
        let shouted = format!("nostr:npub1{}", first[5..].to_uppercase());
        let text = format!("nostr:{second}, {shouted} nostr:{second}é bare {first}");
        assert_eq!(uris(&text), [two, one]);
        assert_eq!(uris(&format!("bare {first}")), []);
    }

    #[test]
    fn a_corrupt_or_cut_uri_is_passed_over() {
        let (one, good) = npub(1);
        let corrupt = format!("{}{}", &good[..62], if good.ends_with('q') { "p" } else { "q" });
        for text in [&good[..62], &corrupt, "npub1", &format!("{}é", &good[..62]), &"é".repeat(60)] {
            assert_eq!(uris(&format!("nostr:{text}")), [], "{text}");
        }
        assert_eq!(uris(&format!("nostr:{corrupt} nostr:{good}")), [one]);
    }
}
