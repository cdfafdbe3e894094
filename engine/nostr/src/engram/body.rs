//! What an engram holds, as exact bytes.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::Serialize;
use serde_json::{Map, Value};

use super::slug::Slug;
use crate::nip44::MAX_PLAINTEXT_BYTES;

/// What is remembered under a slug.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// What the agent always knows, under `core`.
    Core {
        /// The slug, which is `core`.
        slug: Slug,
        /// The text.
        profile: String,
    },
    /// A memory under `mem/`.
    Memory {
        /// Its slug.
        slug: Slug,
        /// The text; nothing for one that was forgotten.
        value: Option<String>,
    },
}

/// Why a text is no body, or a body no text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// More than can be encrypted.
    #[error("the memory takes {0} bytes of JSON, at most {MAX_PLAINTEXT_BYTES} fit; store less")]
    Length(usize),
    /// Not the JSON of a body.
    #[error("the memory's body is malformed: {0}")]
    Malformed(String),
    /// `core` cannot be forgotten.
    #[error("core cannot be removed; set it to another text")]
    Core,
}

#[derive(Serialize)]
struct CoreJson<'a> {
    slug: &'a str,
    profile: &'a str,
}

#[derive(Serialize)]
struct MemoryJson<'a> {
    slug: &'a str,
    value: Option<&'a str>,
}

impl Body {
    /// The body that keeps `text` under a slug.
    pub fn new(slug: Slug, text: impl Into<String>) -> Self {
        match slug.is_core() {
            true => Self::Core { slug, profile: text.into() },
            false => Self::Memory { slug, value: Some(text.into()) },
        }
    }

    /// The body that says that a slug is forgotten. `core` cannot be.
    pub fn tombstone(slug: Slug) -> Result<Self, BodyError> {
        match slug.is_core() {
            true => Err(BodyError::Core),
            false => Ok(Self::Memory { slug, value: None }),
        }
    }

    /// The slug.
    pub fn slug(&self) -> &Slug {
        match self {
            Self::Core { slug, .. } | Self::Memory { slug, .. } => slug,
        }
    }

    /// The text, unless it is forgotten.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Core { profile, .. } => Some(profile),
            Self::Memory { value, .. } => value.as_deref(),
        }
    }

    /// The exact bytes that are encrypted.
    pub fn to_json(&self) -> Result<String, BodyError> {
        let json = match self {
            Self::Core { slug, profile } => serde_json::to_string(&CoreJson { slug: slug.as_str(), profile }),
            Self::Memory { slug, value } => {
                serde_json::to_string(&MemoryJson { slug: slug.as_str(), value: value.as_deref() })
            }
        };
        let json = json.map_err(|error| BodyError::Malformed(error.to_string()))?;
        within_limit(&json)?;
        Ok(json)
    }

    /// Reads a body. A key that is there twice, at any depth, and anything behind the object are errors;
    /// unknown keys are passed over.
    pub fn parse(json: &str) -> Result<Self, BodyError> {
        within_limit(json)?;
        let malformed = |why: &str| Err(BodyError::Malformed(why.to_owned()));
        let mut object = match parse_without_duplicates(json) {
            Ok(Value::Object(object)) => object,
            Ok(_) => return malformed("not a JSON object"),
            Err(error) => return malformed(&position_only(&error)),
        };
        let Some(Value::String(slug)) = object.remove("slug") else {
            return malformed("its slug must be a text");
        };
        let Ok(slug) = slug.parse::<Slug>() else { return malformed("its slug is none") };
        match (slug.is_core(), text_of(&mut object, slug.is_core())) {
            (true, Some(Value::String(profile))) => Ok(Self::Core { slug, profile }),
            (true, _) => malformed("its profile must be a text"),
            (false, Some(Value::String(value))) => Ok(Self::Memory { slug, value: Some(value) }),
            (false, Some(Value::Null)) => Ok(Self::Memory { slug, value: None }),
            (false, _) => malformed("its value must be a text or null"),
        }
    }
}

fn text_of(object: &mut Map<String, Value>, is_core: bool) -> Option<Value> {
    object.remove(if is_core { "profile" } else { "value" })
}

