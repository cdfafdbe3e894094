//! Channels (NIP-29 in shape): their ids, names, roles and settings, and what the relay says of them.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;
use uuid::Uuid;

use crate::event::Event;
use crate::id::PublicKey;

/// The longest life of a channel without messages, in seconds.
pub const MAX_TTL_SECONDS: u32 = i32::MAX as u32;
/// The most others that one direct conversation is opened with.
pub const MAX_DM_OTHERS: usize = 8;

/// A channel's id: a UUID, written with hyphens in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(Uuid);

/// A text that is none of what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// No UUID.
    #[error("a channel id must be a UUID, got {0:?}")]
    Id(String),
    /// Nothing is left of a name.
    #[error("the channel name {0:?} has nothing but # and blanks; give it letters")]
    Name(String),
    /// A word that is none of a list.
    #[error("unknown {what} {got:?}; use one of {choices}")]
    Word {
        /// What the word names.
        what: &'static str,
        /// The word.
        got: String,
        /// What it may be.
        choices: String,
    },
}

impl ChannelId {
    /// A new id from 16 random bytes.
    pub fn from_random(bytes: [u8; 16]) -> Self {
        Self(uuid::Builder::from_random_bytes(bytes).into_uuid())
    }

    /// The channel that an event names: the first `h` value that is a UUID.
    pub fn of(event: &Event) -> Option<Self> {
        event.tag_values("h").find_map(|value| value.parse().ok())
    }

    /// The bytes, for use as a key.
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// The id with these bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }
}

impl fmt::Display for ChannelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ChannelId {
    type Err = ChannelError;

    /// Reads a UUID in any of its written forms.
    fn from_str(text: &str) -> Result<Self, ChannelError> {
        Uuid::parse_str(text).map(Self).map_err(|_| ChannelError::Id(text.chars().take(80).collect()))
    }
}

/// A channel's name as it is stored: without the `#` and blanks before it and the blanks behind it.
pub fn clean_name(name: &str) -> Result<&str, ChannelError> {
    let clean = name.trim_start_matches(|sign: char| sign == '#' || sign.is_whitespace()).trim_end();
    match clean {
        "" => Err(ChannelError::Name(name.chars().take(80).collect())),
        _ => Ok(clean),
    }
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $what:literal, { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = ChannelError;

            fn from_str(text: &str) -> Result<Self, ChannelError> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(ChannelError::Word {
                        what: $what,
                        got: text.chars().take(80).collect(),
                        choices: [$($word),+].join(", "),
                    }),
                }
            }
        }
    };
}

words! {
    /// What a member may do.
    Role, "role", {
        /// Everything, deleting the channel too.
        Owner = "owner",
        /// Settings and members.
        Admin = "admin",
        /// Reading and writing.
        Member = "member",
        /// As a member, lower in rank.
        Guest = "guest",
        /// An agent; outside the ladder.
        Bot = "bot",
    }
}

words! {
    /// Who may see a channel and join it.
    Visibility, "visibility", {
        /// Everybody.
        Open = "open",
        /// Members.
        Private = "private",
    }
}

words! {
    /// What a channel is for.
    ChannelType, "channel type", {
        /// A conversation.
        Stream = "stream",
        /// Posts with comments.
        Forum = "forum",
        /// A direct conversation.
        Dm = "dm",
        /// Where a workflow runs.
        Workflow = "workflow",
    }
}

words! {
    /// Who may add an agent to channels.
    AddPolicy, "add policy", {
        /// Everybody.
        Anyone = "anyone",
        /// The agent's owner.
        OwnerOnly = "owner_only",
        /// The agent itself.
        Nobody = "nobody",
    }
}

impl Role {
    /// The height in the ladder: owner 4, admin 3, member 2, guest 1, bot 0.
    pub const fn rank(self) -> u8 {
        match self {
            Self::Owner => 4,
            Self::Admin => 3,
            Self::Member => 2,
            Self::Guest => 1,
            Self::Bot => 0,
        }
    }

    /// Whether the role manages members and settings.
    pub const fn is_manager(self) -> bool {
        self.rank() >= Self::Admin.rank()
    }
}

impl AddPolicy {
    /// Reads the content of an agent's profile, kind 10100.
    pub fn of_profile(content: &str) -> Result<Self, ChannelError> {
        let profile: Value = serde_json::from_str(content).unwrap_or_default();
        profile["channel_add_policy"].as_str().unwrap_or_default().parse()
    }

