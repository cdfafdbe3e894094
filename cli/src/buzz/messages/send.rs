//! `messages send`: a message, a forum post or a comment.
//!
//! Whom it calls is resolved and checked before anything is sent, and what was really signed is printed:
//! `mention_pubkeys` is the proof of who is told.

use std::path::PathBuf;

use serde_json::json;
use structopt::StructOpt;
use waxlog_nostr::build::message::{forum_comment, forum_post, message, Text};
use waxlog_nostr::build::{check_bytes, BuildError, MAX_TEXT_BYTES};
use waxlog_nostr::channel::{members, ChannelId};
use waxlog_nostr::kind::{CHANNEL_MEMBERS, FORUM_COMMENT, FORUM_POST, MESSAGE, PROFILE};
use waxlog_nostr::mention::{MentionError, Mentions, Named};
use waxlog_nostr::thread::Thread;
use waxlog_nostr::{profile, Draft, EventId, Filter, PublicKey};

use super::super::context::{text_or_stdin, Context, PAGE_EVENTS};
use super::super::failure::{as_usage, Failure};
use super::super::output::{written, Output};
use super::super::upload;

// (A doc comment here would replace that of the command.)
#[derive(StructOpt)]
pub(crate) struct Send {
    /// The channel
    #[structopt(long, value_name = "UUID")]
    channel: ChannelId,
    /// The text; - reads stdin
    #[structopt(long, value_name = "TEXT", allow_hyphen_values = true)]
    content: String,
    /// 9 for a message, 45001 for a forum post, 45003 for a comment
    #[structopt(long, value_name = "KIND", default_value = "9")]
    kind: u16,
    /// The message that it answers
    #[structopt(long, value_name = "ID")]
    reply_to: Option<EventId>,
    /// Shows a reply at the top of the channel too
    #[structopt(long)]
    broadcast: bool,
    /// A picture or video to attach; may be repeated
    #[structopt(long, value_name = "PATH", number_of_values = 1)]
    file: Vec<PathBuf>,
    /// Whom it calls, in hex or npub; may be repeated
    #[structopt(long, value_name = "KEY", number_of_values = 1, parse(try_from_str = PublicKey::parse))]
    mention: Vec<PublicKey>,
}

impl Send {
    pub(super) fn run(self, context: &Context) -> Result<Output, Failure> {
        self.check()?;
        let mut content = text_or_stdin(self.content.clone())?;
        check_bytes("the message", &content, MAX_TEXT_BYTES).map_err(as_usage)?;
        let mentions = self.mentions(context, &content)?;
        // Before anything is uploaded: what is uploaded stays on the relay.
        let thread = self.reply_to.map(|parent| thread_under(context, &parent)).transpose()?;
        let mut attachments = Vec::new();
        for file in &self.file {
            let blob = upload::send_file(context, file).map_err(|error| Failure::Other(error.to_string()))?;
            content.push('\n');
            content.push_str(&blob.markdown());
            attachments.push(blob.imeta());
        }
        let text = Text {
            channel: self.channel,
            content: &content,
            mentions: &mentions,
            attachments: &attachments,
            now: context.now(),
        };
        let event = context.sign(self.draft(&text, thread.as_ref())?)?;
        let mut answer = written(&context.submit(&event)?);
        answer["mention_pubkeys"] = json!(event.tag_values("p").collect::<Vec<_>>());
        Ok(answer.into())
    }

    fn check(&self) -> Result<(), Failure> {
        match self.kind {
            MESSAGE | FORUM_POST => Ok(()),
            FORUM_COMMENT if self.reply_to.is_some() => Ok(()),
            FORUM_COMMENT => {
                Err(Failure::Usage("a forum comment answers something: give --reply-to".to_owned()))
            }
            other => Err(Failure::Usage(format!(
                "kind {other} cannot be sent; use 9 (message), 45001 (forum post) or 45003 (forum comment)"
            ))),
        }
    }

    fn draft(&self, text: &Text<'_>, thread: Option<&Thread>) -> Result<Draft, BuildError> {
        match (self.kind, thread) {
            (FORUM_COMMENT, Some(thread)) => forum_comment(text, thread),
            (FORUM_POST, _) => forum_post(text),
            _ => message(text, thread, self.broadcast),
        }
    }

    /// Whom the message calls: members of the channel only.
    fn mentions(&self, context: &Context, content: &str) -> Result<Vec<PublicKey>, Failure> {
        let mentions = Mentions::read(content, &self.mention).map_err(as_usage)?;
        if !mentions.needs_members() {
            return Ok(Vec::new());
        }
        let members = self.members(context)?;
        let names = if mentions.needs_names() { names(context, &members)? } else { Vec::new() };
        mentions.resolve(&members, &names).map_err(|error| self.refused(error))
    }

    fn members(&self, context: &Context) -> Result<Vec<PublicKey>, Failure> {
        let channel = self.channel;
        let filter = Filter::new().kinds([CHANNEL_MEMBERS]).tag('d', [channel.to_string()]);
        let list = context.first(filter).map_err(|error| {
            Failure::Other(format!("the members of {channel} are not known, so nothing was sent: {error}"))
        })?;
        let list = list.ok_or_else(|| {
            Failure::Other(format!("channel {channel} has no members that you may see; nothing was sent"))
        })?;
        Ok(members(&list).into_iter().map(|member| member.pubkey).collect())
    }

    fn refused(&self, error: MentionError) -> Failure {
        let MentionError::NotMembers(missing) = &error else { return as_usage(error) };
        let command = missing
            .first()
            .map(|key| format!("buzz channels add-member --channel {} --pubkey {key}", self.channel));
        let text = json!({
            "message": error.to_string(),
            "missing_member_pubkeys": missing,
            "add_member_command": command,
        });
        Failure::Usage(text.to_string())
    }
}

/// The names that the members' profiles give.
fn names(context: &Context, members: &[PublicKey]) -> Result<Vec<Named>, Failure> {
    let mut names = Vec::new();
    for some in members.chunks(PAGE_EVENTS) {
        let filter = Filter::new().kinds([PROFILE]).authors(some.iter().copied()).limit(some.len());
        let profiles = context.query(&[filter]).map_err(|error| {
            Failure::Other(format!("the members' names are not known, so nothing was sent: {error}"))
        })?;
        names.extend(profiles.iter().map(|event| (event.pubkey, profile::name(&event.content))));
    }
    Ok(names)
}

/// Where a reply to `parent` belongs.
pub(super) fn thread_under(context: &Context, parent: &EventId) -> Result<Thread, Failure> {
    match context.first(Filter::new().ids([*parent]))? {
        Some(parent) => Ok(Thread::under(&parent)),
        None => Err(Failure::Other(format!("event {parent} is not there to be answered"))),
    }
}
