//! Requests as a provider reads them: whether it would take them, by the rules of each wire.

use serde_json::Value;
use waxlog_core::dialect::Dialect;

/// Cache marks that a provider takes in one request.
const MARKS_MAX: usize = 4;

/// Says what is wrong with a request body, if anything is.
pub fn check_request(dialect: Dialect, body: &[u8]) -> Result<(), String> {
    let value: Value =
        serde_json::from_slice(body).map_err(|e| format!("a request that is no JSON ({e})"))?;
    let marks = String::from_utf8_lossy(body).matches("\"cache_control\"").count();
    if marks > MARKS_MAX {
        return Err(format!("{marks} cache marks"));
    }
    let key = if dialect == Dialect::Responses { "input" } else { "messages" };
    let items = match value.get(key) {
        // The summary's input is one text.
        Some(Value::String(_)) if dialect == Dialect::Responses => return Ok(()),
        Some(Value::Array(items)) => items.as_slice(),
        _ => return Err(format!("no list `{key}`")),
    };
    let said = items.iter().map(|item| match dialect {
        Dialect::Chat | Dialect::Openrouter => chat(item),
        Dialect::Responses => responses(item),
        Dialect::Anthropic => anthropic(item),
    });
    let steps: Vec<Step> = said.collect::<Result<Vec<_>, _>>()?.concat();
    follow(&steps)
}

/// What an item of a request does to the open calls.
#[derive(Clone, Debug)]
enum Step {
    System,
    User,
    Assistant,
    Call(String),
    Result(String),
    /// Images of the user, or of results: they may stand among the results of one round.
    Picture,
}

/// Walks through the conversation: it begins with the user, each call gets its one result before anything
/// else is said, and the model is not asked to follow itself.
fn follow(steps: &[Step]) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut begun = false;
    let mut answering = false;
    for step in steps {
        match step {
            Step::System if begun => return Err("a system message in the middle".to_owned()),
            Step::User | Step::Assistant if !open.is_empty() => {
                return Err(format!("no result for {open:?}"))
            }
            Step::Assistant | Step::Call(_) | Step::Result(_) if !begun => {
                return Err("the conversation does not begin with the user".to_owned());
            }
            Step::Call(id) if answering && !open.is_empty() => {
                return Err(format!("call {id} before all results"))
            }
            Step::Call(id) if id.is_empty() || open.contains(&id.as_str()) => {
                return Err(format!("call id {id:?} is empty or repeated"));
            }
            Step::Call(id) => open.push(id),
            Step::Result(id) => match open.iter().position(|call| call == id) {
                Some(at) => drop(open.remove(at)),
                None => return Err(format!("a result for {id:?}, which is no open call")),
            },
            Step::System | Step::User | Step::Assistant | Step::Picture => {}
        }
        answering = matches!(step, Step::Result(_) | Step::Picture);
        begun |= matches!(step, Step::User | Step::Picture);
    }
    match steps.last() {
        _ if !open.is_empty() => Err(format!("no result for {open:?}")),
        Some(Step::User | Step::Result(_) | Step::Picture) => Ok(()),
        last => Err(format!("the conversation ends with {last:?}")),
    }
}

fn chat(message: &Value) -> Result<Vec<Step>, String> {
    let id = |value: &Value, key: &str| word(value, key).unwrap_or_default().to_owned();
    Ok(match word(message, "role") {
        Some("system") => vec![Step::System],
        Some("user") if pictures(message) => vec![Step::Picture],
        Some("user") => vec![Step::User],
        Some("tool") => vec![Step::Result(id(message, "tool_call_id"))],
        Some("assistant") => {
            let calls = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
            let calls = calls.map(|call| {
                let arguments = call.pointer("/function/arguments").and_then(Value::as_str);
                let object = arguments.and_then(|text| serde_json::from_str::<Value>(text).ok());
                match object {
                    Some(Value::Object(_)) => Ok(Step::Call(id(call, "id"))),
                    _ => Err(format!("the arguments of {call} are no object")),
                }
            });
            [Ok(Step::Assistant)].into_iter().chain(calls).collect::<Result<_, _>>()?
        }
        other => return Err(format!("a message of role {other:?}")),
    })
}

fn responses(item: &Value) -> Result<Vec<Step>, String> {
    let id = || word(item, "call_id").unwrap_or_default().to_owned();
    Ok(match (word(item, "type"), word(item, "role")) {
        (Some("function_call"), _) => vec![Step::Call(id())],
        (Some("function_call_output"), _) => vec![Step::Result(id())],
        (None, Some("user")) if pictures(item) => vec![Step::Picture],
        (None, Some("user")) => vec![Step::User],
        (None, Some("assistant")) => vec![Step::Assistant],
        other => return Err(format!("an item of kind {other:?}")),
    })
}

/// A message with blocks; results must stand first among a user's.
fn anthropic(message: &Value) -> Result<Vec<Step>, String> {
    let role = word(message, "role").unwrap_or_default();
    let blocks = message.get("content").and_then(Value::as_array).filter(|blocks| !blocks.is_empty());
    let blocks = blocks.ok_or_else(|| format!("a message without content blocks: {message}"))?;
    let mut steps = Vec::new();
    for block in blocks {
        let id = |key: &str| word(block, key).unwrap_or_default().to_owned();
        steps.push(match (role, word(block, "type")) {
            ("user", Some("text")) => Step::User,
            ("user", Some("image")) => Step::Picture,
            ("user", Some("tool_result")) => Step::Result(id("tool_use_id")),
            ("assistant", Some("text")) => Step::Assistant,
            ("assistant", Some("tool_use")) if block.get("input").is_some_and(Value::is_object) => {
                Step::Call(id("id"))
            }
            (role, kind) => return Err(format!("a block of kind {kind:?} from {role:?}")),
        });
    }
    Ok(steps)
}

fn word<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

fn pictures(message: &Value) -> bool {
    let blocks = message.get("content").and_then(Value::as_array);
    let picture = |block: &Value| matches!(word(block, "type"), Some("image_url" | "input_image"));
    blocks.is_some_and(|blocks| blocks.iter().any(picture))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wrong(messages: Value) -> String {
        let body = json!({"messages": messages}).to_string();
        check_request(Dialect::Chat, body.as_bytes()).expect_err("wrong")
    }

    #[test]
    fn a_call_without_its_result_is_found() {
        let user = json!({"role": "user", "content": "x"});
        let calls = json!({"role": "assistant", "content": "", "tool_calls": [
            {"id": "a", "function": {"name": "t", "arguments": "{}"}},
            {"id": "b", "function": {"name": "t", "arguments": "{}"}},
        ]});
        let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": ""});
        assert!(wrong(json!([user, calls, result("a"), user])).contains("no result for [\"b\"]"));
        assert!(wrong(json!([user, calls, result("a")])).contains("no result for [\"b\"]"));
        assert!(wrong(json!([user, result("a")])).contains("no open call"));
        assert!(wrong(json!([calls])).contains("begin with the user"));
        assert!(wrong(json!([user, {"role": "assistant", "content": "x"}])).contains("ends with"));
        let whole = json!({"messages": [user, calls, result("b"), result("a")]}).to_string();
        assert_eq!(check_request(Dialect::Chat, whole.as_bytes()), Ok(()));
    }
}
