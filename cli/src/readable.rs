//! Bytes and texts for people.

use serde_json::Value;

/// The most characters of one line of a list.
const MAX_LINE_CHARS: usize = 72;

/// JSON in its long form, other text as it is, what is no text replaced by marks.
pub(crate) fn pretty(bytes: &[u8]) -> String {
    let parsed: Result<Value, _> = serde_json::from_slice(bytes);
    match parsed.as_ref().map(serde_json::to_string_pretty) {
        Ok(Ok(text)) => text,
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// The start of a text as one line that does nothing to a terminal.
pub(crate) fn brief(text: &str) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((cut, _)) = line.char_indices().nth(MAX_LINE_CHARS) {
        line.truncate(cut);
        line.push_str("...");
    }
    harmless(&line)
}

/// A text that does nothing to a terminal: its lines after the first are indented, other control characters
/// replaced by marks.
pub(crate) fn harmless(text: &str) -> String {
    let shown = |sign: char| if sign != '\n' && sign.is_control() { '\u{fffd}' } else { sign };
    text.chars().map(shown).collect::<String>().replace('\n', "\n    ")
}

/// A text as one word of a shell.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brief_line_is_one_line_cut_between_characters() {
        assert_eq!(brief(" a\n b\u{1b} "), "a b\u{fffd}");
        assert_eq!(brief(&"\u{e9}".repeat(80)), format!("{}...", "\u{e9}".repeat(72)));
    }

    #[test]
    fn a_text_cannot_steer_the_terminal() {
        assert_eq!(harmless("one\u{1b}[2J\ntwo\r"), "one\u{fffd}[2J\n    two\u{fffd}");
    }

    #[test]
    fn a_quoted_text_is_one_word() {
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
    }

    #[test]
    fn bytes_that_are_no_json_are_shown_as_text() {
        assert_eq!(pretty(b"{\"a\":1}"), "{\n  \"a\": 1\n}");
        assert_eq!(pretty(b"<html>\xff"), "<html>\u{fffd}");
    }
}
