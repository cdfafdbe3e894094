//! `notes`: long texts under names, which their authors write anew in place.

mod read;

use serde_json::Value;
use structopt::StructOpt;
use waxlog_nostr::build::note::{self, Change, Header, Slug};
use waxlog_nostr::coordinate::Coordinate;
use waxlog_nostr::engram::head;
use waxlog_nostr::{naddr, Event};

use self::read::{Get, List};
use super::context::{text_or_stdin, Context};
use super::failure::{as_usage, Failure};
use super::output::Output;
use super::settled::settled;

/// The longest text that is taken from stdin, in bytes.
const MAX_INPUT_BYTES: usize = 1024 * 1024;

// Publishes long texts and reads them. (A doc comment here would replace that of the group.)
#[derive(StructOpt)]
#[structopt(after_help = "EXAMPLE:\n    waxlog notes ls --author all")]
pub(crate) enum Notes {
    /// Publishes a note, or a new version of one of yours.
    #[structopt(
        after_help = "EXAMPLE:\n    waxlog notes set --name plan --title 'The Plan' --content - < plan.md"
    )]
    Set(Set),
    /// Shows a note.
    #[structopt(after_help = "EXAMPLE:\n    waxlog notes get --name plan --content-only")]
    Get(Get),
    /// Lists notes, the newest first.
    #[structopt(after_help = "EXAMPLE:\n    waxlog notes ls --author all --tag ci --limit 10")]
    Ls(List),
    /// Deletes a note of yours.
    #[structopt(after_help = "EXAMPLE:\n    waxlog notes rm --name plan")]
    Rm {
        /// What it is called
        #[structopt(long, value_name = "NAME")]
        name: Slug,
    },
}

// (A doc comment here would become the help of the command.)
#[derive(StructOpt)]
pub(crate) struct Set {
    /// What it is called: a-z, 0-9, ., _ and -
    #[structopt(long, value_name = "NAME")]
    name: Slug,
    /// Its title; a new note needs one, an empty one is removed
    #[structopt(long, value_name = "TEXT", allow_hyphen_values = true)]
    title: Option<String>,
    /// What is in it; an empty one is removed
    #[structopt(long, value_name = "TEXT", allow_hyphen_values = true)]
    summary: Option<String>,
    /// A topic, in place of those that it has; may be repeated
    #[structopt(long, value_name = "TOPIC", number_of_values = 1, conflicts_with = "clear-tags")]
    tag: Vec<String>,
    /// Removes all topics
    #[structopt(long)]
    clear_tags: bool,
    /// The text, or - for stdin
    #[structopt(long, value_name = "TEXT", allow_hyphen_values = true)]
    content: String,
    /// Takes an empty stdin
    #[structopt(long)]
    allow_empty: bool,
}

impl Notes {
    pub(crate) fn run(self, context: &Context) -> Result<Output, Failure> {
        match self {
            Notes::Set(set) => set.run(context),
            Notes::Get(get) => get.run(context),
            Notes::Ls(list) => list.run(context),
            Notes::Rm { name } => remove(context, &name),
        }
    }
}

impl Set {
    fn run(self, context: &Context) -> Result<Output, Failure> {
        let content = content(self.content, self.allow_empty)?;
        let topics = match (self.clear_tags, self.tag.is_empty()) {
            (true, _) => Some(Vec::new()),
            (false, true) => None,
            (false, false) => Some(self.tag),
        };
        let address = self.name.of(context.me());
        let old = newest(context, &address)?;
        let change = Change { title: self.title, summary: self.summary, topics };
        let header = change.apply(old.as_ref(), context.now()).map_err(as_usage)?;
        let draft = note::draft(&self.name, &header, &content, context.time_after(old.as_ref()));
        let event = context.sign(draft)?;
        settled(context.submit(&event)?)?;
        Ok(Output::Line(format!(
            "event_id   {}\nnaddr      {}\ncoordinate {address}\nslug       {}\ntitle      {}",
            event.id,
            naddr::encode(&address).map_err(as_usage)?,
            self.name,
            header.title.unwrap_or_default()
        )))
    }
}

fn content(given: String, allow_empty: bool) -> Result<String, Failure> {
    let is_stdin = given == "-";
    let text = text_or_stdin(given)?;
    checked(text, is_stdin, allow_empty)
}

fn checked(text: String, is_stdin: bool, allow_empty: bool) -> Result<String, Failure> {
    if text.len() > MAX_INPUT_BYTES {
        let got = text.len();
        return Err(Failure::Usage(format!("the text has {got} bytes, at most {MAX_INPUT_BYTES} are taken")));
    }
    match is_stdin && text.is_empty() && !allow_empty {
        true => Err(Failure::Usage("stdin is empty; give --allow-empty if that is meant".into())),
        false => Ok(text),
    }
}

/// The version of a note that counts.
fn newest(context: &Context, address: &Coordinate) -> Result<Option<Event>, Failure> {
    Ok(head(&context.query(&[address.filter()])?).cloned())
}

fn remove(context: &Context, name: &Slug) -> Result<Output, Failure> {
    let address = name.of(context.me());
    let Some(old) = newest(context, &address)? else {
        return Err(Failure::NotFound(format!("you have no note {name}; `notes ls` lists yours")));
    };
    let event = context.sign(note::deletion(&address, old.created_at, context.now()))?;
    settled(context.submit(&event)?)?;
    Ok(Output::Line(format!("deleted    {address}\ndeletion   {}", event.id)))
}

/// A note as it is shown.
fn shown(event: &Event) -> Result<Value, Failure> {
    let (address, header) = (Coordinate::of(event), Header::of(event));
    Ok(serde_json::json!({
        "id": event.id,
        "pubkey": event.pubkey,
        "naddr": naddr::encode(&address).map_err(|error| Failure::Other(error.to_string()))?,
        "coordinate": address.to_string(),
        "slug": address.identifier,
        "title": header.title,
        "summary": header.summary,
        "tags": header.topics,
        "published_at": header.published_at,
        "updated_at": event.created_at,
        "content": event.content,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_empty_stdin_is_refused_and_every_text_has_a_limit() {
        assert_eq!(checked(String::new(), false, false).unwrap(), "");
        assert_eq!(checked(String::new(), true, true).unwrap(), "");
        assert!(matches!(checked(String::new(), true, false), Err(Failure::Usage(_))));
        assert!(checked("x".repeat(MAX_INPUT_BYTES), true, false).is_ok());
        let long = checked("x".repeat(MAX_INPUT_BYTES + 1), true, false);
        assert!(matches!(long, Err(Failure::Usage(_))));
    }
}
