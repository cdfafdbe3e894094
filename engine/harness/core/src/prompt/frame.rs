//! How the events of a batch are framed: plain, or as what came into a cancelled turn.

use super::{event_block, Asked};
use crate::queue::{Queued, Why};

/// The heading over what came, when a turn was cancelled for it.
pub(super) fn new_heading(why: Why, events: usize) -> String {
    match (why, events) {
        (Why::Steer, 1) => "[New message \u{2014} arrived while you were working]".to_owned(),
        (Why::Steer, n) => {
            format!("[New messages \u{2014} arrived while you were working \u{2014} {n} events]")
        }
        (Why::Interrupt, 1) => "[New request \u{2014} supersedes previous]".to_owned(),
        (Why::Interrupt, n) => format!("[New request \u{2014} supersedes previous \u{2014} {n} events]"),
    }
}

fn prior_heading(why: Why) -> &'static str {
    match why {
        Why::Steer => "[What you were working on]",
        Why::Interrupt => "[Previous request \u{2014} interrupted before completion]",
    }
}

/// What to make of it.
pub(super) fn closing_note(why: Why) -> &'static str {
    match why {
        Why::Steer => {
            "Note: this message came while you were at work. If it bears on what you are doing, go on and take it \
             into account; otherwise acknowledge it in a few words and carry on with your work."
        }
        Why::Interrupt => {
            "Note: your previous request was interrupted and you did not finish it. Do what the new request asks; \
             you may acknowledge that the previous one was given up."
        }
    }
}

/// The sections of the batch's events.
pub(super) fn event_sections(asked: &Asked) -> Vec<String> {
    let batch = asked.batch;
    if batch.cancelled.is_empty() {
        return vec![plain(asked)];
    }
    let why = batch.why.unwrap_or(Why::Steer);
    vec![
        numbered(asked, prior_heading(why), &batch.cancelled),
        numbered(asked, &new_heading(why, batch.events.len()), &batch.events),
        closing_note(why).to_owned(),
    ]
}

fn plain(asked: &Asked) -> String {
    match asked.batch.events.as_slice() {
        [one] => {
            let block = event_block::of(&one.event, &asked.place, asked.people);
            format!("[Buzz event: {}]\n{block}", one.tag)
        }
        several => numbered(asked, &format!("[Buzz events \u{2014} {} events]", several.len()), several),
    }
}

fn numbered(asked: &Asked, heading: &str, events: &[Queued]) -> String {
    let mut text = heading.to_owned();
    for (at, queued) in events.iter().enumerate() {
        let block = event_block::of(&queued.event, &asked.place, asked.people);
        text.push_str(&format!("\n\n--- Event {} ({}) ---\n{block}", at + 1, queued.tag));
    }
    text
}
