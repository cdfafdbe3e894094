//! Channels: creating, changing and leaving them, their members and their canvas.

use super::{in_channel, BuildError};
use crate::channel::{clean_name, ChannelId, ChannelType, Role, Visibility, MAX_TTL_SECONDS};
use crate::event::Draft;
use crate::id::PublicKey;
use crate::kind::{
    CANVAS, CREATE_CHANNEL, DELETE_CHANNEL, EDIT_CHANNEL, JOIN_CHANNEL, LEAVE_CHANNEL, PUT_USER, REMOVE_USER,
};

/// A channel to be.
#[derive(Debug, Clone, Copy)]
pub struct New<'a> {
    /// Its id.
    pub channel: ChannelId,
    /// Its name; leading `#` and blanks around it go.
    pub name: &'a str,
    /// Who sees it; up to the relay if absent.
    pub visibility: Option<Visibility>,
    /// What it is for; up to the relay if absent.
    pub channel_type: Option<ChannelType>,
    /// What it is about.
    pub about: Option<&'a str>,
    /// How long it lives without messages, in seconds.
    pub ttl_seconds: Option<u32>,
}

/// What an update does to the time that a channel lives without messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ttl {
    /// Sets it, in seconds.
    Seconds(u32),
    /// Takes it away.
    Never,
}

/// Creates a channel.
pub fn create(new: &New<'_>, now: u64) -> Result<Draft, BuildError> {
    let mut draft = in_channel(CREATE_CHANNEL, &new.channel, "", now).tag(["name", clean_name(new.name)?]);
    for (name, value) in [
        ("visibility", new.visibility.map(Visibility::as_str)),
        ("channel_type", new.channel_type.map(ChannelType::as_str)),
        ("about", new.about),
    ] {
        draft.tags.extend(value.map(|value| vec![name.to_owned(), value.to_owned()]));
    }
    match new.ttl_seconds {
        Some(seconds) => Ok(draft.tag(["ttl", &check_ttl(seconds)?.to_string()])),
        None => Ok(draft),
    }
}

/// Checks a time that a channel lives without messages, in seconds.
pub fn check_ttl(seconds: u32) -> Result<u32, BuildError> {
    match (1..=MAX_TTL_SECONDS).contains(&seconds) {
        true => Ok(seconds),
        false => {
            Err(BuildError::invalid("the time to live", "1 to 2147483647 seconds", &seconds.to_string()))
        }
    }
}

/// Changes name, description or time to live.
pub fn update(
    channel: &ChannelId,
    name: Option<&str>,
    about: Option<&str>,
    ttl: Option<Ttl>,
    now: u64,
) -> Result<Draft, BuildError> {
    if name.is_none() && about.is_none() && ttl.is_none() {
        return Err(BuildError::Together("nothing to change; give a name, a description or a time to live"));
    }
    let mut draft = in_channel(EDIT_CHANNEL, channel, "", now);
    if let Some(name) = name {
        draft = draft.tag(["name", clean_name(name)?]);
    }
    if let Some(about) = about {
        draft = draft.tag(["about", about]);
    }
    Ok(match ttl {
        Some(Ttl::Seconds(seconds)) => draft.tag(["ttl", &check_ttl(seconds)?.to_string()]),
        Some(Ttl::Never) => draft.tag(["ttl", ""]),
        None => draft,
    })
}

/// Says what is talked of now.
pub fn topic(channel: &ChannelId, topic: &str, now: u64) -> Draft {
    in_channel(EDIT_CHANNEL, channel, "", now).tag(["topic", topic])
}

/// Says what the channel is good for.
pub fn purpose(channel: &ChannelId, purpose: &str, now: u64) -> Draft {
    in_channel(EDIT_CHANNEL, channel, "", now).tag(["purpose", purpose])
}

/// Closes a channel to writers, or opens it again.
pub fn archive(channel: &ChannelId, archived: bool, now: u64) -> Draft {
    let word = if archived { "true" } else { "false" };
    in_channel(EDIT_CHANNEL, channel, "", now).tag(["archived", word])
}

/// Deletes a channel.
pub fn delete(channel: &ChannelId, now: u64) -> Draft {
    in_channel(DELETE_CHANNEL, channel, "", now)
}

