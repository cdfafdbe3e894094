//! The frames between client and relay (NIP-01, NIP-42, NIP-45): one JSON array each.

use serde_json::{json, Value};

use crate::event::Event;
use crate::filter::Filter;
use crate::id::EventId;

/// The longest subscription id, in bytes.
pub const MAX_SUBSCRIPTION_ID_BYTES: usize = 256;
/// The most filters of one `REQ` or `COUNT`.
pub const MAX_FILTERS: usize = 10;

/// What a client sends.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientFrame {
    /// The answer to a challenge.
    Auth(Event),
    /// An event to publish.
    Event(Event),
    /// A subscription: what is stored, then what comes.
    Req(String, Vec<Filter>),
    /// A question how many events there are.
    Count(String, Vec<Filter>),
    /// The end of a subscription.
    Close(String),
}

/// What a relay sends.
#[derive(Debug, Clone, PartialEq)]
pub enum RelayFrame {
    /// The challenge.
    Auth(String),
    /// An event of a subscription.
    Event(String, Event),
    /// Whether an event was taken, and why not.
    Ok(EventId, bool, String),
    /// All that was stored has been sent.
    Eose(String),
    /// The relay has ended a subscription, and why.
    Closed(String, String),
    /// A word to a person.
    Notice(String),
    /// How many events there are.
    Count(String, u64),
}

/// Why a frame is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FrameError(String);

fn bad<T>(why: impl Into<String>) -> Result<T, FrameError> {
    Err(FrameError(why.into()))
}

/// The verb and the rest of a frame.
fn open(text: &str) -> Result<(String, Vec<Value>), FrameError> {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return bad("not JSON") };
    let Value::Array(mut items) = value else { return bad("not a JSON array") };
    if items.is_empty() {
        return bad("empty array");
    }
    match items.remove(0) {
        Value::String(verb) => Ok((verb, items)),
        _ => bad("the first item must be a text"),
    }
}

fn take_event(verb: &str, items: Vec<Value>, at: usize) -> Result<Event, FrameError> {
    let Some(value) = items.into_iter().nth(at) else { return bad(format!("{verb} without an event")) };
    serde_json::from_value(value).or_else(|error| bad(format!("{verb} with a bad event: {error}")))
}

fn subscription(verb: &str, items: &[Value]) -> Result<String, FrameError> {
    match items.first().and_then(Value::as_str) {
        None => bad(format!("{verb} without a subscription id")),
        Some("") => bad("the subscription id is empty"),
        Some(id) if id.len() > MAX_SUBSCRIPTION_ID_BYTES => bad(format!(
            "the subscription id has {} bytes, at most {MAX_SUBSCRIPTION_ID_BYTES} are taken",
            id.len()
        )),
        Some(id) => Ok(id.to_owned()),
    }
}

fn filters(items: &[Value]) -> Result<Vec<Filter>, FrameError> {
    let values = items.get(1..).unwrap_or_default();
    if values.len() > MAX_FILTERS {
        return bad(format!("{} filters, at most {MAX_FILTERS} are taken", values.len()));
    }
    values.iter().map(|value| Filter::from_json(value).or_else(|error| bad(error.to_string()))).collect()
}

impl ClientFrame {
    /// Reads a frame. Signatures are not checked here.
    pub fn parse(text: &str) -> Result<Self, FrameError> {
        let (verb, items) = open(text)?;
        match verb.as_str() {
            "AUTH" => take_event(&verb, items, 0).map(Self::Auth),
            "EVENT" => take_event(&verb, items, 0).map(Self::Event),
            "REQ" => Ok(Self::Req(subscription(&verb, &items)?, filters(&items)?)),
            "COUNT" => Ok(Self::Count(subscription(&verb, &items)?, filters(&items)?)),
            "CLOSE" => subscription(&verb, &items).map(Self::Close),
            _ => bad(format!("unknown verb {:?}", verb.chars().take(20).collect::<String>())),
        }
    }

    /// The frame as text.
    pub fn to_json(&self) -> String {
        let subscribed = |verb: &str, id: &String, filters: &[Filter]| {
            let mut items = vec![json!(verb), json!(id)];
            items.extend(filters.iter().map(Filter::to_json));
            Value::from(items)
        };
        match self {
            Self::Auth(event) => json!(["AUTH", event]),
            Self::Event(event) => json!(["EVENT", event]),
            Self::Req(id, filters) => subscribed("REQ", id, filters),
            Self::Count(id, filters) => subscribed("COUNT", id, filters),
            Self::Close(id) => json!(["CLOSE", id]),
        }
        .to_string()
    }
}

