//! One line of MCP: what kind of message it is.

use serde_json::{Map, Value};

use crate::json::from_outside;

/// The code of an error answer that has no usable code of its own (JSON-RPC: internal error).
const CODE_MISSING: i64 = -32603;

/// The version of JSON-RPC that every message names.
const JSON_RPC: &str = "2.0";

/// What a line is, seen from its receiver.
#[derive(Clone, Debug, PartialEq)]
pub enum Inbound {
    /// An answer to one of our requests.
    Response {
        /// The id as the server gave it back.
        id: Value,
        /// What it says.
        outcome: Outcome,
    },
    /// A request to us, to be answered with [`super::encode::answer`].
    Request {
        /// Its id, to be given back unchanged.
        id: Value,
        /// What is asked.
        method: String,
        /// With what.
        params: Value,
    },
    /// Something we are told and pass over: progress, log lines, changes of the tool list.
    Notification {
        /// What it is about.
        method: String,
        /// What it says.
        params: Value,
    },
    /// Nothing but white space.
    Blank,
    /// Not JSON, or JSON that is no message: answered with [`super::encode::parse_error`].
    Unparsable,
}

/// The two forms of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The result; null when the answer has neither result nor error.
    Result(Value),
    /// The server refuses.
    Error(RpcError),
}

/// An error answer.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    /// The JSON-RPC code.
    pub code: i64,
    /// The server's words.
    pub message: String,
    /// Whatever the server added.
    pub data: Option<Value>,
}

impl Inbound {
    /// The number that this line answers, if it is an answer with a number of ours.
    pub fn answers(&self) -> Option<u64> {
        match self {
            Inbound::Response { id, .. } => id.as_u64(),
            _ => None,
        }
    }
}

/// Reads one line, without its line feed.
pub fn decode(line: &[u8]) -> Inbound {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Inbound::Blank;
    }
    match from_outside::<Value>(line) {
        Ok(Value::Object(message)) => classify(message),
        Ok(_) | Err(_) => Inbound::Unparsable,
    }
}

/// Reads one line as a tool server does. A server acts on what it reads, so nothing but a message is mended into
/// one: the bytes are UTF-8, the version of JSON-RPC is named, and an id is a text or a whole number.
pub fn decode_request(line: &[u8]) -> Inbound {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Inbound::Blank;
    }
    if std::str::from_utf8(line).is_err() {
        return Inbound::Unparsable;
    }
    match from_outside::<Value>(line) {
        Ok(Value::Object(message)) if message.get("jsonrpc").is_some_and(|version| version == JSON_RPC) => {
            match classify(message) {
                Inbound::Request { id, .. } if !is_id(&id) => Inbound::Unparsable,
                inbound => inbound,
            }
        }
        Ok(_) | Err(_) => Inbound::Unparsable,
    }
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}

fn classify(mut message: Map<String, Value>) -> Inbound {
    let id = message.remove("id").filter(|id| !id.is_null());
    match (message.remove("method"), id) {
        (Some(Value::String(method)), Some(id)) => {
            Inbound::Request { id, method, params: message.remove("params").unwrap_or_default() }
        }
        (Some(Value::String(method)), None) => {
            Inbound::Notification { method, params: message.remove("params").unwrap_or_default() }
        }
        (None, Some(id)) => Inbound::Response { id, outcome: outcome(message) },
        _ => Inbound::Unparsable,
    }
}

fn outcome(mut message: Map<String, Value>) -> Outcome {
    match message.remove("error") {
        Some(Value::Object(mut error)) => Outcome::Error(RpcError {
            code: error.get("code").and_then(Value::as_i64).unwrap_or(CODE_MISSING),
            message: error.get("message").and_then(Value::as_str).unwrap_or_default().to_owned(),
            data: error.remove("data").filter(|data| !data.is_null()),
        }),
        _ => Outcome::Result(message.remove("result").unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_are_told_from_requests_and_notifications() {
        let answer = decode(br#"{"jsonrpc":"2.0","id":3,"result":{"tools":[]}}"#);
        assert_eq!(answer.answers(), Some(3));
        assert_eq!(
            answer,
            Inbound::Response { id: json!(3), outcome: Outcome::Result(json!({"tools": []})) }
        );
        assert_eq!(
            decode(br#"{"id":"p","method":"ping"}"#),
            Inbound::Request { id: json!("p"), method: "ping".to_owned(), params: Value::Null }
        );
        assert_eq!(
            decode(br#"{"method":"notifications/progress","params":{}}"#),
            Inbound::Notification { method: "notifications/progress".to_owned(), params: json!({}) }
        );
    }

    #[test]
    fn an_error_answer_keeps_code_message_and_data() {
        let line = br#"{"id":1,"error":{"code":-32602,"message":"no","data":{"why":1}}}"#;
        let Inbound::Response { outcome, .. } = decode(line) else {
            panic!("not an answer");
        };
        assert_eq!(
            outcome,
            Outcome::Error(RpcError {
                code: -32602,
                message: "no".to_owned(),
                data: Some(json!({"why": 1})),
            })
        );
    }

    #[test]
    fn a_strange_answer_still_finds_its_call() {
        for line in [br#"{"id":1,"error":null}"#.as_slice(), br#"{"id":1,"error":"text"}"#, br#"{"id":1}"#] {
            assert_eq!(
                decode(line),
                Inbound::Response { id: json!(1), outcome: Outcome::Result(Value::Null) }
            );
        }
        let Inbound::Response { outcome, .. } = decode(br#"{"id":1,"error":{}}"#) else {
            panic!("not an answer");
        };
        assert!(matches!(outcome, Outcome::Error(RpcError { code: -32603, .. })));
    }

    #[test]
    fn an_id_of_another_type_is_none_of_ours() {
        assert_eq!(decode(br#"{"id":"1","result":{}}"#).answers(), None);
        assert_eq!(decode(br#"{"id":1.5,"result":{}}"#).answers(), None);
    }

    #[test]
    fn c43_noise_is_told_from_blank_lines() {
        assert_eq!(decode(b""), Inbound::Blank);
        assert_eq!(decode(b" \t\r"), Inbound::Blank);
        for noise in [b"not json".as_slice(), b"[1]", b"42", br#"{"id":null,"result":1}"#, b"{}"] {
            assert_eq!(decode(noise), Inbound::Unparsable);
        }
    }

    #[test]
    fn a_server_takes_messages_of_the_named_version_only() {
        let ping = decode_request(br#"{"jsonrpc":"2.0","id":4294967296123,"method":"ping"}"#);
        let id = json!(4_294_967_296_123_u64);
        assert_eq!(ping, Inbound::Request { id, method: "ping".to_owned(), params: Value::Null });
        let cancelled = br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}"#;
        assert_eq!(
            decode_request(cancelled),
            Inbound::Notification {
                method: "notifications/cancelled".to_owned(),
                params: json!({"requestId": "a"}),
            }
        );
        assert_eq!(decode_request(b" \r"), Inbound::Blank);
        for wrong in [
            b"{not json".as_slice(),
            b"[1]",
            br#"{"id":1,"method":"ping"}"#,
            br#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
            br#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}",
        ] {
            assert_eq!(decode_request(wrong), Inbound::Unparsable, "{}", String::from_utf8_lossy(wrong));
        }
    }

    #[test]
    fn c44_a_byte_order_mark_is_skipped() {
        let line = b"\xef\xbb\xbf{\"id\":0,\"result\":{}}";
        assert_eq!(decode(line).answers(), Some(0));
    }
}
