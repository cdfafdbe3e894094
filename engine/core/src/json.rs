//! JSON as it comes from outside: a byte order mark, bytes that are not UTF-8 and lone surrogate escapes
//! are common there, and none of them may cost a turn.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Parses `bytes` as one JSON document of shape `T`.
///
/// A leading byte order mark is skipped, bytes that are not UTF-8 and escapes of lone surrogates
/// (`\ud99c`) become U+FFFD. Errors are the parser's own: the position refers to the mended text.
pub fn from_outside<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = String::from_utf8_lossy(bytes);
    serde_json::from_str(&mend_surrogates(&text))
}

/// The compact form used on every wire: no spaces, object keys in ascending byte order.
pub fn compact(value: &Value) -> String {
    value.to_string()
}

/// Appends `text` to `out` as a JSON string literal.
pub fn push_string(out: &mut Vec<u8>, text: &str) {
    // Writing a string into a vector has no way to fail: neither the sink nor the type can refuse.
    if serde_json::to_writer(&mut *out, text).is_err() {
        unreachable!("a string has a JSON form");
    }
}

/// What a value is, with its article, for an error text.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Replaces each `\uXXXX` escape of a surrogate that has no partner by `\ufffd`.
fn mend_surrogates(text: &str) -> Cow<'_, str> {
    if !may_hold_surrogate(text.as_bytes()) {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let (mut at, mut kept) = (0, 0);
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        let Some(unit) = escape_at(bytes, at) else {
            at += 2;
            continue;
        };
        if (0xd800..0xdc00).contains(&unit)
            && escape_at(bytes, at + 6).is_some_and(|low| (0xdc00..0xe000).contains(&low))
        {
            at += 12;
            continue;
        }
        if (0xd800..0xe000).contains(&unit) {
            out.push_str(&text[kept..at]);
            out.push_str("\\ufffd");
            kept = at + 6;
        }
        at += 6;
    }
    out.push_str(&text[kept..]);
    Cow::Owned(out)
}

fn may_hold_surrogate(bytes: &[u8]) -> bool {
    bytes.windows(3).any(|w| w[0] == b'\\' && w[1] == b'u' && matches!(w[2], b'd' | b'D'))
}

/// The code unit of a `\uXXXX` escape that starts at `at`, if one does.
fn escape_at(bytes: &[u8], at: usize) -> Option<u32> {
    let escape = bytes.get(at..at + 6)?;
    if escape[0] != b'\\' || escape[1] != b'u' || !escape[2..].iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(&escape[2..]).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Value {
        from_outside(bytes).expect("parses")
    }

    #[test]
    fn c36_a_lone_surrogate_becomes_the_replacement_character() {
        assert_eq!(read(br#""x\ud99c y""#), "x\u{fffd} y");
        assert_eq!(read(br#""x\uDC1D""#), "x\u{fffd}");
        assert_eq!(read(br#""\ud83d\ud83d\udc1d""#), "\u{fffd}\u{1f41d}");
        assert_eq!(read(br#""\ud83d\\udc1d""#), "\u{fffd}\\udc1d");
    }

    #[test]
    fn a_pair_and_an_escaped_backslash_stay_as_they_are() {
        assert_eq!(read(br#""\ud83d\udc1d""#), "\u{1f41d}");
        assert_eq!(read(br#""\\ud83d""#), "\\ud83d");
    }

    #[test]
    fn c38_bytes_that_are_not_utf8_are_read_with_replacement() {
        assert_eq!(read(b"\"f\xffo\""), "f\u{fffd}o");
    }

    #[test]
    fn c44_a_byte_order_mark_is_skipped() {
        assert_eq!(read(b"\xef\xbb\xbf[1]"), serde_json::json!([1]));
    }
}
