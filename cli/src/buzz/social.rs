//! `social`: what anybody reads: short notes, whom one follows, and lists.

use serde::de::DeserializeOwned;
use structopt::StructOpt;
use waxlog_nostr::build::social::{check_list_kind, contacts, is_named_list, list, note, Contact};
use waxlog_nostr::kind::{CONTACTS, NOTE};
use waxlog_nostr::{Draft, Event, EventId, Filter, PublicKey};

use super::context::Context;
use super::failure::{as_usage, Failure};
use super::output::{raw_list, Output};

/// The most notes of a page.
const MAX_NOTES: usize = 100;
/// How many versions or lists are shown.
const SHOWN_LISTS: usize = 10;

// Publishes notes, contacts and lists. (A doc comment here would replace that of the group.)
#[derive(StructOpt)]
#[structopt(after_help = "EXAMPLE:\n    waxlog social publish --content 'hello world'")]
pub(crate) enum Social {
    /// Publishes a short note.
    #[structopt(after_help = "EXAMPLE:\n    waxlog social publish --content 'hello world'")]
    Publish {
        /// The text
        #[structopt(long, value_name = "TEXT", allow_hyphen_values = true)]
        content: String,
        /// The note that it answers
        #[structopt(long, value_name = "ID")]
        reply_to: Option<EventId>,
    },
    /// Sets whom you follow, in place of all that you followed.
    #[structopt(
        after_help = "EXAMPLE:\n    waxlog social set-contacts --contacts '[{\"pubkey\":\"HEX\",\"petname\":\"ann\"}]'"
    )]
    SetContacts {
        /// A JSON list of {"pubkey","relay_url","petname"}
        #[structopt(long, value_name = "JSON")]
        contacts: String,
    },
    /// Shows an event.
    #[structopt(after_help = "EXAMPLE:\n    waxlog social event --event ID")]
    Event {
        /// The event
        #[structopt(long, value_name = "ID")]
        event: EventId,
    },
    /// Lists the short notes of somebody, the newest first.
    #[structopt(after_help = "EXAMPLE:\n    waxlog social notes --pubkey HEX --limit 10")]
    Notes {
        /// Whose
        #[structopt(long, value_name = "PUBKEY")]
        pubkey: PublicKey,
        /// At most so many, up to 100
        #[structopt(long, value_name = "N", default_value = "50")]
        limit: usize,
        /// Not newer than this, in seconds since 1970
        #[structopt(long, value_name = "TIME")]
        before: Option<u64>,
        /// With --before: of the notes of that second those after this one
        #[structopt(long, value_name = "ID")]
        before_id: Option<EventId>,
    },
    /// Shows whom somebody follows.
    #[structopt(after_help = "EXAMPLE:\n    waxlog social contacts --pubkey HEX")]
    Contacts {
        /// Who
        #[structopt(long, value_name = "PUBKEY")]
        pubkey: PublicKey,
    },
    /// Sets a list: 10000 mutes, 10001 pins, 10002 relays, 10003 bookmarks, 30000 people, 30003 bookmarks.
    #[structopt(
        after_help = "EXAMPLE:\n    waxlog social set-list --kind 30000 --tags '[[\"d\",\"friends\"],[\"p\",\"HEX\"]]'"
    )]
    SetList {
        /// The kind
        #[structopt(long, value_name = "KIND")]
        kind: u16,
        /// The tags as JSON; a list of kind 30000 or 30003 has a d tag
        #[structopt(long, value_name = "JSON")]
        tags: String,
        /// A text
        #[structopt(
            long,
            value_name = "TEXT",
            allow_hyphen_values = true,
            default_value = "",
            hide_default_value = true
        )]
        content: String,
    },
    /// Shows the lists of somebody.
    #[structopt(after_help = "EXAMPLE:\n    waxlog social list --pubkey HEX --kind 30000 --d-tag friends")]
    List {
        /// Whose
        #[structopt(long, value_name = "PUBKEY")]
        pubkey: PublicKey,
        /// The kind
        #[structopt(long, value_name = "KIND")]
        kind: u16,
        /// The name of a list of kind 30000 or 30003
        #[structopt(long, value_name = "NAME")]
        d_tag: Option<String>,
    },
}

impl Social {
    pub(crate) fn run(self, context: &Context) -> Result<Output, Failure> {
        match self {
            Social::Publish { content, reply_to } => {
                context.publish(note(&content, reply_to.as_ref(), context.now())?)
            }
            Social::SetContacts { contacts } => set_contacts(context, &contacts),
            Social::Event { event } => found(context, Filter::new().ids([event])),
            Social::Notes { pubkey, limit, before, before_id } => {
                let mut filter = Filter::new().kinds([NOTE]).authors([pubkey]).limit(limit.min(MAX_NOTES));
                filter.until = before;
                if let Some(id) = before_id {
                    filter = filter.extension("before_id", id.to_hex());
                }
                found(context, filter)
            }
            Social::Contacts { pubkey } => {
                found(context, Filter::new().kinds([CONTACTS]).authors([pubkey]).limit(1))
            }
            Social::SetList { kind, tags, content } => set_list(context, kind, &tags, &content),
            Social::List { pubkey, kind, d_tag } => show_list(context, pubkey, kind, d_tag),
        }
    }
}

fn found(context: &Context, filter: Filter) -> Result<Output, Failure> {
    let events: Vec<Event> = context.query(&[filter])?;
    Ok(raw_list(&events).into())
}

fn parse<T: DeserializeOwned>(flag: &str, wanted: &str, text: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|error| as_usage(format!("{flag} must be {wanted}: {error}")))
}

fn set_contacts(context: &Context, text: &str) -> Result<Output, Failure> {
    let wanted = "a JSON list of {\"pubkey\",\"relay_url\",\"petname\"}";
    let given: Vec<Contact> = parse("--contacts", wanted, text)?;
    // What cannot be built is told before the relay is asked for the version that it replaces.
    let draft = contacts(&given, context.now())?;
    let created_at = context.time_past(Filter::new().kinds([CONTACTS]).authors([context.me()]))?;
    context.publish(Draft { created_at, ..draft })
}

fn set_list(context: &Context, kind: u16, tags: &str, content: &str) -> Result<Output, Failure> {
    let tags: Vec<Vec<String>> = parse("--tags", "a JSON list of lists of texts", tags)?;
    let draft = list(kind, tags, content, context.now()).map_err(as_usage)?;
    let mut head = Filter::new().kinds([kind]).authors([context.me()]);
    if is_named_list(kind) {
        let is_name = |tag: &&Vec<String>| tag.first().is_some_and(|name| name == "d");
        let name = draft.tags.iter().find(is_name).and_then(|tag| tag.get(1));
        head = head.tag('d', name);
    }
    let created_at = context.time_past(head)?;
    Ok(context.send(Draft { created_at, ..draft })?.into())
}

fn show_list(
    context: &Context,
    pubkey: PublicKey,
    kind: u16,
    name: Option<String>,
) -> Result<Output, Failure> {
    check_list_kind(kind).map_err(as_usage)?;
    let mut filter = Filter::new().kinds([kind]).authors([pubkey]).limit(SHOWN_LISTS);
    match name {
        Some(_) if !is_named_list(kind) => {
            return Err(Failure::Usage(format!("--d-tag is for the kinds 30000 and 30003, not for {kind}")));
        }
        Some(name) => filter = filter.tag('d', [name]),
        None => {}
    }
    found(context, filter)
}