/// Joins a channel.
pub fn join(channel: &ChannelId, now: u64) -> Draft {
    in_channel(JOIN_CHANNEL, channel, "", now)
}

/// Leaves a channel.
pub fn leave(channel: &ChannelId, now: u64) -> Draft {
    in_channel(LEAVE_CHANNEL, channel, "", now)
}

/// Adds a member, or changes its role.
pub fn add_member(channel: &ChannelId, member: &PublicKey, role: Option<Role>, now: u64) -> Draft {
    let draft = in_channel(PUT_USER, channel, "", now).tag(["p", &member.to_hex()]);
    match role {
        Some(role) => draft.tag(["role", role.as_str()]),
        None => draft,
    }
}

/// Removes a member.
pub fn remove_member(channel: &ChannelId, member: &PublicKey, now: u64) -> Draft {
    in_channel(REMOVE_USER, channel, "", now).tag(["p", &member.to_hex()])
}

/// A new text of the channel's document.
pub fn canvas(channel: &ChannelId, content: &str, now: u64) -> Draft {
    in_channel(CANVAS, channel, content, now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Keys;

    const ID: &str = "99999999-9999-4999-8999-999999999999";

    fn channel() -> ChannelId {
        ID.parse().unwrap()
    }

    fn new(name: &str) -> New<'_> {
        New { channel: channel(), name, visibility: None, channel_type: None, about: None, ttl_seconds: None }
    }

    #[test]
    fn a_channel_has_a_clean_name_and_what_else_was_said() {
        assert_eq!(create(&new("##  x "), 5).unwrap().tags, [["h", ID], ["name", "x"]]);
        let full = New {
            visibility: Some(Visibility::Private),
            channel_type: Some(ChannelType::Forum),
            about: Some("words"),
            ttl_seconds: Some(60),
            ..new("x")
        };
        let tags = create(&full, 5).unwrap().tags;
        let wanted =
            [["visibility", "private"], ["channel_type", "forum"], ["about", "words"], ["ttl", "60"]];
        assert_eq!(tags[2..], wanted);
        assert!(create(&new("# #"), 5).is_err());
    }

    #[test]
    fn a_time_to_live_is_from_1_to_what_31_bits_hold() {
        for (seconds, ok) in [(0, false), (1, true), (2_147_483_647, true), (2_147_483_648, false)] {
            assert_eq!(check_ttl(seconds).is_ok(), ok, "{seconds}");
            assert_eq!(create(&New { ttl_seconds: Some(seconds), ..new("x") }, 5).is_ok(), ok);
            assert_eq!(update(&channel(), None, None, Some(Ttl::Seconds(seconds)), 5).is_ok(), ok);
        }
    }

    #[test]
    fn an_update_says_what_changes() {
        assert!(update(&channel(), None, None, None, 5).is_err());
        let draft = update(&channel(), Some("#y"), Some(""), Some(Ttl::Never), 5).unwrap();
        assert_eq!(draft.tags[1..], [["name", "y"], ["about", ""], ["ttl", ""]]);
        assert_eq!(draft.kind, 9002);
        assert_eq!(archive(&channel(), true, 5).tags[1], ["archived", "true"]);
        assert_eq!(topic(&channel(), "t", 5).tags[1], ["topic", "t"]);
        assert_eq!(purpose(&channel(), "p", 5).tags[1], ["purpose", "p"]);
    }

    #[test]
    fn members_are_added_with_or_without_a_role() {
        let bob = Keys::generate().public_key();
        let hex = bob.to_hex();
        assert_eq!(add_member(&channel(), &bob, None, 5).tags, [["h", ID], ["p", &hex]]);
        assert_eq!(add_member(&channel(), &bob, Some(Role::Bot), 5).tags[2], ["role", "bot"]);
        assert_eq!(remove_member(&channel(), &bob, 5).kind, 9001);
        let kinds =
            [join(&channel(), 5), leave(&channel(), 5), delete(&channel(), 5), canvas(&channel(), "", 5)];
        assert_eq!(kinds.map(|draft| draft.kind), [9021, 9022, 9008, 40_100]);
    }
}
