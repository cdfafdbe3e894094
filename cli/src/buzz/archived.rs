//! Which identities the relay has archived: its own signed list, or nothing.

use std::collections::BTreeSet;

use async_std::task::block_on;
use waxlog_nostr::kind::ARCHIVED_IDENTITIES;
use waxlog_nostr::{Event, Filter, PublicKey};

use super::context::Context;
use super::failure::Failure;

/// The identities in the relay's list. A list that the relay's own key has not signed counts for nothing and
/// is an error; no list is an empty one.
pub(crate) fn archived(context: &Context) -> Result<BTreeSet<PublicKey>, Failure> {
    let document = block_on(context.relay().information())?;
    let relay: PublicKey = document["self"].as_str().and_then(|key| key.parse().ok()).ok_or_else(|| {
        Failure::Other(format!("the relay {} names no key of its own (self)", context.relay().shown()))
    })?;
    let filter = Filter::new().kinds([ARCHIVED_IDENTITIES]).authors([relay]).limit(1);
    let found = block_on(context.relay().query(&[filter]))?;
    if found.left_out > 0 {
        let relay = context.relay().shown();
        return Err(Failure::Other(format!(
            "the list of archived identities from {relay} is not signed by it"
        )));
    }
    match found.events.into_iter().next() {
        None => Ok(BTreeSet::new()),
        Some(list) => read(&list, &relay).ok_or_else(|| {
            Failure::Other(format!("the list of archived identities {} is not the relay's own", list.id))
        }),
    }
}

/// The keys of a list whose signature is verified already.
fn read(list: &Event, relay: &PublicKey) -> Option<BTreeSet<PublicKey>> {
    let mut marks = list.tags_named("-");
    let is_marked = marks.next().is_some_and(|mark| mark.len() == 1) && marks.next().is_none();
    (list.pubkey == *relay && list.kind == ARCHIVED_IDENTITIES && is_marked)
        .then(|| list.tag_values("p").filter_map(|key| key.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use waxlog_nostr::{Draft, Keys};

    use super::*;

    #[test]
    fn only_a_marked_list_of_the_relay_counts() {
        let (relay, other, ann) = (Keys::generate(), Keys::generate(), Keys::generate().public_key());
        let draft = Draft::new(ARCHIVED_IDENTITIES, "", 1).tag(["p", &ann.to_hex()]).tag(["p", "x"]);
        let marked = draft.clone().tag(["-"]);
        let key = relay.public_key();
        assert_eq!(read(&relay.sign(marked.clone()), &key), Some(BTreeSet::from([ann])));
        assert_eq!(read(&other.sign(marked.clone()), &key), None);
        assert_eq!(read(&relay.sign(draft.clone()), &key), None);
        assert_eq!(read(&relay.sign(draft.tag(["-", "x"])), &key), None);
        assert_eq!(read(&relay.sign(marked.clone().tag(["-"])), &key), None);
        assert_eq!(read(&relay.sign(Draft { kind: 1, ..marked }), &key), None);
    }
}
