//! Workflows (kind 30620): their definitions are kept for those who run them elsewhere.

use serde_json::json;
use waxlog_nostr::channel::ChannelId;
use waxlog_nostr::Event;

use super::envelope::only;
use super::{invalid, refused, Facts, Judged, Verdict};
use crate::reply::{Reply, NOT_A_MEMBER};

/// A definition is stored and answered with its id.
pub(crate) fn define(mut verdict: Verdict, event: &Event, facts: &Facts<'_>) -> Judged<Verdict> {
    let id = only(event, "d")?;
    if id.parse::<ChannelId>().is_err() {
        return Err(invalid(format!("a workflow's d must be a UUID, got {id:?}")));
    }
    let channel =
        ChannelId::of(event).ok_or_else(|| invalid("a workflow needs an h tag with its channel"))?;
    if !facts.state.admits(&channel, &event.pubkey) {
        return Err(refused(NOT_A_MEMBER));
    }
    verdict.reply = Reply::accepted(format!("response:{}", json!({"workflow_id": id})));
    Ok(verdict)
}
