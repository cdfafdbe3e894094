//! `users`: profiles, presence and status.

mod owned;

use serde_json::{json, Map, Value};
use structopt::StructOpt;
use waxlog_nostr::build::user::{self, Presence, ProfileChange};
use waxlog_nostr::id::HexError;
use waxlog_nostr::kind::{PRESENCE_SNAPSHOT, PROFILE, USER_STATUS};
use waxlog_nostr::{Event, Filter, PublicKey};

use super::context::Context;
use super::failure::{as_usage, Failure};
use super::output::{Format, Output};

/// The most users that are asked for at once.
const MAX_USERS: usize = 200;
/// How many profiles a search by name looks at.
const SEARCHED_PROFILES: usize = 100;

/// A user and the fields of the profile.
pub(crate) type User = (PublicKey, Map<String, Value>);

// Profiles, presence and status. (A doc comment here would replace that of the group.)
#[derive(StructOpt)]
#[structopt(after_help = "EXAMPLE:\n    waxlog users get --name Ann")]
pub(crate) enum Users {
    /// Shows profiles: yours, those of keys, or those of a name.
    #[structopt(after_help = "EXAMPLE:\n    waxlog users get --name Helper --owner me")]
    Get {
        /// Whose; may be repeated [default: yours]
        #[structopt(long, value_name = "HEX", number_of_values = 1, conflicts_with = "name")]
        pubkey: Vec<PublicKey>,
        /// Part of a name
        #[structopt(long, value_name = "TEXT")]
        name: Option<String>,
        /// Of whose agents the name is the whole name: me, hex or npub
        #[structopt(long, value_name = "WHO", requires = "name")]
        owner: Option<String>,
    },
    /// Changes your profile; what is not given stays.
    #[structopt(after_help = "EXAMPLE:\n    waxlog users set-profile --name Ann --about 'keeps bees'")]
    SetProfile {
        /// The name that is shown
        #[structopt(long, value_name = "TEXT")]
        name: Option<String>,
        /// The address of a picture
        #[structopt(long, value_name = "URL")]
        avatar: Option<String>,
        /// Some words
        #[structopt(long, value_name = "TEXT", allow_hyphen_values = true)]
        about: Option<String>,
        /// A name that can be looked up (NIP-05)
        #[structopt(long, value_name = "NAME@HOST")]
        nip05: Option<String>,
    },
    /// Shows who is there.
    #[structopt(after_help = "EXAMPLE:\n    waxlog users presence --pubkeys HEX,HEX")]
    Presence {
        /// Whose, separated by commas
        #[structopt(long, value_name = "LIST", use_delimiter = true, required = true,
            parse(try_from_str = trimmed_key))]
        pubkeys: Vec<PublicKey>,
    },
    /// Says whether you are there; it ends with your last connection.
    #[structopt(after_help = "EXAMPLE:\n    waxlog users set-presence --status away")]
    SetPresence {
        /// online, away or offline
        #[structopt(long)]
        status: Presence,
    },
    /// Says what you are doing.
    #[structopt(after_help = "EXAMPLE:\n    waxlog users set-status --text 'in a meeting' --emoji 📅")]
    SetStatus {
        /// The text
        #[structopt(long, value_name = "TEXT", required_unless = "clear", allow_hyphen_values = true)]
        text: Option<String>,
        /// An emoji beside it
        #[structopt(long, value_name = "EMOJI", requires = "text")]
        emoji: Option<String>,
        /// Takes the status away
        #[structopt(long, conflicts_with_all = &["text", "emoji"])]
        clear: bool,
    },
}

impl Users {
    pub(crate) fn run(self, context: &Context) -> Result<Output, Failure> {
        match self {
            Users::Get { pubkey, name, owner } => get(context, pubkey, name, owner),
            Users::SetProfile { name, avatar, about, nip05 } => {
                let change = ProfileChange {
                    display_name: name.as_deref(),
                    picture: avatar.as_deref(),
                    about: about.as_deref(),
                    nip05: nip05.as_deref(),
                };
                set_profile(context, &change)
            }
            Users::Presence { pubkeys } => presence(context, pubkeys),
            Users::SetPresence { status } => set_presence(context, status),
            Users::SetStatus { text, emoji, clear } => {
                let text = text.filter(|_| !clear);
                let head = Filter::new().kinds([USER_STATUS]).authors([context.me()]);
                let now = context.time_past(head.tag('d', [user::STATUS_IDENTIFIER]))?;
                let draft = user::status(text.as_deref(), emoji.as_deref(), now).map_err(as_usage)?;
                context.publish(draft)
            }
        }
    }
}

