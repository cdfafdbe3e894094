//! The checks that need no state: steps 1 to 9 of the order of ingest, signature included.

use waxlog_nostr::kind::{class, Class, GIFT_WRAP, MEMBER_ADDED, MEMBER_REMOVED, PRESENCE, RELAY_AUTH};
use waxlog_nostr::Event;

use crate::asker::{Asker, Via};
use crate::kinds;
use crate::reply::Reply;

/// How far an event's time may be from the relay's, in seconds.
pub(crate) const MAX_CLOCK_SKEW_SECS: u64 = 900;
/// How much text an event may hold, in bytes.
pub(crate) const MAX_CONTENT_BYTES: usize = 262_144;
/// How long a `d` value may be, in bytes.
pub(crate) const MAX_IDENTIFIER_BYTES: usize = 1024;

/// Why the event is not looked at, if it is not.
pub(crate) fn check(event: &Event, asker: &Asker, now: u64) -> Result<(), Reply> {
    is_for_clients(event, asker)?;
    event.verify().map_err(|error| Reply::refused(format!("invalid: {error}")))?;
    let is_ephemeral = class(event.kind) == Class::Ephemeral;
    if !is_ephemeral && event.created_at.abs_diff(now) > MAX_CLOCK_SKEW_SECS {
        return Err(Reply::refused("invalid: event timestamp too far from server time"));
    }
    if event.content.len() > MAX_CONTENT_BYTES {
        let got = event.content.len();
        let text = format!("invalid: content exceeds maximum size of {MAX_CONTENT_BYTES} bytes (got {got})");
        return Err(Reply::refused(text));
    }
    if event.pubkey != asker.pubkey && event.kind != GIFT_WRAP {
        return Err(Reply::forbidden("invalid: event pubkey does not match authenticated identity"));
    }
    let is_accepted = match is_ephemeral {
        true => asker.via == Via::Socket,
        false => kinds::is_accepted(event.kind),
    };
    if !is_accepted {
        return Err(Reply::refused("restricted: unknown event kind"));
    }
    let longest = event.tag_values("d").map(str::len).max().unwrap_or_default();
    match longest > MAX_IDENTIFIER_BYTES {
        true => Err(Reply::refused(format!(
            "invalid: d tag too long (got {longest} bytes, at most {MAX_IDENTIFIER_BYTES})"
        ))),
        false => Ok(()),
    }
}

/// Whether clients may send this kind in this way.
fn is_for_clients(event: &Event, asker: &Asker) -> Result<(), Reply> {
    match (event.kind, asker.via) {
        (RELAY_AUTH, Via::Socket) => {
            Err(Reply::refused("invalid: AUTH events cannot be submitted via EVENT"))
        }
        (RELAY_AUTH, Via::Http) => Err(Reply::refused("invalid: AUTH events cannot be submitted")),
        (MEMBER_ADDED | MEMBER_REMOVED, _) => {
            Err(Reply::refused("invalid: membership notifications are relay-signed only"))
        }
        (kind @ (GIFT_WRAP | PRESENCE), Via::Http) => {
            Err(Reply::refused(format!("invalid: kind {kind} is only accepted via WebSocket")))
        }
        (kind, _) if kinds::is_relay_only(kind) => Err(Reply::refused("restricted: relay-only kind")),
        _ => Ok(()),
    }
}
