//! `session/request_permission`: the question to the client whether a call may run, and its answer.

use serde_json::{json, Value};

use super::frame::Id;
use super::lines::{self, Line};
use crate::record::PermissionAnswer;

/// What the ids of these questions start with.
const PREFIX: &str = "permission";

/// The choices, with the words that a person sees. The ids are the standard's kinds.
const OPTIONS: [(&str, &str, PermissionAnswer); 4] = [
    ("allow_once", "Allow once", PermissionAnswer::AllowOnce),
    ("allow_always", "Allow in this session", PermissionAnswer::AllowAlways),
    ("reject_once", "Refuse once", PermissionAnswer::RejectOnce),
    ("reject_always", "Refuse in this session", PermissionAnswer::RejectAlways),
];

/// The id of the question about call `index` of round `asked`: made from its place, so that a replay agrees.
pub fn question_id(session: &str, asked: u64, index: usize) -> Id {
    Id::of_text(&format!("{PREFIX}/{session}/{asked}/{index}"))
}

/// The session, round and call that a question's id stands for; `None` if it is the id of no question.
pub fn place_of(id: &Id) -> Option<(String, u64, usize)> {
    let text: String = serde_json::from_str(id.as_json()).ok()?;
    let mut parts = text.split('/');
    let (prefix, session) = (parts.next()?, parts.next()?.to_owned());
    let place = (session, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    (prefix == PREFIX && parts.next().is_none()).then_some(place)
}

/// The question.
pub fn question(id: &Id, session: &str, call: &str, name: &str, arguments: &Value) -> Line {
    let options: Vec<Value> =
        OPTIONS.iter().map(|(id, name, _)| json!({"optionId": id, "name": name, "kind": id})).collect();
    let call = json!({
        "toolCallId": call, "title": name, "kind": "other", "status": "pending", "rawInput": arguments,
    });
    let params = json!({"sessionId": session, "toolCall": call, "options": options});
    lines::request(id, "session/request_permission", &params)
}

/// What the client's answer means. Total: what cannot be read is no permission.
pub fn answer(outcome: &Result<Value, String>) -> PermissionAnswer {
    let result = match outcome {
        Ok(result) => result,
        Err(text) => return PermissionAnswer::Unusable { text: text.clone() },
    };
    let unusable = |what: &str| PermissionAnswer::Unusable { text: what.to_owned() };
    match result.pointer("/outcome/outcome").and_then(Value::as_str) {
        Some("cancelled") => PermissionAnswer::Cancelled,
        Some("selected") => {
            let chosen = result.pointer("/outcome/optionId").and_then(Value::as_str);
            let known = OPTIONS.iter().find(|(id, ..)| chosen == Some(*id));
            known.map_or_else(|| unusable("it chose none of the options"), |(.., answer)| answer.clone())
        }
        _ => unusable("it holds no outcome that is known"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_tells_its_place_however_the_client_spells_it() {
        let id = question_id("ses_1", 3, 2);
        assert_eq!(place_of(&id), Some(("ses_1".into(), 3, 2)));
        let spelt: Id = serde_json::from_value(json!(r#""permission\/ses_1\/3\/2""#)).expect("an id");
        assert_eq!(place_of(&spelt), place_of(&id));
        for other in ["\"permission/ses_1/3\"", "\"x/ses_1/3/2\"", "7", "\"permission/ses_1/3/2/1\""] {
            let other: Id = serde_json::from_value(json!(other)).expect("an id");
            assert_eq!(place_of(&other), None, "{other:?}");
        }
    }

    #[test]
    fn only_an_option_that_was_offered_is_a_permission() {
        let chose =
            |option: &str| answer(&Ok(json!({"outcome": {"outcome": "selected", "optionId": option}})));
        assert_eq!(chose("allow_once"), PermissionAnswer::AllowOnce);
        assert_eq!(chose("reject_always"), PermissionAnswer::RejectAlways);
        assert!(matches!(chose("yes"), PermissionAnswer::Unusable { .. }));
        assert_eq!(answer(&Ok(json!({"outcome": {"outcome": "cancelled"}}))), PermissionAnswer::Cancelled);
        for odd in [json!(null), json!({}), json!({"outcome": "selected"}), json!([true])] {
            assert!(matches!(answer(&Ok(odd.clone())), PermissionAnswer::Unusable { .. }), "{odd}");
        }
        let text = "method not found".to_owned();
        assert_eq!(answer(&Err(text.clone())), PermissionAnswer::Unusable { text });
    }
}
