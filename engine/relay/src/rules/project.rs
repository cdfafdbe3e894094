//! Projects (kind 30621): a bounded set of repositories under one name.

use std::collections::BTreeSet;

use waxlog_nostr::kind::REPO;
use waxlog_nostr::{Event, PublicKey};

use super::envelope::only;
use super::{invalid, Judged};

/// How many repositories a project names at most.
const MAX_MEMBERS: usize = 64;
/// What a project says of itself at most once, and how long it may be, in bytes.
const METADATA: [(&str, usize); 4] =
    [("name", 256), ("description", 2048), ("buzz-channel", 256), ("buzz-visibility", 256)];
/// How many elements an `a` tag has: with or without the hint of a relay.
const MEMBER_ELEMENTS: std::ops::RangeInclusive<usize> = 2..=3;

/// Whether the event has the form of a project. The cap is looked at before repetitions.
pub(crate) fn check(event: &Event) -> Judged<()> {
    if only(event, "d")?.is_empty() {
        return Err(invalid("a project's d must not be empty"));
    }
    let count = event.tags_named("a").count();
    if count > MAX_MEMBERS {
        return Err(invalid(format!("a project has at most {MAX_MEMBERS} members (got {count})")));
    }
    let mut seen = BTreeSet::new();
    for tag in event.tags_named("a") {
        if !MEMBER_ELEMENTS.contains(&tag.len()) {
            return Err(invalid("a project's a tag has two or three elements"));
        }
        if !is_repository(&tag[1]) {
            return Err(invalid(format!(
                "a member must be 30617:<64 lower-case hex digits>:<d>, got {:?}",
                tag[1]
            )));
        }
        if !seen.insert(&tag[1]) {
            return Err(invalid(format!("the member {:?} is named twice", tag[1])));
        }
    }
    METADATA.iter().try_for_each(|(name, max_bytes)| is_bounded(event, name, *max_bytes))
}

fn is_repository(address: &str) -> bool {
    let mut parts = address.splitn(3, ':');
    let (kind, owner, identifier) = (parts.next(), parts.next(), parts.next());
    let is_key = |owner: &str| {
        !owner.bytes().any(|byte| byte.is_ascii_uppercase()) && owner.parse::<PublicKey>().is_ok()
    };
    kind == Some(&*REPO.to_string())
        && owner.is_some_and(is_key)
        && identifier.is_some_and(|identifier| !identifier.is_empty())
}

fn is_bounded(event: &Event, name: &str, max_bytes: usize) -> Judged<()> {
    if event.tags_named(name).count() > 1 {
        return Err(invalid(format!("a project has at most one {name} tag")));
    }
    match event.tag_value(name).map(str::len) {
        Some(got) if got > max_bytes => {
            Err(invalid(format!("a project's {name} has at most {max_bytes} bytes (got {got})")))
        }
        _ => Ok(()),
    }
}