fn within_limit(json: &str) -> Result<(), BodyError> {
    match json.len() {
        length if length > MAX_PLAINTEXT_BYTES => Err(BodyError::Length(length)),
        _ => Ok(()),
    }
}

/// Where and in what class an error is. Its text may hold what was decrypted, so it is not repeated.
fn position_only(error: &serde_json::Error) -> String {
    format!("{:?} error in column {}", error.classify(), error.column())
}

fn parse_without_duplicates(json: &str) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(json);
    let value = Unique.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Reads any JSON value and refuses an object that has a key twice.
struct Unique;

impl<'de> DeserializeSeed<'de> for Unique {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Unique)? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let (mut object, mut seen) = (Map::new(), BTreeSet::new());
        while let Some(key) = entries.next_key::<String>()? {
            if !seen.insert(key.clone()) {
                return Err(de::Error::custom("a key is there twice"));
            }
            object.insert(key, entries.next_value_seed(Unique)?);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slug(text: &str) -> Slug {
        text.parse().unwrap()
    }

    #[test]
    fn a_body_has_exact_bytes() {
        let body = Body::new(slug("mem/x"), "\"\\\u{8}\u{c}\n\r\t\u{1}\u{7f}/é");
        let json = "{\"slug\":\"mem/x\",\"value\":\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\u{7f}/é\"}";
        assert_eq!(body.to_json().as_deref(), Ok(json));
        assert_eq!(Body::parse(json), Ok(body));
        let gone = Body::tombstone(slug("mem/x")).unwrap();
        assert_eq!(gone.to_json().as_deref(), Ok(r#"{"slug":"mem/x","value":null}"#));
        let core = Body::new(Slug::core(), "me").to_json();
        assert_eq!(core.as_deref(), Ok(r#"{"slug":"core","profile":"me"}"#));
        assert_eq!(Body::tombstone(Slug::core()), Err(BodyError::Core));
    }

    #[test]
    fn unknown_keys_are_passed_over_and_blanks_are_fine() {
        let json = r#" {"x":{"a":[1,-1,2.5,true,null]},"value":"v","slug":"mem/x","profile":1} "#;
        assert_eq!(Body::parse(json), Ok(Body::new(slug("mem/x"), "v")));
    }

    #[test]
    fn a_key_that_is_there_twice_is_refused_at_any_depth() {
        for json in [
            r#"{"slug":"mem/x","slug":"mem/x","value":"v"}"#,
            r#"{"slug":"mem/x","value":"v","x":[{"a":1,"a":1}]}"#,
            r#"{"slug":"mem/x","value":"v","\u0073lug":"mem/x"}"#,
        ] {
            assert!(Body::parse(json).is_err(), "{json}");
        }
    }

    #[test]
    fn other_shapes_are_refused_and_not_repeated() {
        for json in [
            "",
            "[]",
            "\"secret\"",
            r#"{"slug":"mem/x"}"#,
            r#"{"slug":"mem/x","value":1}"#,
            r#"{"slug":"mem/x","profile":"v"}"#,
            r#"{"slug":"core","value":"v"}"#,
            r#"{"slug":"core","profile":null}"#,
            r#"{"slug":"secret","value":"v"}"#,
            r#"{"slug":1,"value":"v"}"#,
            r#"{"slug":"mem/x","value":"v"} x"#,
            r#"{"slug":"mem/x","value":"secret}"#,
        ] {
            let error = Body::parse(json).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
        let deep = format!(r#"{{"slug":"mem/x","value":"v","x":{}}}"#, "[".repeat(30_000));
        assert!(Body::parse(&deep).is_err());
    }

    #[test]
    fn the_longest_body_fits_and_one_byte_more_does_not() {
        let frame = r#"{"slug":"mem/x","value":""}"#.len();
        let longest = Body::new(slug("mem/x"), "x".repeat(MAX_PLAINTEXT_BYTES - frame));
        assert_eq!(Body::parse(&longest.to_json().unwrap()), Ok(longest));
        let longer = Body::new(slug("mem/x"), "x".repeat(MAX_PLAINTEXT_BYTES - frame + 1));
        assert_eq!(longer.to_json(), Err(BodyError::Length(65_536)));
    }
}
