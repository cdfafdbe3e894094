//! Filters: what a reader asks for, and whether an event is that.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::event::Event;
use crate::id::{EventId, PublicKey};

/// One filter. An absent field does not restrict; an empty list matches nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// Only events with one of these ids.
    pub ids: Option<Vec<EventId>>,
    /// Only events by one of these authors.
    pub authors: Option<Vec<PublicKey>>,
    /// Only events of one of these kinds.
    pub kinds: Option<Vec<u16>>,
    /// For each letter, only events that carry a tag of that name with one of these values as element 1.
    pub tags: BTreeMap<char, Vec<String>>,
    /// Only events not older than this, in seconds since 1970.
    pub since: Option<u64>,
    /// Only events not newer than this, in seconds since 1970.
    pub until: Option<u64>,
    /// At most so many events, the newest ones.
    pub limit: Option<usize>,
    /// Only events whose content answers this search (NIP-50).
    pub search: Option<String>,
    /// Fields that are none of the protocol's own, as they came.
    pub extensions: Map<String, Value>,
}

/// Why a JSON value is no filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// Not a JSON object.
    #[error("a filter must be a JSON object")]
    NotAnObject,
    /// A field holds what it must not.
    #[error("filter field {field:?} must be {wanted}")]
    Field {
        /// The field.
        field: String,
        /// What it must be.
        wanted: &'static str,
    },
}

impl Filter {
    /// A filter that restricts nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only events with one of these ids.
    #[must_use]
    pub fn ids(mut self, ids: impl IntoIterator<Item = EventId>) -> Self {
        self.ids = Some(ids.into_iter().collect());
        self
    }

    /// Only events by one of these authors.
    #[must_use]
    pub fn authors(mut self, authors: impl IntoIterator<Item = PublicKey>) -> Self {
        self.authors = Some(authors.into_iter().collect());
        self
    }

    /// Only events of one of these kinds.
    #[must_use]
    pub fn kinds(mut self, kinds: impl IntoIterator<Item = u16>) -> Self {
        self.kinds = Some(kinds.into_iter().collect());
        self
    }

    /// Only events with a tag of this one-letter name and one of these values.
    #[must_use]
    pub fn tag<S: Into<String>>(mut self, name: char, values: impl IntoIterator<Item = S>) -> Self {
        self.tags.insert(name, values.into_iter().map(Into::into).collect());
        self
    }

    /// Only events not older than this.
    #[must_use]
    pub fn since(mut self, seconds: u64) -> Self {
        self.since = Some(seconds);
        self
    }

    /// Only events not newer than this.
    #[must_use]
    pub fn until(mut self, seconds: u64) -> Self {
        self.until = Some(seconds);
        self
    }

    /// At most so many events.
    #[must_use]
    pub fn limit(mut self, events: usize) -> Self {
        self.limit = Some(events);
        self
    }

    /// Only events whose content answers this search.
    #[must_use]
    pub fn search(mut self, query: impl Into<String>) -> Self {
        self.search = Some(query.into());
        self
    }

    /// Adds a field that is none of the protocol's own.
    #[must_use]
    pub fn extension(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.extensions.insert(name.to_owned(), value.into());
        self
    }

    /// Reads a filter. A key `#x` of one letter is a tag; other unknown keys are kept as extensions.
    pub fn from_json(value: &Value) -> Result<Self, FilterError> {
        let object = value.as_object().ok_or(FilterError::NotAnObject)?;
        let mut filter = Self::default();
        for (field, value) in object {
            filter.read(field, value)?;
        }
        Ok(filter)
    }

    fn read(&mut self, field: &str, value: &Value) -> Result<(), FilterError> {
        let wrong = |wanted| FilterError::Field { field: field.to_owned(), wanted };
        let seconds = || value.as_u64().ok_or(wrong("a count of seconds"));
        match field {
            "ids" => self.ids = Some(list(value, hex).ok_or(wrong("a list of 64-digit hex ids"))?),
            "authors" => self.authors = Some(list(value, hex).ok_or(wrong("a list of 64-digit hex keys"))?),
            "kinds" => {
                self.kinds = Some(list(value, kind).ok_or(wrong("a list of numbers from 0 to 65535"))?)
            }
            "since" => self.since = Some(seconds()?),
            "until" => self.until = Some(seconds()?),
            "limit" => {
                let limit = value.as_u64().ok_or(wrong("a number that is not negative"))?;
                self.limit = Some(usize::try_from(limit).unwrap_or(usize::MAX));
            }
            "search" => self.search = Some(text(value).ok_or(wrong("a text"))?),
            _ => match tag_letter(field) {
                Some(letter) => {
                    let values = list(value, text).ok_or(wrong("a list of texts"))?;
                    self.tags.insert(letter, values);
                }
                None => {
                    self.extensions.insert(field.to_owned(), value.clone());
                }
            },
        }
        Ok(())
    }

