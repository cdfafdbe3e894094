//! What an agent is told: the system prompt of a session, and the blocks of each prompt.

mod canvas;
pub mod context;
mod event_block;
mod frame;
mod people;
mod place;
mod slash;
mod system;
#[cfg(test)]
mod tests;

use waxlog_nostr::PublicKey;

use crate::queue::{Batch, Queued, Why};
use crate::settings::Prompts;
use context::Context;

pub use canvas::canvas_section;
pub use people::{of_events as people_of, People, Person};
pub use place::{ChannelKind, Place};
pub use system::{heartbeat, memory_nudge, system_prompt, workspace, SystemParts, BASE};

/// The `[Agent Memory]` heading.
pub const MEMORY_HEADING: &str = "[Agent Memory \u{2014} core]";

/// All that a prompt is made of.
pub struct Asked<'a> {
    /// Who is asked.
    pub agent: PublicKey,
    /// What is to be answered.
    pub batch: &'a Batch,
    /// Where.
    pub place: Place<'a>,
    /// What is known of the people in it.
    pub people: &'a People,
    /// What was said before.
    pub context: Option<&'a Context>,
    /// The parts of the system prompt, for an agent that takes none.
    pub legacy: Option<Legacy<'a>>,
}

/// The system prompt's parts that go before each prompt of an agent that takes no system prompt.
pub struct Legacy<'a> {
    /// The texts.
    pub prompts: &'a Prompts,
    /// The section of the agent's memory.
    pub core: Option<&'a str>,
    /// The section of the channel's canvas.
    pub canvas: Option<&'a str>,
}

/// The blocks of a prompt, in their order. Empty for a batch without events.
pub fn blocks(asked: &Asked) -> Vec<String> {
    let Some(last) = asked.batch.last() else { return Vec::new() };
    let mut blocks = Vec::new();
    blocks.extend(slash::command(asked.batch, asked.people));
    if let Some(legacy) = &asked.legacy {
        blocks.extend(system::sections(legacy.prompts));
        blocks.extend(legacy.core.map(str::to_owned));
        blocks.extend(legacy.canvas.map(str::to_owned));
    }
    blocks.push(place::context_section(&asked.place, &last.event, asked.people, asked.context.is_some()));
    blocks.extend(asked.context.map(|context| context.section(asked.people)));
    blocks.extend(frame::event_sections(asked));
    blocks
}

/// The text that brings one message into a running turn.
pub fn steer_text(channel: &str, queued: &Queued) -> String {
    let place = Place { id: channel, name: None, kind: ChannelKind::Unknown };
    let event = event_block::of(&queued.event, &place, &People::default());
    let heading = frame::new_heading(Why::Steer, 1);
    format!("{heading}\n\n[Buzz event: {}]\n{event}\n\n{}", queued.tag, frame::closing_note(Why::Steer))
}

/// RFC 3339 in UTC with `+00:00`.
pub(crate) fn time_text(secs: u64) -> Option<String> {
    // The year 9999: what follows has no form.
    const LAST_SECS: u64 = 253_402_300_799;
    if secs > LAST_SECS {
        return None;
    }
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(secs);
    Some(humantime::format_rfc3339_seconds(time).to_string().replace('Z', "+00:00"))
}

/// RFC 3339 in UTC with milliseconds and `Z`, for a time in milliseconds since 1970.
pub(crate) fn time_ms_text(at_ms: u64) -> String {
    // The year 9999: what follows has no form, and is no time of any clock.
    const LAST_MS: u64 = 253_402_300_799_999;
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_millis(at_ms.min(LAST_MS));
    humantime::format_rfc3339_millis(time).to_string()
}
