//! `channels list`, `get` and `search`: what the relay says of channels.

use serde_json::{json, Value};
use structopt::StructOpt;
use waxlog_nostr::channel::{ChannelId, Metadata, Visibility};
use waxlog_nostr::kind::{CHANNEL_MEMBERS, CHANNEL_METADATA};
use waxlog_nostr::{Event, Filter};

use super::super::context::{Context, PAGE_EVENTS};
use super::super::failure::Failure;
use super::super::output::{Format, Output};

// (Doc comments on these structs would replace those of the commands.)
#[derive(StructOpt)]
pub(crate) struct List {
    /// Only these: open or private
    #[structopt(long, possible_values = &["open", "private"])]
    visibility: Option<Visibility>,
    /// Only those that you are a member of
    #[structopt(long)]
    member: bool,
    /// How many
    #[structopt(long, value_name = "COUNT", default_value = "500")]
    limit: usize,
}

#[derive(StructOpt)]
pub(crate) struct Search {
    /// Part of the name, in any case
    #[structopt(long, value_name = "TEXT")]
    query: String,
    /// Takes the text as the whole name
    #[structopt(long)]
    exact: bool,
    /// Finds archived channels too
    #[structopt(long)]
    include_archived: bool,
    /// How many channels are looked at
    #[structopt(long, value_name = "COUNT", default_value = "1000")]
    limit: usize,
}

impl List {
    pub(super) fn run(self, context: &Context) -> Result<Output, Failure> {
        let all = Filter::new().kinds([CHANNEL_METADATA]);
        let mut events =
            if self.member { own(context, self.limit)? } else { context.pages(&all, self.limit)? };
        if let Some(wanted) = self.visibility {
            events.retain(|event| is_visible_as(event, wanted));
        }
        let items = events.iter().map(|event| match context.format() {
            Format::Json => summary(event),
            Format::Compact => {
                json!({"channel_id": event.identifier(), "name": event.tag_value("name").unwrap_or_default()})
            }
        });
        Ok(Value::from(items.collect::<Vec<_>>()).into())
    }
}

/// What the relay says of the channels that one is a member of.
fn own(context: &Context, limit: usize) -> Result<Vec<Event>, Failure> {
    let filter = Filter::new().kinds([CHANNEL_MEMBERS]).tag('p', [context.me().to_hex()]);
    let lists = context.pages(&filter, limit)?;
    let ids: Vec<_> = lists.iter().map(Event::identifier).collect();
    let mut events = Vec::new();
    for some in ids.chunks(PAGE_EVENTS) {
        let filter = Filter::new().kinds([CHANNEL_METADATA]).tag('d', some.iter().copied());
        events.extend(context.query(&[filter.limit(some.len())])?);
    }
    Ok(events)
}

/// Whether the relay marks a channel as open or private: a tag of one element.
fn is_visible_as(event: &Event, visibility: Visibility) -> bool {
    let mark = match visibility {
        Visibility::Open => "public",
        Visibility::Private => "private",
    };
    event.tags.iter().any(|tag| *tag == [mark])
}

fn summary(event: &Event) -> Value {
    json!({
        "channel_id": event.identifier(),
        "name": event.tag_value("name").unwrap_or_default(),
        "description": event.tag_value("about").unwrap_or_default(),
        "created_at": event.created_at,
    })
}

pub(super) fn get(context: &Context, channel: &ChannelId) -> Result<Output, Failure> {
    let filter = Filter::new().kinds([CHANNEL_METADATA]).tag('d', [channel.to_string()]);
    let found = context.first(filter)?.map(|event| {
        let mut summary = summary(&event);
        summary["pubkey"] = json!(event.pubkey);
        summary
    });
    Ok(Value::from(found).into())
}

impl Search {
    pub(super) fn run(self, context: &Context) -> Result<Output, Failure> {
        let wanted = self.query.trim().to_ascii_lowercase();
        if wanted.is_empty() {
            return Err(Failure::Usage("--query is blank; give a part of a channel's name".to_owned()));
        }
        let events = context.pages(&Filter::new().kinds([CHANNEL_METADATA]), self.limit)?;
        let mut found: Vec<_> = events.iter().filter_map(Metadata::of).collect();
        found.retain(|channel| {
            let name = channel.name.to_ascii_lowercase();
            let fits = if self.exact { name == wanted } else { name.contains(&wanted) };
            fits && (self.include_archived || !channel.is_archived)
        });
        found.sort_by(|one, other| (&one.name, &one.id).cmp(&(&other.name, &other.id)));
        Ok(Value::from(found.iter().map(described).collect::<Vec<_>>()).into())
    }
}

/// A channel as a search shows it. Here an open channel is called `public`, as the relay does.
fn described(channel: &Metadata) -> Value {
    let visibility = channel.visibility.map(|visibility| match visibility {
        Visibility::Open => "public",
        Visibility::Private => "private",
    });
    json!({
        "channel_id": channel.id,
        "name": channel.name,
        "channel_type": channel.channel_type.map(|word| word.as_str()),
        "visibility": visibility,
        "archived": channel.is_archived,
        "about": channel.about,
        "topic": channel.topic,
        "purpose": channel.purpose,
    })
}

#[cfg(test)]
mod tests {
    use waxlog_nostr::{Draft, Keys};

    use super::*;

    fn event(tags: &[&[&str]]) -> Event {
        let draft = Draft::new(CHANNEL_METADATA, "", 7);
        Keys::generate().sign(tags.iter().fold(draft, |draft, tag| draft.tag(tag.iter().copied())))
    }

    #[test]
    fn a_summary_has_what_was_said_and_empty_texts_for_the_rest() {
        let summary = summary(&event(&[&["d", "c"], &["name", "n"]]));
        assert_eq!(summary, json!({"channel_id": "c", "name": "n", "description": "", "created_at": 7}));
    }

    #[test]
    fn only_a_mark_of_one_element_is_a_visibility() {
        assert!(is_visible_as(&event(&[&["public"]]), Visibility::Open));
        assert!(is_visible_as(&event(&[&["private"]]), Visibility::Private));
        assert!(!is_visible_as(&event(&[&["public", "x"]]), Visibility::Open));
        assert!(!is_visible_as(&event(&[]), Visibility::Private));
    }

    #[test]
    fn a_found_channel_says_null_for_what_is_absent() {
        let channel = Metadata::of(&event(&[&["d", "c"], &["name", "n"], &["public"], &["archived", "no"]]));
        let wanted = json!({"channel_id": "c", "name": "n", "channel_type": null, "visibility": "public",
            "archived": false, "about": null, "topic": null, "purpose": null});
        assert_eq!(described(&channel.unwrap()), wanted);
    }
}
