//! Call arguments as models give them: a string of JSON, an object, nothing at all, or broken.

use serde_json::{Map, Value};

use crate::json::kind;

/// How much of broken arguments is quoted back to the model, in characters.
const QUOTED_CHARS: usize = 200;

/// Reads the arguments of one call.
///
/// Nothing, null and the empty string mean no arguments. An object counts the same as its string form.
/// The error text tells the model what was wrong, so that it can try again.
pub(super) fn read(value: Option<&Value>) -> Result<Map<String, Value>, String> {
    match value {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(map)) => Ok(map.clone()),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(Map::new()),
        Some(Value::String(text)) => match crate::json::from_outside::<Value>(text.as_bytes()) {
            Ok(Value::Object(map)) => Ok(map),
            Ok(Value::Null) => Ok(Map::new()),
            Ok(other) => Err(not_an_object(&other)),
            Err(e) => Err(format!("tool call arguments are not valid JSON ({e}): {}", quoted(text))),
        },
        Some(other) => Err(not_an_object(other)),
    }
}

fn not_an_object(value: &Value) -> String {
    format!("tool call arguments must be a JSON object, not {}: {}", kind(value), quoted(&value.to_string()))
}

fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS) {
        Some((at, _)) => format!("{} ... ({} bytes)", &text[..at], text.len()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn c07_an_object_equals_its_string_form() {
        let object = read(Some(&json!({"path": "a.txt"})));
        assert_eq!(object, read(Some(&json!("{\"path\":\"a.txt\"}"))));
        assert_eq!(object.expect("object")["path"], "a.txt");
    }

    #[test]
    fn c08_nothing_null_and_the_empty_string_mean_no_arguments() {
        for none in [None, Some(&json!(null)), Some(&json!("")), Some(&json!("  ")), Some(&json!("null"))] {
            assert_eq!(read(none), Ok(Map::new()), "{none:?}");
        }
    }

    #[test]
    fn c09_broken_json_is_quoted_back() {
        let error = read(Some(&json!("{\"command\": \"ls"))).expect_err("broken");
        assert!(error.contains("not valid JSON") && error.contains("{\"command\": \"ls"), "{error}");
        let long = read(Some(&json!(format!("{{{}", "\u{e9}".repeat(5000))))).expect_err("broken");
        assert!(long.len() < 700, "{}", long.len());
    }

    #[test]
    fn c10_json_that_is_no_object_is_named_by_its_type() {
        for (value, kind) in
            [("[1]", "an array"), ("\"ls\"", "a string"), ("3", "a number"), ("true", "a boolean")]
        {
            let error = read(Some(&json!(value))).expect_err("no object");
            assert!(error.contains(kind), "{error}");
        }
        assert!(read(Some(&json!([1]))).expect_err("array").contains("an array"));
    }
}
