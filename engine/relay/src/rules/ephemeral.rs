//! Events that are passed on and never stored (kinds 20000 to 29999).

use waxlog_nostr::channel::ChannelId;
use waxlog_nostr::kind::{OBSERVER_FRAME, PRESENCE};
use waxlog_nostr::observer::{check_envelope, Direction};
use waxlog_nostr::{Event, PublicKey};

use super::{invalid, refused, Judged};
use crate::asker::Asker;
use crate::reply::NOT_A_MEMBER;
use crate::state::State;

/// What happens with an event that is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    /// It goes to the subscriptions of a channel, or to global ones.
    On(Option<ChannelId>),
    /// It goes to global subscriptions, if this agent has not sent too many of its kind.
    Telemetry(PublicKey),
    /// It is said to be taken and goes nowhere.
    Nowhere,
}

/// Where a checked ephemeral event goes.
pub(crate) fn judge(event: &Event, asker: &Asker, state: &State, now: u64) -> Judged<Pass> {
    match event.kind {
        OBSERVER_FRAME => observer_frame(event, asker, state, now),
        PRESENCE => Ok(Pass::On(None)),
        _ => match ChannelId::of(event) {
            Some(channel) if !state.admits(&channel, &event.pubkey) => Err(refused(NOT_A_MEMBER)),
            channel => Ok(Pass::On(channel)),
        },
    }
}

fn observer_frame(event: &Event, asker: &Asker, state: &State, now: u64) -> Judged<Pass> {
    let envelope = check_envelope(event, now).map_err(invalid)?;
    if !envelope.is_labelled {
        return Ok(Pass::Nowhere);
    }
    let by_session = envelope.direction == Direction::Telemetry && asker.owner == Some(envelope.owner);
    if !by_session && !state.owns(&envelope.owner, &envelope.agent) {
        return Err(refused("restricted: observer frame is not authorized for this agent owner"));
    }
    Ok(match envelope.direction {
        Direction::Telemetry => Pass::Telemetry(envelope.agent),
        Direction::Control => Pass::On(None),
    })
}

/// The status that a presence event gives: its content, or the `status` of a JSON object, cut to what is
/// kept.
pub(crate) fn status(content: &str) -> String {
    let object: Option<serde_json::Value> = serde_json::from_str(content).ok();
    let status = object.as_ref().and_then(|object| object.get("status")?.as_str()).unwrap_or(content);
    let mut end = status.len().min(MAX_STATUS_BYTES);
    while !status.is_char_boundary(end) {
        end -= 1;
    }
    status[..end].to_owned()
}

/// How much of a status is kept, in bytes.
const MAX_STATUS_BYTES: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_the_content_or_its_json_form_cut_at_a_character() {
        assert_eq!(status("online"), "online");
        assert_eq!(status("{\"status\":\"away\"}"), "away");
        assert_eq!(status("{\"other\":1}"), "{\"other\":1}");
        assert_eq!(status(&"é".repeat(100)), "é".repeat(64));
        assert_eq!(status(&format!("x{}", "é".repeat(100))).len(), 127);
    }
}
