//! The agent's core memory, read with its key.

use waxlog_harness_core::record::{HttpOutcome, MemoryFound};
use waxlog_nostr::engram::{self, Body, Memory, Slug};
use waxlog_nostr::{Event, PublicKey};

use crate::effects::Shared;

/// Reads the core memory that the agent keeps with its owner.
pub(crate) async fn read(shared: &Shared, owner: &PublicKey, timeout_ms: u64) -> (MemoryFound, String) {
    let unreadable = || (MemoryFound::Unreadable, String::new());
    let memory = match Memory::of_agent(&shared.config.secrets.keys, owner) {
        Ok(memory) => memory,
        Err(error) => {
            log::warn!("the agent's memory cannot be opened: {error}");
            return unreadable();
        }
    };
    let filter = memory.head_filter(&Slug::core()).to_json();
    let (outcome, raw, _) = shared.http.ask("/query", &[filter], timeout_ms, 0, 0).await;
    if !matches!(outcome, HttpOutcome::Answered { status: 200 }) {
        log::warn!("the agent's memory could not be asked for: {outcome:?}");
        return unreadable();
    }
    let Ok(events) = serde_json::from_slice::<Vec<Event>>(&raw) else { return unreadable() };
    let opened: Vec<(&Event, Body)> =
        events.iter().filter_map(|event| Some((event, memory.open(event).ok()?))).collect();
    let Some(head) = engram::head(opened.iter().map(|(event, _)| *event)) else {
        return if events.is_empty() { (MemoryFound::Nothing, String::new()) } else { unreadable() };
    };
    let text = opened.iter().find(|(event, _)| event.id == head.id).and_then(|(_, body)| body.text());
    match text {
        Some(text) => (MemoryFound::Text, text.to_owned()),
        None => (MemoryFound::Nothing, String::new()),
    }
}
