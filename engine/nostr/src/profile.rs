//! Profiles: what an event of kind 0 says of its author.

use serde_json::Value;

/// The name that a profile's content gives: `display_name` if the key is there, else `name`. An empty or
/// non-text value, or content that is no JSON object, gives none.
pub fn name(content: &str) -> Option<String> {
    let profile: Value = serde_json::from_str(content).ok()?;
    let name = profile.get("display_name").or_else(|| profile.get("name"))?.as_str()?;
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_display_name_hides_the_name_even_if_it_is_empty() {
        for (content, wanted) in [
            (r#"{"display_name":"Ann","name":"a"}"#, Some("Ann")),
            (r#"{"name":"Bob"}"#, Some("Bob")),
            (r#"{"display_name":"","name":"Bob"}"#, None),
            (r#"{"display_name":null,"name":"Bob"}"#, None),
            (r#"{"display_name":7}"#, None),
            ("{}", None),
            ("[]", None),
            ("Bob", None),
        ] {
            assert_eq!(name(content).as_deref(), wanted, "{content}");
        }
    }
}
