//! Finding notes: by address, by name, by author.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::Value;
use structopt::StructOpt;
use waxlog_nostr::build::note::{Header, Slug};
use waxlog_nostr::engram::head;
use waxlog_nostr::kind::LONG_FORM;
use waxlog_nostr::{naddr, Event, Filter, PublicKey};

use super::{newest, shown};
use crate::buzz::context::Context;
use crate::buzz::failure::{as_usage, Failure};
use crate::buzz::messages::author_of;
use crate::buzz::output::Output;

/// The most notes that are listed.
const MAX_LISTED: usize = 200;

// (A doc comment on these would become the help of the commands.)
#[derive(StructOpt)]
pub(crate) struct Get {
    /// Its address
    #[structopt(long, value_name = "NADDR", conflicts_with_all = &["name", "author", "latest"])]
    naddr: Option<String>,
    /// What it is called
    #[structopt(long, value_name = "NAME", required_unless = "naddr")]
    name: Option<Slug>,
    /// Whose: me, a key or a user's name
    #[structopt(long, value_name = "WHO", conflicts_with = "latest")]
    author: Option<String>,
    /// The newest, if several authors have a note of this name
    #[structopt(long)]
    latest: bool,
    /// Prints the text and nothing else
    #[structopt(long)]
    content_only: bool,
}

#[derive(StructOpt)]
pub(crate) struct List {
    /// Whose: me, all, a key or a user's name
    #[structopt(long, value_name = "WHO", default_value = "me")]
    author: String,
    /// Only with this topic
    #[structopt(long, value_name = "TOPIC")]
    tag: Option<String>,
    /// At most so many, up to 200
    #[structopt(long, value_name = "N", default_value = "50")]
    limit: usize,
}

impl Get {
    pub(super) fn run(self, context: &Context) -> Result<Output, Failure> {
        let event = self.find(context)?;
        Ok(match self.content_only {
            true => Output::Bytes(event.content.into_bytes()),
            false => Output::Pretty(shown(&event)?),
        })
    }

    fn find(&self, context: &Context) -> Result<Event, Failure> {
        match (&self.naddr, &self.name, &self.author) {
            (Some(text), _, _) => at(context, text),
            (None, Some(name), Some(author)) => {
                let address = name.of(who(context, author)?);
                newest(context, &address)?.ok_or_else(|| absent(&address.to_string()))
            }
            (None, Some(name), None) => by_name(context, name, self.latest),
            (None, None, _) => Err(Failure::Usage("say which note: --name or --naddr".into())),
        }
    }
}

fn at(context: &Context, text: &str) -> Result<Event, Failure> {
    let address = naddr::decode(text).map_err(as_usage)?;
    if address.kind != LONG_FORM {
        let kind = address.kind;
        return Err(Failure::Usage(format!(
            "the address is of kind {kind}, a note's is of kind {LONG_FORM}"
        )));
    }
    newest(context, &address)?.ok_or_else(|| absent(&address.to_string()))
}

fn by_name(context: &Context, name: &Slug, latest: bool) -> Result<Event, Failure> {
    let found = context.query(&[Filter::new().kinds([LONG_FORM]).tag('d', [name.as_str()])])?;
    choose(heads(&found), latest)
        .map_err(|several| {
            let lines: Vec<_> = several.iter().map(candidate).collect();
            Failure::Usage(format!(
                "{} authors have a note {name}; give --author or --latest:\n{}",
                several.len(),
                lines.join("\n")
            ))
        })?
        .ok_or_else(|| absent(name.as_str()))
}

/// The version that counts of each author's note.
fn heads(found: &[Event]) -> Vec<Event> {
    let mut by_author: BTreeMap<PublicKey, Vec<&Event>> = BTreeMap::new();
    for event in found {
        by_author.entry(event.pubkey).or_default().push(event);
    }
    by_author.into_values().filter_map(|versions| head(versions).cloned()).collect()
}

/// The only one, or the newest if that is asked for; else all that it could be.
fn choose(mut heads: Vec<Event>, latest: bool) -> Result<Option<Event>, Vec<Event>> {
    match heads.len() {
        0 | 1 => Ok(heads.pop()),
        _ if latest => Ok(head(&heads).cloned()),
        _ => Err(heads),
    }
}

fn candidate(event: &Event) -> String {
    let title = Header::of(event).title.unwrap_or_default();
    format!("{} {} {title}", event.pubkey, event.created_at)
}

fn absent(what: &str) -> Failure {
    Failure::NotFound(format!("there is no note {what}; `notes ls --author all` lists what there is"))
}

fn who(context: &Context, text: &str) -> Result<PublicKey, Failure> {
    match text {
        "me" => Ok(context.me()),
        _ => author_of(context, text),
    }
}

impl List {
    pub(super) fn run(self, context: &Context) -> Result<Output, Failure> {
        let mut filter = Filter::new().kinds([LONG_FORM]).limit(self.limit.min(MAX_LISTED));
        if self.author != "all" {
            filter = filter.authors([who(context, &self.author)?]);
        }
        if let Some(topic) = self.tag {
            filter = filter.tag('t', [topic]);
        }
        let mut found = context.query(&[filter])?;
        found.sort_by_key(|event| (Reverse(event.created_at), event.id));
        Ok(Output::Pretty(found.iter().map(shown).collect::<Result<Value, _>>()?))
    }
}

#[cfg(test)]
mod tests {
    use waxlog_nostr::{Draft, Keys};

    use super::*;

    fn note(keys: &Keys, created_at: u64) -> Event {
        keys.sign(Draft::new(LONG_FORM, "", created_at).tag(["d", "plan"]).tag(["title", "The Plan"]))
    }

    #[test]
    fn a_name_of_one_author_is_clear_whatever_the_versions() {
        let ann = Keys::generate();
        let versions = [note(&ann, 5), note(&ann, 7), note(&ann, 6)];
        assert_eq!(choose(heads(&versions), false).unwrap().unwrap().created_at, 7);
        assert_eq!(choose(Vec::new(), true).unwrap(), None);
    }

    #[test]
    fn a_name_of_several_authors_needs_a_choice() {
        let notes = [note(&Keys::generate(), 5), note(&Keys::generate(), 6)];
        let several = choose(heads(&notes), false).unwrap_err();
        assert_eq!(several.len(), 2);
        assert!(candidate(&notes[0]).ends_with("5 The Plan"));
        assert_eq!(choose(heads(&notes), true).unwrap().unwrap(), notes[1]);
    }
}
