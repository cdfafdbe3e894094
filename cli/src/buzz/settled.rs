//! What became of a write that must not be lost: some relays answer that they have a newer version and call
//! that accepted.

use serde_json::Value;

use super::failure::Failure;

/// Gives the answer back if the write counts. One that lost against a newer version is a conflict.
pub(crate) fn settled(answer: Value) -> Result<Value, Failure> {
    let message = answer["message"].as_str().unwrap_or_default();
    if message == "duplicate" || message.starts_with("duplicate:") {
        return Err(Failure::Conflict(format!(
            "the relay has a version that is as new or newer ({message}); read it again, then write"
        )));
    }
    match answer["accepted"].as_bool() {
        Some(true) => Ok(answer),
        _ => Err(Failure::Other(format!("the relay did not accept the event: {message}"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_write_that_lost_is_a_conflict_whatever_was_accepted() {
        for message in ["duplicate", "duplicate: have newer"] {
            for accepted in [true, false] {
                let answer = json!({"accepted": accepted, "message": message});
                assert!(matches!(settled(answer), Err(Failure::Conflict(_))), "{message}");
            }
        }
    }

    #[test]
    fn a_refusal_is_an_error_and_a_success_is_passed_on() {
        for answer in [json!({"accepted": false, "message": "no"}), json!({"message": ""})] {
            assert!(matches!(settled(answer), Err(Failure::Other(_))));
        }
        let answer = json!({"accepted": true, "message": "", "event_id": "a"});
        assert_eq!(settled(answer.clone()).unwrap(), answer);
    }
}
