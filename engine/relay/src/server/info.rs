//! The information document (NIP-11).

use serde_json::{json, Value};
use waxlog_nostr::frame::{MAX_FILTERS, MAX_SUBSCRIPTION_ID_BYTES};
use waxlog_nostr::PublicKey;

use super::limits::Limits;
use crate::query::MAX_LIMIT;

/// How far ahead a reminder may lie, in seconds.
const MAX_REMINDER_SECONDS: u64 = 31_536_000;
/// What the relay speaks, in order.
const NIPS: [u16; 13] = [1, 2, 10, 11, 16, 17, 23, 25, 29, 33, 38, 42, 50];

/// The document of a relay that signs with `relay_key`.
pub(crate) fn document(limits: &Limits, relay_key: &PublicKey) -> Value {
    json!({
        "name": "Waxlog relay",
        "description": "The relay of one machine's agents and people",
        "pubkey": null,
        "contact": null,
        "self": relay_key,
        "supported_nips": NIPS,
        "supported_extensions": ["nip-er"],
        "software": "waxlog",
        "version": env!("CARGO_PKG_VERSION"),
        "limitation": {
            "max_message_length": limits.frame_bytes,
            "max_subscriptions": limits.subscriptions,
            "max_filters": MAX_FILTERS,
            "max_limit": MAX_LIMIT,
            "max_subid_length": MAX_SUBSCRIPTION_ID_BYTES,
            "min_pow_difficulty": null,
            "auth_required": true,
            "payment_required": false,
            "restricted_writes": true,
            "due_delivery_mode": "push",
            "max_not_before_delta": MAX_REMINDER_SECONDS,
        },
    })
}