impl RelayFrame {
    /// Reads a frame. Signatures are not checked here.
    pub fn parse(text: &str) -> Result<Self, FrameError> {
        let (verb, items) = open(text)?;
        let word = |at: usize| items.get(at).and_then(Value::as_str).map(str::to_owned);
        let needed = |at: usize| word(at).map_or_else(|| bad(format!("{verb} without item {at}")), Ok);
        match verb.as_str() {
            "AUTH" => needed(0).map(Self::Auth),
            "EVENT" => Ok(Self::Event(subscription(&verb, &items)?, take_event(&verb, items, 1)?)),
            "OK" => {
                let id = needed(0)?.parse().or_else(|_| bad("OK with a bad event id"))?;
                let Some(accepted) = items.get(1).and_then(Value::as_bool) else {
                    return bad("OK without true or false");
                };
                Ok(Self::Ok(id, accepted, word(2).unwrap_or_default()))
            }
            "EOSE" => needed(0).map(Self::Eose),
            "CLOSED" => Ok(Self::Closed(needed(0)?, word(1).unwrap_or_default())),
            "NOTICE" => needed(0).map(Self::Notice),
            "COUNT" => match items.get(1).and_then(|answer| answer["count"].as_u64()) {
                Some(count) => Ok(Self::Count(needed(0)?, count)),
                None => bad("COUNT without a count"),
            },
            _ => bad(format!("unknown verb {:?}", verb.chars().take(20).collect::<String>())),
        }
    }

    /// The frame as text.
    pub fn to_json(&self) -> String {
        match self {
            Self::Auth(challenge) => json!(["AUTH", challenge]).to_string(),
            Self::Event(id, event) => event_frame(id, &event.to_json()),
            Self::Ok(id, accepted, message) => json!(["OK", id, accepted, message]).to_string(),
            Self::Eose(id) => json!(["EOSE", id]).to_string(),
            Self::Closed(id, why) => json!(["CLOSED", id, why]).to_string(),
            Self::Notice(text) => json!(["NOTICE", text]).to_string(),
            Self::Count(id, count) => json!(["COUNT", id, {"count": count}]).to_string(),
        }
    }
}

/// An `EVENT` frame of a relay around an event that is JSON already, so that many subscriptions share it.
pub fn event_frame(subscription: &str, event_json: &str) -> String {
    format!("[\"EVENT\",{},{event_json}]", Value::from(subscription))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Draft, Keys};

    #[test]
    fn each_client_frame_survives_its_text() {
        let event = Keys::generate().sign(Draft::new(1, "a", 1));
        for frame in [
            ClientFrame::Auth(event.clone()),
            ClientFrame::Event(event),
            ClientFrame::Req("s".into(), vec![Filter::new().kinds([1]), Filter::new()]),
            ClientFrame::Count("s".into(), vec![]),
            ClientFrame::Close("s".into()),
        ] {
            assert_eq!(ClientFrame::parse(&frame.to_json()), Ok(frame));
        }
    }

    #[test]
    fn each_relay_frame_survives_its_text() {
        let event = Keys::generate().sign(Draft::new(1, "a", 1));
        for frame in [
            RelayFrame::Auth("c".into()),
            RelayFrame::Ok(event.id, false, "invalid: x".into()),
            RelayFrame::Event("s \"1\"".into(), event),
            RelayFrame::Eose("s".into()),
            RelayFrame::Closed("s".into(), "restricted: x".into()),
            RelayFrame::Notice("n".into()),
            RelayFrame::Count("s".into(), 3),
        ] {
            assert_eq!(RelayFrame::parse(&frame.to_json()), Ok(frame));
        }
    }

    #[test]
    fn what_is_no_client_frame_is_refused_with_a_reason() {
        let long = format!("[\"CLOSE\",\"{}\"]", "s".repeat(257));
        let many = format!("[\"REQ\",\"s\"{}]", ",{}".repeat(11));
        for text in [
            "",
            "{}",
            "[]",
            "[1]",
            "[\"FOO\"]",
            "[\"REQ\"]",
            "[\"EVENT\"]",
            "[\"EVENT\",{}]",
            "[\"REQ\",\"\"]",
            &long,
            &many,
        ] {
            assert!(!ClientFrame::parse(text).unwrap_err().to_string().is_empty(), "{text}");
        }
        let just = format!("[\"CLOSE\",\"{}\"]", "s".repeat(256));
        assert!(ClientFrame::parse(&just).is_ok());
    }
}
