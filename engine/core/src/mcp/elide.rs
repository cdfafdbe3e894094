//! Cutting text to a number of bytes, always between characters.

/// What a middle elision sets aside for its own marker line, in bytes.
pub const ELISION_MARKER_BYTES: usize = 128;

/// Ends a text that was cut at its end.
const TRUNCATED: &str = "\n[truncated]";

/// `text` in at most `max_bytes`: unchanged, or its head and tail around a line that says how much is gone.
///
/// Budgets up to [`ELISION_MARKER_BYTES`] have no room for that line: there the head alone is left.
pub fn elide_middle(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let keep = max_bytes.saturating_sub(ELISION_MARKER_BYTES);
    if keep == 0 {
        return head(text, max_bytes).to_owned();
    }
    let head = head(text, keep.div_ceil(2));
    let tail = &text[text.ceil_char_boundary(text.len() - keep / 2)..];
    let elided = text.len() - head.len() - tail.len();
    let whole = text.len();
    format!("{head}\n[... {elided} of {whole} bytes elided from tool result ...]\n{tail}")
}

/// `text` in at most `max_bytes`: unchanged, or its head and a marker that says it was cut.
pub fn clamp(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let keep = max_bytes.saturating_sub(TRUNCATED.len());
    format!("{}{TRUNCATED}", head(text, keep))
}

/// The longest start of `text` that has at most `max_bytes` and ends between characters.
pub(super) fn head(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_at_exactly_the_limit_is_untouched() {
        let text = "x".repeat(51_200);
        assert_eq!(elide_middle(&text, 51_200), text);
    }

    #[test]
    fn the_middle_goes_and_both_ends_stay() {
        let text = format!("first\n{}\nlast", "x".repeat(10_000));
        let cut = elide_middle(&text, 4096);
        assert!(cut.len() <= 4096);
        assert!(cut.starts_with("first\n") && cut.ends_with("\nlast"));
        let elided = text.len() - (4096 - ELISION_MARKER_BYTES);
        let marker = format!("\n[... {elided} of {} bytes elided from tool result ...]\n", text.len());
        assert!(cut.contains(&marker), "{cut}");
    }

    #[test]
    fn the_default_limit_keeps_equal_ends() {
        let cut = elide_middle(&"x".repeat(200_000), 51_200);
        let (head, tail) = cut.split_once("\n[...").expect("a marker");
        assert_eq!(head.len(), 25_536);
        assert_eq!(tail.rsplit('\n').next().map(str::len), Some(25_536));
    }

    #[test]
    fn c35_cuts_fall_between_characters() {
        let text = "\u{e9}".repeat(60_000);
        for max in [0, 1, 127, 128, 129, 130, 200, 1024, 51_200] {
            let cut = elide_middle(&text, max);
            assert!(cut.len() <= max, "{max}");
            assert_eq!(cut.contains("elided"), max > ELISION_MARKER_BYTES);
        }
        assert_eq!(head("aaaaaaa\u{20ac}", 8), "aaaaaaa");
    }

    #[test]
    fn a_clamped_text_fits_with_its_marker() {
        let cut = clamp(&"\u{20ac}".repeat(2000), 1024);
        assert!(cut.len() <= 1024 && cut.len() > 1024 - 3);
        assert!(cut.ends_with("\u{20ac}\n[truncated]"));
        assert_eq!(clamp("short", 1024), "short");
    }
}