    /// The content of an agent's profile that says this.
    pub fn to_profile(self) -> String {
        serde_json::json!({ "channel_add_policy": self.as_str() }).to_string()
    }
}

/// What the relay says of a channel, kind 39000. What is absent was not said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// The `d` tag: the channel's id, as the relay writes it.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it is about.
    pub about: Option<String>,
    /// Who sees it. On the wire an open channel is called `public` here.
    pub visibility: Option<Visibility>,
    /// Whether it is kept out of lists, as direct conversations are.
    pub is_hidden: bool,
    /// What it is for.
    pub channel_type: Option<ChannelType>,
    /// What is talked of now.
    pub topic: Option<String>,
    /// What it is good for.
    pub purpose: Option<String>,
    /// Whether nothing can be written to it.
    pub is_archived: bool,
    /// How long it lives after its last message, in seconds.
    pub ttl_seconds: Option<u32>,
    /// When it ends unless something is written, RFC 3339.
    pub ttl_deadline: Option<String>,
    /// The model that agents are asked to use in it.
    pub model: Option<String>,
    /// Who talks in it, if it is a direct conversation.
    pub participants: Vec<PublicKey>,
}

impl Metadata {
    /// Reads the tags of an event of kind 39000; nothing without an id and a name.
    pub fn of(event: &Event) -> Option<Self> {
        let text = |name| event.tag_value(name).map(str::to_owned);
        let has = |name| event.tags_named(name).next().is_some();
        Some(Self {
            id: text("d")?,
            name: text("name")?,
            about: text("about"),
            visibility: match (has("private"), has("public")) {
                (true, _) => Some(Visibility::Private),
                (false, true) => Some(Visibility::Open),
                (false, false) => None,
            },
            is_hidden: has("hidden"),
            channel_type: event.tag_value("t").and_then(|word| word.parse().ok()),
            topic: text("topic"),
            purpose: text("purpose"),
            is_archived: event.tag_value("archived") == Some("true"),
            ttl_seconds: event.tag_value("ttl").and_then(|seconds| seconds.parse().ok()),
            ttl_deadline: text("ttl_deadline"),
            model: text("model"),
            participants: valid_keys(event).map(|(key, _)| key).collect(),
        })
    }
}

/// A member of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Who.
    pub pubkey: PublicKey,
    /// As what; nothing for a role that is not known here.
    pub role: Option<Role>,
}

/// The owners and admins in an event of kind 39001, whose roles are element 2.
pub fn admins(event: &Event) -> Vec<Member> {
    with_roles(event, 2)
}

/// The members in an event of kind 39002, whose roles are element 3. Without one it is `member`.
pub fn members(event: &Event) -> Vec<Member> {
    with_roles(event, 3)
}

fn with_roles(event: &Event, element: usize) -> Vec<Member> {
    let role = |tag: &[String]| match tag.get(element).map(String::as_str) {
        None | Some("") => Some(Role::Member),
        Some(word) => word.parse().ok(),
    };
    valid_keys(event).map(|(pubkey, tag)| Member { pubkey, role: role(tag) }).collect()
}

