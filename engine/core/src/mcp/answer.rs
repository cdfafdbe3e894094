//! The lines that answer a request, from a server or to one. Each ends in a line feed; keys are in ascending
//! order.

use serde_json::{json, Value};

use crate::json::compact;

/// JSON-RPC: the line is not a message.
pub const PARSE_ERROR: i64 = -32700;
/// JSON-RPC: the method is not served.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC: the method is served, but not with this.
pub const INVALID_PARAMS: i64 = -32602;
/// JSON-RPC: what was asked went wrong here.
pub const INTERNAL_ERROR: i64 = -32603;

/// The answer to request `id`.
pub fn result(id: &Value, result: Value) -> Vec<u8> {
    line(&json!({ "id": id, "jsonrpc": "2.0", "result": result }))
}

/// The refusal of request `id`; of a line that cannot be read there is no id.
pub fn error(id: Option<&Value>, code: i64, message: &str) -> Vec<u8> {
    let error = json!({ "code": code, "message": message });
    line(&match id {
        Some(id) => json!({ "error": error, "id": id, "jsonrpc": "2.0" }),
        None => json!({ "error": error, "jsonrpc": "2.0" }),
    })
}

/// The result of `initialize` from a server that offers tools.
pub fn initialized(version: &str, name: &str, instructions: &str) -> Value {
    json!({
        "capabilities": { "tools": {} },
        "instructions": instructions,
        "protocolVersion": version,
        "serverInfo": { "name": name, "version": env!("CARGO_PKG_VERSION") },
    })
}

/// The result of a call that says something in words.
pub fn text_result(text: &str, is_error: bool) -> Value {
    json!({ "content": [{ "text": text, "type": "text" }], "isError": is_error })
}

pub(super) fn line(message: &Value) -> Vec<u8> {
    let mut line = compact(message).into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_one_line_under_the_id_it_was_asked_with() {
        assert_eq!(result(&json!("a"), json!({})), b"{\"id\":\"a\",\"jsonrpc\":\"2.0\",\"result\":{}}\n");
        let refused = error(Some(&json!(0)), INVALID_PARAMS, "two\nlines");
        assert_eq!(
            String::from_utf8(refused).expect("UTF-8"),
            "{\"error\":{\"code\":-32602,\"message\":\"two\\nlines\"},\"id\":0,\"jsonrpc\":\"2.0\"}\n"
        );
        assert!(!String::from_utf8(error(None, PARSE_ERROR, "no")).expect("UTF-8").contains("\"id\""));
    }
}
