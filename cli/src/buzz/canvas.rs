//! `canvas`: the one document that a channel shares.

use structopt::StructOpt;
use waxlog_nostr::build::channel::canvas;
use waxlog_nostr::channel::ChannelId;
use waxlog_nostr::kind::CANVAS;
use waxlog_nostr::Filter;

use super::context::{text_or_stdin, Context};
use super::failure::Failure;
use super::output::Output;

// Reads and writes a channel's document. (A doc comment here would replace that of the group.)
#[derive(StructOpt)]
#[structopt(after_help = "EXAMPLE:\n    waxlog canvas get --channel UUID")]
pub(crate) enum Canvas {
    /// Prints the document, or null.
    #[structopt(after_help = "EXAMPLE:\n    waxlog canvas get --channel UUID")]
    Get {
        /// The channel
        #[structopt(long, value_name = "UUID")]
        channel: ChannelId,
    },
    /// Replaces the document.
    #[structopt(after_help = "EXAMPLE:\n    waxlog canvas set --channel UUID --content - < plan.md")]
    Set {
        /// The channel
        #[structopt(long, value_name = "UUID")]
        channel: ChannelId,
        /// The text; - reads stdin
        #[structopt(long, value_name = "TEXT", allow_hyphen_values = true)]
        content: String,
    },
}

impl Canvas {
    pub(crate) fn run(self, context: &Context) -> Result<Output, Failure> {
        match self {
            Canvas::Get { channel } => {
                let head = context.query(&[head(&channel)])?.into_iter().next();
                Ok(Output::Line(head.map_or("null".to_owned(), |event| event.content)))
            }
            Canvas::Set { channel, content } => {
                let content = text_or_stdin(content)?;
                let now = context.time_past(head(&channel))?;
                context.publish(canvas(&channel, &content, now))
            }
        }
    }
}

/// The documents of a channel, the newest first.
fn head(channel: &ChannelId) -> Filter {
    Filter::new().kinds([CANVAS]).tag('h', [channel.to_string()]).limit(1)
}
