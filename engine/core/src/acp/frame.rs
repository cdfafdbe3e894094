//! One inbound line: what kind of message it is.

use serde_json::value::RawValue;
use serde_json::Value;

use super::code;

/// A JSON-RPC id exactly as the peer wrote it.
///
/// Kept as text: an id such as `1.0` or `9007199254740993` must come back byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Id(String);

impl Id {
    /// An id of our own making.
    pub fn of_text(text: &str) -> Id {
        Id(Value::from(text).to_string())
    }

    /// The JSON null, for answers to lines without a usable id.
    pub fn null() -> Id {
        Id("null".to_owned())
    }

    /// The id's JSON text.
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

/// What a line is.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// Asks for an answer.
    Request {
        /// Echoed in the answer.
        id: Id,
        /// The method.
        method: String,
        /// The parameters, null if absent.
        params: Value,
    },
    /// Wants no answer.
    Notification {
        /// The method.
        method: String,
        /// The parameters, null if absent.
        params: Value,
    },
    /// An answer to a request of ours.
    Answer {
        /// The id under which it was asked.
        id: Id,
        /// The result, or the text of the error.
        outcome: Result<Value, String>,
    },
    /// Something with an id that is neither request nor answer.
    Other,
    /// Only white space.
    Blank,
    /// Must be answered with an error.
    Bad {
        /// The id to answer under.
        id: Id,
        /// The error code.
        code: i64,
        /// What is wrong.
        message: String,
    },
}

impl Frame {
    /// The session that a request or notification names.
    pub fn session(&self) -> Option<String> {
        match self {
            Frame::Request { params, .. } | Frame::Notification { params, .. } => {
                params.get("sessionId").and_then(Value::as_str).map(str::to_owned)
            }
            Frame::Answer { .. } | Frame::Other | Frame::Blank | Frame::Bad { .. } => None,
        }
    }
}

/// Classifies one line (without its line feed). Total: any bytes give a frame.
pub fn classify(line: &[u8]) -> Frame {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    if line.iter().all(u8::is_ascii_whitespace) {
        return Frame::Blank;
    }
    let value: Value = match crate::json::from_outside(line) {
        Ok(value) => value,
        Err(e) => return bad(Id::null(), code::PARSE, format!("jsonrpc: parse: {e}")),
    };
    let id = id_of(line, &value);
    if !value.is_object() || value.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        let id = id.filter(echoes).unwrap_or_else(Id::null);
        return bad(id, code::INVALID_REQUEST, "jsonrpc: missing or invalid version".to_owned());
    }
    let method = value.get("method").and_then(Value::as_str).map(str::to_owned);
    let params = value.get("params").cloned().unwrap_or(Value::Null);
    match (method, id) {
        (Some(_), Some(id)) if !echoes(&id) => {
            let message =
                format!("jsonrpc: an id must be a string, an integer or null, not {}", id.as_json());
            bad(Id::null(), code::INVALID_REQUEST, message)
        }
        (Some(method), Some(id)) => Frame::Request { id, method, params },
        (Some(method), None) => Frame::Notification { method, params },
        (None, Some(id)) => answer(id, &value),
        (None, None) => bad(Id::null(), code::INVALID_REQUEST, "jsonrpc: missing method and id".to_owned()),
    }
}

/// A message with an id and without a method: an answer, if it has what an answer has.
fn answer(id: Id, value: &Value) -> Frame {
    if value.get("method").is_some() {
        return Frame::Other;
    }
    match (value.get("result"), value.get("error")) {
        (Some(result), None) => Frame::Answer { id, outcome: Ok(result.clone()) },
        (_, Some(error)) => {
            let text = error.get("message").and_then(Value::as_str).unwrap_or("an error without a message");
            Frame::Answer { id, outcome: Err(text.to_owned()) }
        }
        (None, None) => Frame::Other,
    }
}

fn bad(id: Id, code: i64, message: String) -> Frame {
    Frame::Bad { id, code, message }
}

/// Whether an id may be one: a string, an integer or null.
fn echoes(id: &Id) -> bool {
    match id.as_json().as_bytes() {
        [b'"', ..] | b"null" => true,
        text => text.iter().all(|b| b.is_ascii_digit() || *b == b'-'),
    }
}

/// The id's own bytes; where they cannot be had (the line needed mending), its parsed form.
fn id_of(line: &[u8], value: &Value) -> Option<Id> {
    #[derive(serde::Deserialize)]
    struct Ids<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
    }
    let parsed = value.as_object()?.get("id")?;
    let own = serde_json::from_slice::<Ids>(line).ok().and_then(|ids| ids.id.map(|id| id.get().to_owned()));
    Some(Id(own.unwrap_or_else(|| parsed.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(line: &[u8]) -> (String, i64) {
        match classify(line) {
            Frame::Bad { id, code, .. } => (id.0, code),
            other => panic!("{other:?}"),
        }
    }

    fn id(line: &str) -> String {
        match classify(line.as_bytes()) {
            Frame::Request { id, .. } => id.0,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn c43_a_line_that_is_no_json_is_a_parse_error_under_null() {
        assert_eq!(error(b"not json"), ("null".into(), code::PARSE));
    }

    #[test]
    fn a_wrong_or_missing_version_is_refused_under_the_id_that_is_there() {
        assert_eq!(error(br#"{"jsonrpc":"1.0","id":5,"method":"x"}"#), ("5".into(), code::INVALID_REQUEST));
        assert_eq!(error(br#"{"jsonrpc":"2.0"}"#), ("null".into(), code::INVALID_REQUEST));
        assert_eq!(error(b"[]"), ("null".into(), code::INVALID_REQUEST));
    }

    #[test]
    fn c46_ids_keep_their_bytes() {
        for own in ["\"1\"", "0", "42", "null", "-1", "9007199254740993", "\"a\\u00e9\""] {
            assert_eq!(id(&format!(r#"{{"jsonrpc":"2.0","id":{own},"method":"x"}}"#)), own);
        }
    }

    #[test]
    fn c46_ids_of_other_types_are_refused_under_null() {
        for own in ["true", "1.5", "{}", "[1]"] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{own},"method":"x"}}"#);
            assert_eq!(error(line.as_bytes()), ("null".into(), code::INVALID_REQUEST), "{own}");
        }
    }

    #[test]
    fn answers_are_told_from_what_is_neither_and_from_blank_lines() {
        let one: Id = serde_json::from_str("\"1\"").expect("an id");
        let answer = |outcome| Frame::Answer { id: one.clone(), outcome };
        assert_eq!(
            classify(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
            answer(Ok(Value::Object(serde_json::Map::new())))
        );
        assert_eq!(
            classify(br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#),
            answer(Err("no".to_owned()))
        );
        assert_eq!(classify(br#"{"jsonrpc":"2.0","id":1}"#), Frame::Other);
        assert_eq!(classify(br#"{"jsonrpc":"2.0","id":1,"method":7}"#), Frame::Other);
        assert_eq!(classify(b"  \t "), Frame::Blank);
        assert_eq!(classify(b""), Frame::Blank);
    }

    #[test]
    fn c44_a_byte_order_mark_is_accepted() {
        assert_eq!(id("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"x\"}"), "7");
    }
}
