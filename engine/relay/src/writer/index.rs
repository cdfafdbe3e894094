//! Which index entries a stored event has.

use waxlog_nostr::kind::{class, Class, REACTION};

use super::has_head;
use crate::kinds;
use crate::rules::reaction;
use crate::store::key::{self, Place};
use crate::store::record::Record;
use crate::words;

/// The keys of an event in the index.
pub(crate) fn keys(record: &Record, seq: u64) -> Vec<Vec<u8>> {
    let event = &record.event;
    let place = Place::of(event.created_at, &event.id, seq);
    let mut keys = vec![
        key::with_place(key::by_kind(event.kind), place),
        key::with_place(key::by_author(&event.pubkey, event.kind), place),
    ];
    let mut tag = |letter: char, value: &str| {
        let key = key::with_place(key::by_tag(letter, value, event.kind), place);
        if !keys.contains(&key) {
            keys.push(key);
        }
    };
    let mut has_channel_tag = false;
    for (letter, value) in event.tags.iter().filter_map(|tag| Some((letter(tag.first()?)?, tag.get(1)))) {
        has_channel_tag |= letter == 'h';
        if let Some(value) = value {
            tag(letter, value);
        }
    }
    // An event that names no channel is found by the one that it is stored in.
    if let (Some(channel), false) = (&record.channel, has_channel_tag) {
        tag('h', &channel.to_string());
    }
    if kinds::is_searchable(event.kind) {
        keys.extend(
            words::indexed(&event.content).iter().map(|word| key::with_place(key::by_word(word), place)),
        );
    }
    if let Some(thread) = record.thread {
        let place = key::in_thread(event.created_at, &event.id, seq);
        keys.push(key::with_place(key::by_thread(&thread.root), place));
    }
    keys
}

/// The key of the head that an event would be.
pub(super) fn head_key(record: &Record) -> Option<Vec<u8>> {
    let event = &record.event;
    if !has_head(event.kind) {
        return None;
    }
    Some(match class(event.kind) {
        Class::Addressable => key::head(event.kind, &event.pubkey, None, event.identifier()),
        _ => key::head(event.kind, &event.pubkey, record.channel.as_ref(), ""),
    })
}

/// The key by which a reaction is the only one of its sort.
pub(super) fn reaction_key(record: &Record) -> Option<Vec<u8>> {
    (record.event.kind == REACTION).then(|| reaction::slot(&record.event)).flatten()
}

fn letter(name: &String) -> Option<char> {
    let mut signs = name.chars();
    let letter = signs.next().filter(char::is_ascii_alphabetic)?;
    signs.next().is_none().then_some(letter)
}
