//! The gates before a read: which requests are answered at all, and which events are shown to whom.

use waxlog_nostr::channel::ChannelId;
use waxlog_nostr::kind::{self, ENGRAM};
use waxlog_nostr::{Event, Filter, PublicKey};

use crate::asker::{Asker, Via};
use crate::reply::Refusal;
use crate::rules::envelope::is_shared;

const P_GATE_SOCKET: &str = "restricted: p-gated events require #p matching your pubkey";
const P_GATE_HTTP: &str = "restricted: p-gated kinds require #p tag matching your pubkey";
const ENGRAM_GATE: &str = "restricted: agent-engram reads require authors=[self] or #p=[self]";
const AUTHOR_GATE: &str = "restricted: author-only kinds require authors=[self]";

/// Whether all filters pass their gates. One that does not refuses the whole request.
pub(crate) fn pass(filters: &[Filter], asker: &Asker, counts: bool) -> Result<(), Refusal> {
    let p_gate = if asker.via == Via::Socket && !counts { P_GATE_SOCKET } else { P_GATE_HTTP };
    for filter in filters {
        if !passes_p_gate(filter, &asker.pubkey) {
            return Err(Refusal::restricted(p_gate));
        }
        if !passes_engram_gate(filter, &asker.pubkey) {
            return Err(Refusal::restricted(ENGRAM_GATE));
        }
        if !passes_author_gate(filter, &asker.pubkey) {
            return Err(Refusal::restricted(AUTHOR_GATE));
        }
    }
    Ok(())
}

/// The one channel that all filters name, if they do.
pub(crate) fn one_channel(filters: &[Filter]) -> Option<ChannelId> {
    let mut channels = filters.iter().map(|filter| match filter.tags.get(&'h').map(Vec::as_slice) {
        Some([channel]) => channel.parse().ok(),
        _ => None,
    });
    let first = channels.next()??;
    channels.all(|channel| channel == Some(first)).then_some(first)
}

/// Whether an event may be shown to a reader who may read where it is.
pub(crate) fn shows(event: &Event, reader: &PublicKey) -> bool {
    let names = |reader: &PublicKey| event.tag_values("p").any(|value| value == reader.to_hex());
    if kind::is_result_gated(event.kind) {
        return names(reader);
    }
    if kind::is_shared_gated(event.kind) {
        return event.pubkey == *reader || is_shared(event);
    }
    !kind::is_author_only(event.kind) || event.pubkey == *reader
}

fn has_ids(filter: &Filter) -> bool {
    filter.ids.as_ref().is_some_and(|ids| !ids.is_empty())
}

fn names_only_self(filter: &Filter, reader: &PublicKey) -> bool {
    let own = reader.to_hex();
    filter.tags.get(&'p').is_some_and(|values| !values.is_empty() && values.iter().all(|value| *value == own))
}

fn passes_p_gate(filter: &Filter, reader: &PublicKey) -> bool {
    let kinds = filter.kinds.as_deref();
    let is_gated = kinds.is_none_or(|kinds| kinds.iter().copied().any(kind::is_p_gated));
    let names_result_gated = kinds.is_some_and(|kinds| kinds.iter().copied().any(kind::is_result_gated));
    !is_gated || names_only_self(filter, reader) || (has_ids(filter) && !names_result_gated)
}

fn passes_engram_gate(filter: &Filter, reader: &PublicKey) -> bool {
    let may_match = filter.kinds.as_ref().is_none_or(|kinds| kinds.contains(&ENGRAM));
    let is_own = filter.authors.as_ref().is_some_and(|authors| authors[..] == [*reader]);
    !may_match || has_ids(filter) || is_own || names_only_self(filter, reader)
}

fn passes_author_gate(filter: &Filter, reader: &PublicKey) -> bool {
    let is_gated = |kinds: &Vec<u16>| !kinds.is_empty() && kinds.iter().copied().all(kind::is_author_only);
    let is_own = filter.authors.as_ref().is_some_and(|authors| authors[..] == [*reader]);
    !filter.kinds.as_ref().is_some_and(is_gated) || is_own
}
