//! The lines we write to an MCP server. Each ends in a line feed; keys are in ascending order.

use serde_json::{json, Value};
use thiserror::Error;

use crate::json::kind;

use super::answer::{error, line, result, METHOD_NOT_FOUND, PARSE_ERROR};

/// The protocol version we offer. Servers may answer with another: we use nothing that differs.
pub const PROTOCOL_VERSION: &str = "2025-11-25";

/// The id of the first request on a connection, always `initialize`; later ids count up from it.
pub const INITIALIZE_ID: u64 = 0;

/// What we tell a server about a call that the client took back.
const CANCEL_REASON: &str = "session cancelled";

/// The arguments of a call are neither an object nor null.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("arguments must be a JSON object, not {found}; call the tool again with an object")]
pub struct ArgumentsError {
    /// What they are instead.
    pub found: &'static str,
}

/// The first request of a connection.
pub fn initialize() -> Vec<u8> {
    line(&json!({
        "id": INITIALIZE_ID,
        "jsonrpc": "2.0",
        "method": "initialize",
        "params": {
            "capabilities": {},
            "clientInfo": { "name": "waxlog", "version": env!("CARGO_PKG_VERSION") },
            "protocolVersion": PROTOCOL_VERSION,
        },
    }))
}

/// Says that the answer to `initialize` has come.
pub fn initialized() -> Vec<u8> {
    line(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
}

/// Asks for the first page of tools, or for the one that `cursor` names.
pub fn tools_list(id: u64, cursor: Option<&str>) -> Vec<u8> {
    let mut params = json!({ "_meta": progress(id) });
    if let Some(cursor) = cursor {
        params["cursor"] = cursor.into();
    }
    line(&request(id, "tools/list", params))
}

/// Checks that a tool can be called with `arguments`: before anything is sent or recorded as sent.
pub fn check_arguments(arguments: &Value) -> Result<(), ArgumentsError> {
    match arguments {
        Value::Null | Value::Object(_) => Ok(()),
        other => Err(ArgumentsError { found: kind(other) }),
    }
}

/// Calls the tool `bare`. Arguments that are no object are left out: null means that there are none, and
/// [`check_arguments`] has refused the others.
pub fn tools_call(id: u64, bare: &str, arguments: &Value) -> Vec<u8> {
    let mut params = json!({ "_meta": progress(id), "name": bare });
    if arguments.is_object() {
        params["arguments"] = arguments.clone();
    }
    line(&request(id, "tools/call", params))
}

/// Says that the answer to request `id` is no longer wanted.
pub fn cancelled(id: u64) -> Vec<u8> {
    line(&json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": { "reason": CANCEL_REASON, "requestId": id },
    }))
}

/// Our answer to a request of the server: there are no roots, nobody can be asked, nothing is sampled.
pub fn answer(id: &Value, method: &str) -> Vec<u8> {
    match method {
        "ping" => result(id, json!({})),
        "roots/list" => result(id, json!({ "roots": [] })),
        "elicitation/create" => result(id, json!({ "action": "decline" })),
        _ => error(Some(id), METHOD_NOT_FOUND, method),
    }
}

/// Our answer to a line that is no message; there is no id to answer to.
pub fn parse_error() -> Vec<u8> {
    error(None, PARSE_ERROR, "Parse error")
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({ "id": id, "jsonrpc": "2.0", "method": method, "params": params })
}

/// Every request but `initialize` has a progress token, so tokens run one behind ids.
fn progress(id: u64) -> Value {
    json!({ "progressToken": id.saturating_sub(INITIALIZE_ID + 1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: Vec<u8>) -> String {
        String::from_utf8(line).expect("UTF-8")
    }

    #[test]
    fn the_handshake_is_two_fixed_lines() {
        let version = env!("CARGO_PKG_VERSION");
        let client = format!(r#"{{"name":"waxlog","version":"{version}"}}"#);
        assert_eq!(
            text(initialize()),
            format!(
                "{{\"id\":0,\"jsonrpc\":\"2.0\",\"method\":\"initialize\",\"params\":{{\"capabilities\":{{}},\
                 \"clientInfo\":{client},\"protocolVersion\":\"2025-11-25\"}}}}\n"
            )
        );
        assert_eq!(text(initialized()), "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
    }

    #[test]
    fn a_listing_names_its_page_and_counts_tokens_from_zero() {
        assert_eq!(
            text(tools_list(1, None)),
            "{\"id\":1,\"jsonrpc\":\"2.0\",\"method\":\"tools/list\",\
             \"params\":{\"_meta\":{\"progressToken\":0}}}\n"
        );
        assert!(text(tools_list(2, Some("p2")))
            .contains(r#""params":{"_meta":{"progressToken":1},"cursor":"p2"}"#));
    }

    #[test]
    fn arguments_are_an_object_or_left_out() {
        let call = tools_call(4, "say", &json!({"b": 1, "a": "x\ny"}));
        assert_eq!(
            text(call),
            "{\"id\":4,\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{\"_meta\":\
             {\"progressToken\":3},\"arguments\":{\"a\":\"x\\ny\",\"b\":1},\"name\":\"say\"}}\n"
        );
        let call = tools_call(4, "say", &Value::Null);
        assert!(!text(call).contains("arguments"));
        for (wrong, word) in [(json!([1]), "an array"), (json!("{}"), "a string")] {
            let error = check_arguments(&wrong).expect_err("refused");
            assert!(error.to_string().starts_with("arguments must be a JSON object"));
            assert_eq!(error.found, word);
        }
    }

    #[test]
    fn a_cancel_names_the_request_by_number() {
        assert_eq!(
            text(cancelled(7)),
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\
             \"params\":{\"reason\":\"session cancelled\",\"requestId\":7}}\n"
        );
    }

    #[test]
    fn requests_of_the_server_get_an_empty_or_declining_answer() {
        let to = |method| text(answer(&json!("s-1"), method));
        assert_eq!(to("ping"), "{\"id\":\"s-1\",\"jsonrpc\":\"2.0\",\"result\":{}}\n");
        assert!(to("roots/list").contains(r#""result":{"roots":[]}"#));
        assert!(to("elicitation/create").contains(r#""action":"decline""#));
        assert!(to("sampling/createMessage").contains("-32601"));
        assert_eq!(
            text(parse_error()),
            "{\"error\":{\"code\":-32700,\"message\":\"Parse error\"},\"jsonrpc\":\"2.0\"}\n"
        );
    }
}
