//! Heads and writes of one agent's memory.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;
use sha2::{Digest, Sha256};
use waxlog_nostr::engram::{head, next_created_at, Body, Memory, Slug};
use waxlog_nostr::nip44::MAX_PLAINTEXT_BYTES;
use waxlog_nostr::{Event, PublicKey};

use super::patch::apply;
use super::{PatchOptions, Reader};
use crate::buzz::context::{note, read_text, Context};
use crate::buzz::failure::{as_usage, Failure};
use crate::buzz::input::file_or_stdin;
use crate::buzz::output::Output;
use crate::buzz::settled::settled;

/// One agent's memory, on a relay.
pub(super) struct Store<'a> {
    context: &'a Context,
    memory: Memory,
}

impl<'a> Store<'a> {
    /// The memory that the identity reads: its own, or as an owner that of an agent.
    pub(super) fn reading(context: &'a Context, reader: &Reader) -> Result<Self, Failure> {
        let Some(agent) = reader.agent else { return Self::of_agent(context, reader.owner) };
        if reader.owner.is_some() {
            return Err(Failure::Usage("--agent reads as the owner, so --owner cannot go with it".into()));
        }
        if agent == context.me() {
            let hint = "--agent is for the memory of another; leave it out for your own";
            return Err(Failure::Usage(format!("{hint} ({agent})")));
        }
        let memory = Memory::of_owner(context.keys(), &agent).map_err(as_usage)?;
        Ok(Self { context, memory })
    }

    /// The identity's own memory, which it writes.
    pub(super) fn of_agent(context: &'a Context, owner: Option<PublicKey>) -> Result<Self, Failure> {
        let owner = owner.or(context.owner().map(|tag| tag.owner)).ok_or_else(|| {
            Failure::Usage("memory is shared with an owner: give --owner or set BUZZ_AUTH_TAG".into())
        })?;
        let memory = Memory::of_agent(context.keys(), &owner).map_err(as_usage)?;
        Ok(Self { context, memory })
    }

    /// The newest version of a slug that opens, tombstones too.
    fn head(&self, slug: &Slug) -> Result<Option<(Event, Body)>, Failure> {
        let mut versions = self.context.query(&[self.memory.head_filter(slug)])?;
        versions.retain(|event| self.memory.open(event).is_ok_and(|body| body.slug() == slug));
        let Some(newest) = head(&versions) else { return Ok(None) };
        let body = self.memory.open(newest).map_err(|error| Failure::Other(error.to_string()))?;
        Ok(Some((newest.clone(), body)))
    }

    /// What is remembered under a slug.
    pub(super) fn text(&self, slug: &Slug) -> Result<String, Failure> {
        let found = self.head(slug)?;
        found.as_ref().and_then(|(_, body)| body.text()).map(str::to_owned).ok_or_else(|| absent(slug))
    }

    /// All slugs but core and what is forgotten.
    pub(super) fn list(&self, json: bool) -> Result<Output, Failure> {
        let events = self.context.query(&[self.memory.list_filter()])?;
        let mut by_slug: BTreeMap<String, Vec<&Event>> = BTreeMap::new();
        for event in &events {
            if let Ok(body) = self.memory.open(event) {
                by_slug.entry(body.slug().as_str().to_owned()).or_default().push(event);
            }
        }
        let heads = by_slug.into_iter().filter_map(|(slug, versions)| Some((slug, head(versions)?)));
        let is_listed = |event: &Event| {
            self.memory.open(event).is_ok_and(|body| !body.slug().is_core() && body.text().is_some())
        };
        let listed: Vec<_> = heads.filter(|(_, event)| is_listed(event)).collect();
        Ok(match (json, listed.is_empty()) {
            (true, _) => listed
                .iter()
                .map(|(slug, event)| {
                    json!({"slug": slug, "event_id": event.id, "created_at": event.created_at})
                })
                .collect::<serde_json::Value>()
                .into(),
            (false, true) => {
                note("nothing is remembered yet; `mem set SLUG VALUE` remembers something");
                Output::Nothing
            }
            (false, false) => {
                let lines = listed
                    .iter()
                    .map(|(slug, event)| format!("{slug}\t{}\t{}", event.created_at, event.id));
                Output::Line(lines.collect::<Vec<_>>().join("\n"))
            }
        })
    }

    /// Writes a version past the head. Gives the event's id.
    fn write(&self, body: &Body, head: Option<&Event>) -> Result<String, Failure> {
        let created_at = next_created_at(self.context.now(), head.map(|event| event.created_at));
        let draft = self.memory.draft(body, created_at).map_err(as_usage)?;
        let event = self.context.keys().sign(draft);
        settled(self.context.submit(&event)?)?;
        Ok(event.id.to_hex())
    }

    pub(super) fn set(&self, slug: Slug, text: String) -> Result<Output, Failure> {
        let head = self.head(&slug)?.map(|(event, _)| event);
        let id = self.write(&Body::new(slug.clone(), text), head.as_ref())?;
        note(&format!("{} is remembered: event {id}", slug.as_str()));
        Ok(Output::Nothing)
    }

