//! What single kinds must look like (step 17 of the order of ingest).

use std::collections::BTreeMap;

use waxlog_nostr::kind::*;
use waxlog_nostr::{engram, turn_metric, Event, Tag};

use super::{invalid, project, Facts, Fault, Judged};
use crate::reply::Reply;

/// How long a persona's or a catalogue's `d` may be, in characters.
const MAX_SLUG_CHARS: usize = 64;
/// How much a message with a diff may hold, in bytes.
const MAX_DIFF_BYTES: usize = 61_440;
/// The shortest commit that a diff may name, in hex digits.
const MIN_COMMIT_DIGITS: usize = 7;
/// The greatest time that a reminder may name: the greatest whole number that all clients keep exact.
const MAX_REMINDER_TIME: u64 = (1 << 53) - 1;
/// How far ahead a reminder may be, in seconds.
const MAX_REMINDER_AHEAD_SECS: u64 = 31_536_000;
/// What an `imeta` tag may say.
const IMETA_KEYS: [&str; 13] = [
    "url", "m", "x", "size", "dim", "blurhash", "alt", "thumb", "fallback", "duration", "bitrate", "image",
    "filename",
];
/// What an `imeta` tag must say.
const IMETA_REQUIRED: [&str; 4] = ["url", "m", "x", "size"];

/// Whether the event has the form of its kind.
pub(crate) fn check(event: &Event, facts: &Facts<'_>) -> Judged<()> {
    match event.kind {
        PROFILE => is_json(event)?,
        TURN_METRIC => is_turn_metric(event, facts)?,
        ENGRAM => engram::check_envelope(event).map(drop).map_err(invalid)?,
        PERSONA => is_persona(event)?,
        TEAM_CATALOG => is_catalog(event)?,
        REMINDER => is_reminder(event, facts.now)?,
        PROJECT => project::check(event)?,
        DIFF_MESSAGE => is_diff(event)?,
        _ => {}
    }
    event.tags_named("imeta").try_for_each(|tag| is_imeta(tag, facts))
}

/// The value of the only tag of this name.
pub(super) fn only<'a>(event: &'a Event, name: &'a str) -> Judged<&'a str> {
    let mut tags = event.tags_named(name);
    match (tags.next(), tags.next()) {
        (Some(tag), None) if tag.len() > 1 => Ok(&tag[1]),
        _ => Err(invalid(format!("exactly one {name} tag with a value is required"))),
    }
}

fn is_json(event: &Event) -> Judged<()> {
    match serde_json::from_str::<serde::de::IgnoredAny>(&event.content) {
        Ok(_) => Ok(()),
        Err(_) => Err(invalid("kind:0 content must be valid JSON")),
    }
}

fn is_turn_metric(event: &Event, facts: &Facts<'_>) -> Judged<()> {
    let owner = turn_metric::check_envelope(event).map_err(invalid)?;
    match facts.state.owns(&owner, &event.pubkey) {
        true => Ok(()),
        false => Err(Fault::Refused(Reply::forbidden(
            "restricted: agent-turn-metric `p` tag must be the registered owner of this agent",
        ))),
    }
}

fn is_persona(event: &Event) -> Judged<()> {
    let slug = only(event, "d")?;
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let begins_plain = slug.bytes().next().is_some_and(is_plain);
    let is_slug = begins_plain && slug.bytes().all(|byte| is_plain(byte) || matches!(byte, b'_' | b'-'));
    if !is_slug || slug.len() > MAX_SLUG_CHARS {
        return Err(invalid(format!(
            "a persona's d must begin with [a-z0-9], go on with [a-z0-9_-] and have at most {MAX_SLUG_CHARS} characters"
        )));
    }
    is_shared_well(event)
}

fn is_catalog(event: &Event) -> Judged<()> {
    let id = only(event, "d")?;
    let is_clean = !id.chars().any(|sign| sign.is_whitespace() || sign.is_control());
    if !is_clean || !(1..=MAX_SLUG_CHARS).contains(&id.chars().count()) {
        return Err(invalid(format!(
            "a catalogue's d must be 1 to {MAX_SLUG_CHARS} characters without blanks"
        )));
    }
    is_shared_well(event)
}