fn valid_keys(event: &Event) -> impl Iterator<Item = (PublicKey, &[String])> {
    event.tags_named("p").filter_map(|tag| Some((tag.get(1)?.parse().ok()?, tag.as_slice())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Draft, Keys};

    fn event(kind: u16, tags: &[&[&str]]) -> Event {
        let draft = tags.iter().fold(Draft::new(kind, "", 1), |draft, tag| draft.tag(tag.iter().copied()));
        Keys::generate().sign(draft)
    }

    #[test]
    fn a_name_loses_its_signs_and_blanks_and_nothing_else() {
        for (name, wanted) in [("##  general ", "general"), ("a#b", "a#b"), ("# # x y", "x y"), ("é", "é")]
        {
            assert_eq!(clean_name(name), Ok(wanted));
        }
        for name in ["", "#", "# #", " \t"] {
            assert_eq!(clean_name(name), Err(ChannelError::Name(name.to_owned())));
        }
    }

    #[test]
    fn an_id_reads_any_form_and_prints_one() {
        let plain = "00112233-4455-4677-8899-aabbccddeeff";
        let braced = format!("{{{}}}", plain.to_uppercase());
        for text in [plain, &plain.to_uppercase(), &plain.replace('-', ""), &braced] {
            let id: ChannelId = text.parse().unwrap();
            assert_eq!(id.to_string(), plain);
            assert_eq!(ChannelId::from_bytes(*id.as_bytes()), id);
        }
        assert_eq!("general".parse::<ChannelId>(), Err(ChannelError::Id("general".to_owned())));
        assert_eq!(&ChannelId::from_random([255; 16]).to_string()[14..15], "4");
    }

    #[test]
    fn the_first_h_that_is_a_uuid_is_the_channel() {
        let id = "00112233-4455-4677-8899-aabbccddeeff";
        let named =
            event(9, &[&["h"], &["h", "x"], &["h", id], &["h", "11112233-4455-4677-8899-aabbccddeeff"]]);
        assert_eq!(ChannelId::of(&named), id.parse().ok());
        assert_eq!(ChannelId::of(&event(9, &[&["h", "x"]])), None);
    }

    #[test]
    fn each_word_survives_its_text_and_others_are_refused_with_the_choices() {
        for role in Role::ALL {
            assert_eq!(role.as_str().parse(), Ok(*role));
        }
        for policy in AddPolicy::ALL {
            assert_eq!(AddPolicy::of_profile(&policy.to_profile()), Ok(*policy));
        }
        let error = "Owner".parse::<Role>().unwrap_err().to_string();
        assert_eq!(error, "unknown role \"Owner\"; use one of owner, admin, member, guest, bot");
        assert!("public".parse::<Visibility>().is_err() && "voice".parse::<ChannelType>().is_err());
        for content in ["", "{}", "[]", r#"{"channel_add_policy":"all"}"#, r#"{"channel_add_policy":1}"#] {
            assert!(AddPolicy::of_profile(content).is_err(), "{content}");
        }
    }

    #[test]
    fn roles_are_a_ladder_with_the_bot_outside() {
        let ranks: Vec<_> = Role::ALL.iter().map(|role| role.rank()).collect();
        assert_eq!(ranks, [4, 3, 2, 1, 0]);
        assert!(Role::Owner.is_manager() && Role::Admin.is_manager() && !Role::Member.is_manager());
    }

    #[test]
    fn metadata_reads_what_was_said_and_leaves_the_rest_open() {
        let key = Keys::generate().public_key();
        let full = event(
            39000,
            &[
                &["d", "c1"],
                &["name", "general"],
                &["private"],
                &["hidden"],
                &["closed"],
                &["p", &key.to_hex()],
                &["t", "dm"],
                &["archived", "true"],
                &["ttl", "60"],
            ],
        );
        let read = Metadata::of(&full).unwrap();
        assert_eq!((read.visibility, read.channel_type), (Some(Visibility::Private), Some(ChannelType::Dm)));
        assert_eq!((read.ttl_seconds, read.participants), (Some(60), vec![key]));
        assert!(read.is_hidden && read.is_archived);
        let bare = Metadata::of(&event(39000, &[&["d", "c"], &["name", "n"], &["archived", "1"]])).unwrap();
        assert!(!bare.is_archived && bare.visibility.is_none() && bare.topic.is_none());
        let public = Metadata::of(&event(39000, &[&["d", "c"], &["name", "n"], &["public"]])).unwrap();
        assert_eq!(public.visibility, Some(Visibility::Open));
    }

    #[test]
    fn metadata_without_id_or_name_is_none() {
        assert_eq!(Metadata::of(&event(39000, &[&["d", "c"]])), None);
        assert_eq!(Metadata::of(&event(39000, &[&["name", "n"]])), None);
    }

    #[test]
    fn the_role_is_element_two_of_admins_and_three_of_members() {
        let key = Keys::generate().public_key();
        let (upper, role) = (key.to_hex().to_uppercase(), Some(Role::Admin));
        let list = admins(&event(39001, &[&["d", "c"], &["p", &upper, "admin"], &["p", "x", "owner"]]));
        assert_eq!(list, [Member { pubkey: key, role }]);
        let list =
            members(&event(39002, &[&["p", &upper, "", "admin"], &["p", &upper], &["p", &upper, "", "q"]]));
        let roles: Vec<_> = list.iter().map(|member| member.role).collect();
        assert_eq!(roles, [role, Some(Role::Member), None]);
    }
}
