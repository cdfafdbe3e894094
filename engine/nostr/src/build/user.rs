//! What users say of themselves: profile, status, presence, and who may add them to channels.

use serde_json::{Map, Value};

use super::{check_bytes, BuildError, MAX_TEXT_BYTES};
use crate::channel::AddPolicy;
use crate::event::{Draft, Event};
use crate::kind::{AGENT_PROFILE, PRESENCE, PROFILE, USER_STATUS};

/// The `d` value of the one status that a user has.
pub const STATUS_IDENTIFIER: &str = "general";

/// What changes of a profile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProfileChange<'a> {
    /// The name that is shown.
    pub display_name: Option<&'a str>,
    /// The address of a picture.
    pub picture: Option<&'a str>,
    /// Some words.
    pub about: Option<&'a str>,
    /// A name that can be looked up (NIP-05).
    pub nip05: Option<&'a str>,
}

/// Whether somebody is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// There.
    Online,
    /// There, but not looking.
    Away,
    /// Not there.
    Offline,
}

impl Presence {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Online => "online",
            Self::Away => "away",
            Self::Offline => "offline",
        }
    }
}

impl std::str::FromStr for Presence {
    type Err = BuildError;

    fn from_str(text: &str) -> Result<Self, BuildError> {
        match text {
            "online" => Ok(Self::Online),
            "away" => Ok(Self::Away),
            "offline" => Ok(Self::Offline),
            _ => Err(BuildError::invalid("presence", "online, away or offline", text)),
        }
    }
}

/// A profile that keeps all that `head` says and nobody changed. A `name` stays, and is shown where there
/// was no `display_name`.
pub fn profile(head: Option<&Event>, change: &ProfileChange<'_>, now: u64) -> Draft {
    let mut fields = head.map_or_else(Map::new, |head| object(&head.content));
    if let Some(name) = fields.get("name").filter(|_| !fields.contains_key("display_name")).cloned() {
        fields.insert("display_name".to_owned(), name);
    }
    for (key, value) in [
        ("display_name", change.display_name),
        ("picture", change.picture),
        ("about", change.about),
        ("nip05", change.nip05),
    ] {
        if let Some(value) = value {
            fields.insert(key.to_owned(), value.into());
        }
    }
    Draft { tags: kept_tags(head), ..Draft::new(PROFILE, Value::from(fields).to_string(), now) }
}

/// Who may add this identity to channels; the rest of the agent's profile stays as `head` has it.
pub fn add_policy(head: Option<&Event>, policy: AddPolicy, now: u64) -> Draft {
    let mut fields = head.map_or_else(Map::new, |head| object(&head.content));
    fields.insert("channel_add_policy".to_owned(), policy.as_str().into());
    Draft { tags: kept_tags(head), ..Draft::new(AGENT_PROFILE, Value::from(fields).to_string(), now) }
}

fn object(content: &str) -> Map<String, Value> {
    serde_json::from_str(content).unwrap_or_default()
}

/// The tags of the event that is replaced, without an owner's tag: the signer adds the one that holds now.
fn kept_tags(head: Option<&Event>) -> Vec<crate::event::Tag> {
    let tags = head.map(|head| head.tags.as_slice()).unwrap_or_default();
    tags.iter().filter(|tag| tag.first().is_none_or(|name| name != "auth")).cloned().collect()
}

/// What the user is doing. Without a text the status is cleared.
pub fn status(text: Option<&str>, emoji: Option<&str>, now: u64) -> Result<Draft, BuildError> {
    let text = text.unwrap_or_default().trim();
    check_bytes("the status", text, MAX_TEXT_BYTES)?;
    let draft = Draft::new(USER_STATUS, text, now).tag(["d", STATUS_IDENTIFIER]);
    Ok(match emoji.map(str::trim).filter(|emoji| !emoji.is_empty()) {
        Some(emoji) => draft.tag(["emoji", emoji]),
        None => draft,
    })
}

/// Whether the user is there.
pub fn presence(presence: Presence, now: u64) -> Draft {
    Draft::new(PRESENCE, presence.as_str(), now).tag(["status", presence.as_str()])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Keys;

    fn head(content: &Value) -> Event {
        Keys::generate().sign(Draft::new(0, content.to_string(), 1).tag(["i", "x"]).tag(["auth", "old"]))
    }

    fn fields(draft: &Draft) -> Value {
        serde_json::from_str(&draft.content).unwrap()
    }

    #[test]
    fn a_changed_profile_keeps_everything_else() {
        let head = head(&json!({"name": "old", "banner": "b", "about": "a"}));
        let change = ProfileChange { about: Some("new"), ..ProfileChange::default() };
        let draft = profile(Some(&head), &change, 5);
        assert_eq!(
            fields(&draft),
            json!({"name": "old", "display_name": "old", "banner": "b", "about": "new"})
        );
        assert_eq!(draft.tags, [["i", "x"]]);
        let named = ProfileChange { display_name: Some("New"), ..change };
        assert_eq!(fields(&profile(Some(&head), &named, 5))["display_name"], "New");
        assert_eq!(fields(&profile(None, &named, 5)), json!({"about": "new", "display_name": "New"}));
    }

    #[test]
    fn a_profile_that_is_no_object_is_begun_anew() {
        let change = ProfileChange { nip05: Some("a@b"), ..ProfileChange::default() };
        assert_eq!(fields(&profile(Some(&head(&json!(7))), &change, 5)), json!({"nip05": "a@b"}));
    }

    #[test]
    fn a_policy_leaves_the_rest_of_the_agents_profile() {
        let head = head(&json!({"model": "m", "channel_add_policy": "anyone"}));
        let draft = add_policy(Some(&head), AddPolicy::Nobody, 5);
        assert_eq!(fields(&draft), json!({"model": "m", "channel_add_policy": "nobody"}));
        assert_eq!(add_policy(None, AddPolicy::Anyone, 5).tags, Vec::<Vec<String>>::new());
    }

    #[test]
    fn a_status_is_trimmed_and_a_blank_emoji_left_out() {
        let draft = status(Some("  busy "), Some(" "), 5).unwrap();
        assert_eq!((draft.content.as_str(), draft.tags.len()), ("busy", 1));
        assert_eq!(status(Some("x"), Some("!"), 5).unwrap().tags[1], ["emoji", "!"]);
        assert_eq!(status(None, None, 5).unwrap().content, "");
        assert!(status(Some(&"x".repeat(65_537)), None, 5).is_err());
    }

    #[test]
    fn presence_is_one_of_three_words() {
        let draft = presence("away".parse().unwrap(), 5);
        assert_eq!(
            (draft.content.as_str(), draft.tags[0].as_slice()),
            ("away", &["status", "away"].map(String::from)[..])
        );
        assert!("busy".parse::<Presence>().is_err());
    }
}