fn is_shared_well(event: &Event) -> Judged<()> {
    match event.tags_named("shared").next().is_none() || is_shared(event) {
        true => Ok(()),
        false => Err(invalid("shared must be absent or exactly [\"shared\",\"true\"], once")),
    }
}

/// Whether the event is marked as for everyone: by one exact tag.
pub(crate) fn is_shared(event: &Event) -> bool {
    let mut tags = event.tags_named("shared");
    let is_exact = |tag: &Tag| tag.len() == 2 && tag[1] == "true";
    matches!((tags.next(), tags.next()), (Some(tag), None) if is_exact(tag))
}

fn is_reminder(event: &Event, now: u64) -> Judged<()> {
    if only(event, "d")?.is_empty() {
        return Err(invalid("a reminder's d must not be empty"));
    }
    let mut times = event.tags_named("not_before");
    let (first, None) = (times.next(), times.next()) else {
        return Err(invalid("a reminder has at most one not_before tag"));
    };
    let Some(tag) = first else { return Ok(()) };
    let not_before =
        tag.get(1).and_then(|text| canonical_number(text)).filter(|time| *time <= MAX_REMINDER_TIME);
    let not_before = not_before.ok_or_else(|| {
        invalid(format!(
            "not_before must be a whole number without leading zeros, at most {MAX_REMINDER_TIME}"
        ))
    })?;
    if not_before > now + MAX_REMINDER_AHEAD_SECS {
        return Err(invalid(format!("not_before must be at most {MAX_REMINDER_AHEAD_SECS} s ahead")));
    }
    match event.tag_value("expiration").and_then(canonical_number) {
        Some(expiration) if expiration <= not_before => {
            Err(invalid("expiration must be later than not_before"))
        }
        _ => Ok(()),
    }
}

fn canonical_number(text: &str) -> Option<u64> {
    let is_canonical = text == "0" || !text.starts_with('0');
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_canonical && is_digits).then(|| text.parse().ok()).flatten()
}

fn is_diff(event: &Event) -> Judged<()> {
    let repo = event.tag_value("repo").unwrap_or_default();
    if !is_web_address(repo) {
        return Err(invalid("a diff needs a repo tag with an http or https address"));
    }
    let commit = event.tag_value("commit").unwrap_or_default();
    if commit.len() < MIN_COMMIT_DIGITS || !commit.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(invalid(format!("a diff needs a commit tag of at least {MIN_COMMIT_DIGITS} hex digits")));
    }
    if event.content.len() > MAX_DIFF_BYTES {
        let got = event.content.len();
        return Err(invalid(format!("a diff has at most {MAX_DIFF_BYTES} bytes (got {got})")));
    }
    if event.tags_named("branch").any(|tag| tag.len() != 3) {
        return Err(invalid("a diff's branch tag has two values, source and target"));
    }
    let is_number = |text: &str| text.parse::<u64>().is_ok_and(|number| number > 0);
    match event.tag_values("pr").all(is_number) {
        true => Ok(()),
        false => Err(invalid("a diff's pr tag must be a positive number")),
    }
}

fn is_web_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty())
}

fn is_imeta(tag: &Tag, facts: &Facts<'_>) -> Judged<()> {
    let fields: Option<BTreeMap<_, _>> = tag[1..].iter().map(|field| field.split_once(' ')).collect();
    let fields = fields.ok_or_else(|| invalid("each part of an imeta tag is a name, a blank and a value"))?;
    if let Some(unknown) = fields.keys().find(|name| !IMETA_KEYS.contains(name)) {
        return Err(invalid(format!("an imeta tag has no field {unknown:?}")));
    }
    if let Some(missing) = IMETA_REQUIRED.iter().find(|name| !fields.contains_key(**name)) {
        return Err(invalid(format!("an imeta tag needs the field {missing}")));
    }
    let is_held = facts.blobs.is_some_and(|blobs| blobs.holds(fields["url"], fields["x"]));
    match is_held {
        true => Ok(()),
        false => Err(invalid("an imeta tag must name a blob that this relay holds; upload it first")),
    }
}