    /// The filter as JSON, absent fields left out.
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        let mut put = |field: &str, value: Option<Value>| {
            if let Some(value) = value {
                object.insert(field.to_owned(), value);
            }
        };
        put("ids", self.ids.as_ref().map(|ids| hexes(ids)));
        put("authors", self.authors.as_ref().map(|keys| hexes(keys)));
        put("kinds", self.kinds.clone().map(Value::from));
        for (letter, values) in &self.tags {
            put(&format!("#{letter}"), Some(values.clone().into()));
        }
        put("since", self.since.map(Value::from));
        put("until", self.until.map(Value::from));
        put("limit", self.limit.map(Value::from));
        put("search", self.search.clone().map(Value::from));
        for (field, value) in &self.extensions {
            put(field, Some(value.clone()));
        }
        Value::Object(object)
    }

    /// Whether the event answers the filter. `channel` is where a relay has stored it, if anywhere: an event
    /// that carries no `h` tag matches `#h` by that. The limit, a search and extensions are not looked at.
    pub fn matches(&self, event: &Event, channel: Option<&str>) -> bool {
        let is_in = |list: &Option<Vec<_>>, id| list.as_ref().is_none_or(|list| list.contains(id));
        is_in(&self.ids, &event.id)
            && self.authors.as_ref().is_none_or(|authors| authors.contains(&event.pubkey))
            && self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&event.kind))
            && self.since.is_none_or(|since| event.created_at >= since)
            && self.until.is_none_or(|until| event.created_at <= until)
            && self.tags.iter().all(|(letter, values)| has_tag(event, channel, *letter, values))
    }
}

fn has_tag(event: &Event, channel: Option<&str>, letter: char, values: &[String]) -> bool {
    let mut buffer = [0; 4];
    let name = &*letter.encode_utf8(&mut buffer);
    let wanted = |value: &str| values.iter().any(|one| one == value);
    match (letter, channel) {
        ('h', Some(channel)) if event.tags_named("h").next().is_none() => wanted(channel),
        _ => event.tag_values(name).any(wanted),
    }
}

fn tag_letter(field: &str) -> Option<char> {
    let mut rest = field.strip_prefix('#')?.chars();
    let letter = rest.next().filter(char::is_ascii_alphabetic)?;
    rest.next().is_none().then_some(letter)
}

fn list<T>(value: &Value, item: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    value.as_array()?.iter().map(item).collect()
}

fn hex<T: std::str::FromStr>(value: &Value) -> Option<T> {
    value.as_str()?.parse().ok()
}

fn kind(value: &Value) -> Option<u16> {
    value.as_u64()?.try_into().ok()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn hexes<T: ToString>(values: &[T]) -> Value {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Draft, Keys};

    fn event() -> Event {
        Keys::generate().sign(Draft::new(9, "hello", 100).tag(["h", "general"]).tag(["t", "a"]).tag(["t"]))
    }

    #[test]
    fn an_absent_field_does_not_restrict_and_an_empty_list_matches_nothing() {
        assert!(Filter::new().matches(&event(), None));
        for filter in [Filter::new().ids([]), Filter::new().authors([]), Filter::new().kinds([])] {
            assert!(!filter.matches(&event(), None));
        }
        assert!(!Filter::new().tag('t', [""; 0]).matches(&event(), None));
    }

    #[test]
    fn since_and_until_are_inclusive() {
        assert!(Filter::new().since(100).until(100).matches(&event(), None));
        assert!(!Filter::new().since(101).matches(&event(), None));
        assert!(!Filter::new().until(99).matches(&event(), None));
    }

    #[test]
    fn values_of_one_letter_are_or_and_letters_are_and() {
        assert!(Filter::new().tag('t', ["b", "a"]).tag('h', ["general"]).matches(&event(), None));
        assert!(!Filter::new().tag('t', ["a"]).tag('h', ["other"]).matches(&event(), None));
    }

    #[test]
    fn an_event_without_h_matches_by_the_channel_it_is_stored_in() {
        let reaction = Keys::generate().sign(Draft::new(7, "+", 1).tag(["e", "x"]));
        let filter = Filter::new().tag('h', ["general"]);
        assert!(filter.matches(&reaction, Some("general")));
        assert!(!filter.matches(&reaction, Some("other")));
        assert!(!filter.matches(&reaction, None));
        let other = Keys::generate().sign(Draft::new(9, "", 1).tag(["h", "other"]));
        assert!(!filter.matches(&other, Some("general")));
    }

    #[test]
    fn a_filter_survives_json_with_its_extensions() {
        let value = json!({"ids": [], "kinds": [9], "#h": ["x"], "since": 1, "limit": 0, "before_id": "00",
            "search": "a b", "#long": 3});
        let filter = Filter::from_json(&value).unwrap();
        assert_eq!(filter.extensions.len(), 2);
        assert_eq!(filter.to_json(), value);
    }

    #[test]
    fn a_wrong_field_is_named() {
        for (value, field) in [
            (json!({"ids": ["abc"]}), "ids"),
            (json!({"authors": "x"}), "authors"),
            (json!({"kinds": [65536]}), "kinds"),
            (json!({"since": -1}), "since"),
            (json!({"limit": "5"}), "limit"),
            (json!({"#e": [1]}), "#e"),
        ] {
            let error = Filter::from_json(&value).unwrap_err().to_string();
            assert!(error.contains(field), "{error}");
        }
        assert_eq!(Filter::from_json(&json!([])), Err(FilterError::NotAnObject));
    }
}