    pub(super) fn remove(&self, slug: Slug) -> Result<Output, Failure> {
        let tombstone = Body::tombstone(slug.clone()).map_err(as_usage)?;
        let head = self.head(&slug)?.map(|(event, _)| event);
        let id = self.write(&tombstone, head.as_ref())?;
        note(&format!("{} is forgotten: event {id}", slug.as_str()));
        Ok(Output::Nothing)
    }

    pub(super) fn patch(&self, slug: Slug, options: PatchOptions) -> Result<Output, Failure> {
        let base = base_hash(&options)?;
        let diff = diff(options.patch_file.as_deref())?;
        let found = self.head(&slug)?;
        let Some((event, body)) = found else { return Err(absent(&slug)) };
        let text = body.text().ok_or_else(|| absent(&slug))?;
        if let Some(base) = base.filter(|base| !base.eq_ignore_ascii_case(&hash(text))) {
            return Err(Failure::Conflict(format!(
                "{} has changed: its hash is {}, the diff is for {base}; read it again and make a new diff",
                slug.as_str(),
                hash(text)
            )));
        }
        let result = checked(apply(text, &diff).map_err(as_usage)?, options.allow_empty)?;
        note(diff.trim_end_matches('\n'));
        if options.dry_run {
            note(&format!("nothing is written; the hash would be {}", hash(&result)));
            return Ok(Output::Nothing);
        }
        let new_hash = hash(&result);
        let id = self.write(&Body::new(slug, result), Some(&event))?;
        note(&format!("patched: event {id}, hash {new_hash}"));
        Ok(Output::Nothing)
    }
}

fn absent(slug: &Slug) -> Failure {
    Failure::NotFound(format!("nothing is remembered under {}; `mem ls` lists what is", slug.as_str()))
}

/// The SHA-256 of a text, in hex.
pub(super) fn hash(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The text to remember, from the command line or from stdin.
pub(super) fn value(given: String, allow_empty: bool) -> Result<String, Failure> {
    if given != "-" {
        return Ok(given);
    }
    checked(read_text("stdin", std::io::stdin().lock())?, allow_empty)
}

fn checked(text: String, allow_empty: bool) -> Result<String, Failure> {
    if text.len() > MAX_PLAINTEXT_BYTES {
        let got = text.len();
        return Err(Failure::Usage(format!(
            "a memory takes at most {MAX_PLAINTEXT_BYTES} bytes, got {got}; store less"
        )));
    }
    match text.is_empty() && !allow_empty {
        true => Err(Failure::Usage("the text is empty; give --allow-empty if that is meant".into())),
        false => Ok(text),
    }
}

/// The hash that the memory must have, if any. One of two options says.
fn base_hash(options: &PatchOptions) -> Result<Option<&str>, Failure> {
    let wrong = |text: &str| Err(Failure::Usage(text.to_owned()));
    match (&options.base_hash, options.no_base_hash) {
        (Some(_), true) => wrong("--base-hash and --no-base-hash exclude each other"),
        (None, false) => {
            wrong("say what the diff was made for: --base-hash HASH (see `mem hash`) or --no-base-hash")
        }
        (None, true) => Ok(None),
        (Some(hash), false) => {
            let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_hash.then_some(Some(hash.as_str())).ok_or_else(|| {
                Failure::Usage(format!(
                    "--base-hash must be 64 hex digits, got {hash:?}; `mem hash` prints it"
                ))
            })
        }
    }
}

fn diff(path: Option<&Path>) -> Result<String, Failure> {
    let text = file_or_stdin(path.unwrap_or(Path::new("-")))?;
    match text.trim().is_empty() {
        true => Err(Failure::Usage("the diff is empty".into())),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(hash(""), empty);
        assert_eq!(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn a_literal_text_is_taken_as_it_is_even_if_it_is_empty() {
        assert_eq!(value(String::new(), false).unwrap(), "");
        assert!(matches!(checked(String::new(), false), Err(Failure::Usage(_))));
        assert!(checked(String::new(), true).is_ok() && checked("x".repeat(65_535), false).is_ok());
        assert!(matches!(checked("x".repeat(65_536), false), Err(Failure::Usage(_))));
    }

    #[test]
    fn exactly_one_option_says_what_a_diff_is_for() {
        let options = |base_hash: Option<&str>, no_base_hash| PatchOptions {
            patch_file: None,
            base_hash: base_hash.map(str::to_owned),
            no_base_hash,
            dry_run: false,
            allow_empty: false,
        };
        let hash = "0".repeat(64);
        assert_eq!(base_hash(&options(Some(&hash), false)).unwrap(), Some(hash.as_str()));
        assert_eq!(base_hash(&options(None, true)).unwrap(), None);
        for (given, none) in [(Some(hash.as_str()), true), (None, false), (Some("abc"), false)] {
            assert!(matches!(base_hash(&options(given, none)), Err(Failure::Usage(_))));
        }
    }
}
