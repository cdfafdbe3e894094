//! Shortening a payload: its longest texts lose their middles.

use serde_json::Value;

/// How much of a text stays at either end, in bytes at most.
const KEPT_BYTES: usize = 3_000;

/// Takes the middles out of texts, the longest first and each once, until the payload's JSON has lost
/// `excess` bytes or no text gets shorter.
pub(super) fn shorten(payload: &mut Value, excess: usize) {
    let mut texts = texts(payload);
    texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
    let mut left = excess;
    for text in texts {
        if left == 0 {
            return;
        }
        let Some(shorter) = without_middle(text) else { return };
        left = left.saturating_sub(json_length(text) - json_length(&shorter));
        *text = shorter;
    }
}

fn texts(payload: &mut Value) -> Vec<&mut String> {
    let (mut found, mut open) = (Vec::new(), vec![payload]);
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => found.push(text),
            Value::Array(items) => open.extend(items.iter_mut().rev()),
            Value::Object(fields) => open.extend(fields.values_mut().rev()),
            _ => {}
        }
    }
    found
}

/// The text with a note in place of its middle, if that is shorter.
fn without_middle(text: &str) -> Option<String> {
    let head = text.floor_char_boundary(KEPT_BYTES);
    let tail = text.ceil_char_boundary(text.len().checked_sub(KEPT_BYTES)?);
    let elided = tail.checked_sub(head)?;
    let short = format!("{}\u{2026}[elided {elided} bytes]\u{2026}{}", &text[..head], &text[tail..]);
    (short.len() < text.len()).then_some(short)
}

fn json_length(text: &str) -> usize {
    Value::from(text).to_string().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        let text = "é".repeat(5_000);
        let odd = format!("x{text}x");
        let short = without_middle(&odd).unwrap();
        let elided = odd.len() - 2 * 2_999;
        assert_eq!(short.len(), 2 * 2_999 + format!("\u{2026}[elided {elided} bytes]\u{2026}").len());
    }

    #[test]
    fn a_text_that_would_not_get_shorter_stays() {
        assert_eq!(without_middle("short"), None);
        assert_eq!(without_middle(&"x".repeat(6_023)), None);
        assert_eq!(without_middle(&"x".repeat(6_024)).map(|text| text.len()), Some(6_023));
    }
}