fn get(
    context: &Context,
    pubkeys: Vec<PublicKey>,
    name: Option<String>,
    owner: Option<String>,
) -> Result<Output, Failure> {
    let Some(name) = name else { return by_key(context, pubkeys) };
    if name.trim().is_empty() {
        return Err(Failure::Usage("--name is blank; give a part of a name".to_owned()));
    }
    if let Some(owner) = owner {
        return owned::get(context, &name, &owner);
    }
    let wanted = name.trim().to_lowercase();
    let mut users = named(context, name.trim())?;
    users.retain(|(_, profile)| {
        ["display_name", "name"].iter().any(|key| {
            profile
                .get(*key)
                .and_then(Value::as_str)
                .is_some_and(|name| name.to_lowercase().contains(&wanted))
        })
    });
    Ok(list(users, context.format()).into())
}

fn by_key(context: &Context, mut pubkeys: Vec<PublicKey>) -> Result<Output, Failure> {
    if pubkeys.len() > MAX_USERS {
        let count = pubkeys.len();
        return Err(Failure::Usage(format!("{count} keys, at most {MAX_USERS} are taken; ask in parts")));
    }
    if pubkeys.is_empty() {
        pubkeys.push(context.me());
    }
    let count = pubkeys.len();
    let profiles = context.query(&[Filter::new().kinds([PROFILE]).authors(pubkeys).limit(count)])?;
    Ok(list(profiles.iter().filter_map(user), context.format()).into())
}

/// A key of a list, with or without blanks around it.
fn trimmed_key(text: &str) -> Result<PublicKey, HexError> {
    text.trim().parse()
}

/// The users that the relay finds by a name; the relay decides what is like it.
pub(crate) fn named(context: &Context, name: &str) -> Result<Vec<User>, Failure> {
    let profiles = context.query(&[Filter::new().kinds([PROFILE]).search(name).limit(SEARCHED_PROFILES)])?;
    Ok(profiles.iter().filter_map(user).collect())
}

/// The author and fields of a profile, if it holds an object.
fn user(profile: &Event) -> Option<User> {
    Some((profile.pubkey, serde_json::from_str(&profile.content).ok()?))
}

/// The name that is shown of a profile, or nothing.
pub(crate) fn shown_name(profile: &Map<String, Value>) -> &str {
    let name = profile.get("display_name").or_else(|| profile.get("name"));
    name.and_then(Value::as_str).unwrap_or_default()
}

fn list(users: impl IntoIterator<Item = User>, format: Format) -> Value {
    let item = |(pubkey, mut profile): User| match format {
        Format::Compact => json!({"pubkey": pubkey, "display_name": shown_name(&profile)}),
        Format::Json => {
            profile.insert("pubkey".to_owned(), json!(pubkey));
            profile.into()
        }
    };
    users.into_iter().map(item).collect()
}

fn set_profile(context: &Context, change: &ProfileChange<'_>) -> Result<Output, Failure> {
    if *change == ProfileChange::default() {
        let text = "nothing to change; give --name, --avatar, --about or --nip05";
        return Err(Failure::Usage(text.to_owned()));
    }
    let head = context.first(Filter::new().kinds([PROFILE]).authors([context.me()]))?;
    let now = context.time_after(head.as_ref());
    context.publish(user::profile(head.as_ref(), change, now))
}

fn presence(context: &Context, pubkeys: Vec<PublicKey>) -> Result<Output, Failure> {
    let snapshots = context.query(&[Filter::new().kinds([PRESENCE_SNAPSHOT]).authors(pubkeys)])?;
    let items = snapshots.iter().map(
        |event| json!({"pubkey": subject(event), "status": event.content, "updated_at": event.created_at}),
    );
    Ok(Value::from(items.collect::<Vec<_>>()).into())
}

/// Whose presence an event tells: it may be signed by the relay.
fn subject(event: &Event) -> String {
    event.tag_value("p").map_or_else(|| event.pubkey.to_hex(), str::to_owned)
}

fn set_presence(context: &Context, presence: Presence) -> Result<Output, Failure> {
    context.publish_over_socket(user::presence(presence, context.now()))
}

#[cfg(test)]
mod tests {
    use waxlog_nostr::{Draft, Keys};

    use super::*;

    #[test]
    fn a_user_is_the_profile_with_the_key_and_a_compact_one_the_name() {
        let keys = Keys::generate();
        let profile = keys.sign(Draft::new(PROFILE, r#"{"name":"ann","about":"x"}"#, 1));
        let users = || user(&profile);
        let key = keys.public_key();
        assert_eq!(list(users(), Format::Json), json!([{"name": "ann", "about": "x", "pubkey": key}]));
        assert_eq!(list(users(), Format::Compact), json!([{"pubkey": key, "display_name": "ann"}]));
        assert_eq!(user(&keys.sign(Draft::new(PROFILE, "[]", 1))), None);
    }

    #[test]
    fn presence_is_of_the_one_that_is_named_else_of_the_author() {
        let (relay, user) = (Keys::generate(), Keys::generate().public_key().to_hex());
        let draft = Draft::new(PRESENCE_SNAPSHOT, "online", 1);
        assert_eq!(subject(&relay.sign(draft.clone())), relay.public_key().to_hex());
        assert_eq!(subject(&relay.sign(draft.tag(["p", &user]))), user);
    }
}
