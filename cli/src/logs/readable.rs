//! Bytes for people: JSON with line breaks, anything else as the text it is.

use serde_json::Value;

/// The most characters of one line of a list.
const MAX_LINE_CHARS: usize = 72;

/// JSON in its long form, other text as it is, what is no text replaced by marks.
pub(super) fn pretty(bytes: &[u8]) -> String {
    let parsed: Result<Value, _> = serde_json::from_slice(bytes);
    match parsed.as_ref().map(serde_json::to_string_pretty) {
        Ok(Ok(text)) => text,
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// The start of a text as one line.
pub(super) fn brief(text: &str) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((cut, _)) = line.char_indices().nth(MAX_LINE_CHARS) {
        line.truncate(cut);
        line.push_str("...");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brief_line_is_one_line_cut_between_characters() {
        assert_eq!(brief(" a\n b "), "a b");
        assert_eq!(brief(&"\u{e9}".repeat(80)), format!("{}...", "\u{e9}".repeat(72)));
    }

    #[test]
    fn bytes_that_are_no_json_are_shown_as_text() {
        assert_eq!(pretty(b"{\"a\":1}"), "{\n  \"a\": 1\n}");
        assert_eq!(pretty(b"<html>\xff"), "<html>\u{fffd}");
    }
}
