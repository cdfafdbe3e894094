//! What anybody reads: short notes, whom one follows, and lists.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::{check_bytes, BuildError, MAX_TEXT_BYTES};
use crate::event::{Draft, Tag};
use crate::id::{EventId, PublicKey};
use crate::kind::{CONTACTS, NOTE};

/// Most contacts.
pub const MAX_CONTACTS: usize = 10_000;
/// Longest URL of a contact's relay, in bytes.
pub const MAX_RELAY_URL_BYTES: usize = 2048;
/// Longest pet name of a contact, in bytes.
pub const MAX_PETNAME_BYTES: usize = 256;
/// The kinds of lists that can be set: mutes, pins, relays, bookmarks; sets of people, sets of bookmarks.
pub const LIST_KINDS: [u16; 6] = [10_000, 10_001, 10_002, 10_003, 30_000, 30_003];

/// A short note, maybe an answer to another.
pub fn note(content: &str, reply_to: Option<&EventId>, now: u64) -> Result<Draft, BuildError> {
    check_bytes("the note", content, MAX_TEXT_BYTES)?;
    let draft = Draft::new(NOTE, content, now);
    Ok(match reply_to {
        Some(event) => draft.tag(["e", &event.to_hex(), "", "reply"]),
        None => draft,
    })
}

/// Somebody whom one follows, as it is typed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Contact {
    /// Who, in hex.
    pub pubkey: String,
    /// Where that person is found.
    #[serde(default)]
    pub relay_url: Option<String>,
    /// What one calls that person.
    #[serde(default)]
    pub petname: Option<String>,
}

/// Whom one follows: one `p` for each, the first of two for the same person.
pub fn contacts(contacts: &[Contact], created_at: u64) -> Result<Draft, BuildError> {
    if contacts.len() > MAX_CONTACTS {
        let (got, limit) = (contacts.len(), MAX_CONTACTS);
        return Err(BuildError::TooLong { what: "the list of contacts", got, limit, unit: "entries" });
    }
    let (mut draft, mut seen) = (Draft::new(CONTACTS, "", created_at), BTreeSet::new());
    for contact in contacts {
        let key: PublicKey = contact
            .pubkey
            .parse()
            .map_err(|_| BuildError::invalid("a contact's pubkey", "64 hex digits", &contact.pubkey))?;
        let (relay, name) = (
            contact.relay_url.as_deref().unwrap_or_default(),
            contact.petname.as_deref().unwrap_or_default(),
        );
        check_bytes("a contact's relay_url", relay, MAX_RELAY_URL_BYTES)?;
        check_bytes("a contact's petname", name, MAX_PETNAME_BYTES)?;
        if seen.insert(key) {
            draft = draft.tag(["p", &key.to_hex(), relay, name]);
        }
    }
    Ok(draft)
}

/// Whether a list of this kind is one of several, told apart by a `d` value.
pub const fn is_named_list(kind: u16) -> bool {
    matches!(kind, 30_000 | 30_003)
}

/// A list of one of [`LIST_KINDS`].
pub fn list(kind: u16, tags: Vec<Tag>, content: &str, created_at: u64) -> Result<Draft, BuildError> {
    check_list_kind(kind)?;
    check_bytes("the list's text", content, MAX_TEXT_BYTES)?;
    let has_name = tags
        .iter()
        .any(|tag| matches!(tag.as_slice(), [name, value, ..] if name == "d" && !value.is_empty()));
    if is_named_list(kind) && !has_name {
        return Err(BuildError::Together(
            "a list of this kind needs a name: add [\"d\",\"NAME\"] to the tags",
        ));
    }
    Ok(Draft { tags, ..Draft::new(kind, content, created_at) })
}

/// Checks that a kind is one of [`LIST_KINDS`].
pub fn check_list_kind(kind: u16) -> Result<(), BuildError> {
    match LIST_KINDS.contains(&kind) {
        true => Ok(()),
        false => {
            let wanted = "one of 10000, 10001, 10002, 10003, 30000, 30003";
            Err(BuildError::invalid("the kind of a list", wanted, &kind.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Keys;

    fn contact(pubkey: &str) -> Contact {
        Contact { pubkey: pubkey.into(), relay_url: None, petname: None }
    }

    #[test]
    fn a_note_is_text_and_an_answer_names_what_it_answers() {
        assert_eq!(note("hello", None, 5).unwrap(), Draft::new(1, "hello", 5));
        let event = EventId::from_bytes([7; 32]);
        assert_eq!(note("x", Some(&event), 5).unwrap().tags, [["e", &event.to_hex(), "", "reply"]]);
        assert!(note(&"x".repeat(65_536), None, 5).is_ok());
        assert!(note(&"x".repeat(65_537), None, 5).is_err());
    }

    #[test]
    fn contacts_are_lower_case_once_and_in_order() {
        let (ann, bob) = (Keys::generate().public_key().to_hex(), Keys::generate().public_key().to_hex());
        let known = Contact {
            relay_url: Some("wss://r.example".into()),
            petname: Some("bobby".into()),
            ..contact(&bob.to_uppercase())
        };
        let draft = contacts(&[known, contact(&ann), contact(&bob)], 5).unwrap();
        assert_eq!(draft.kind, 3);
        assert_eq!(draft.tags, [["p", &bob, "wss://r.example", "bobby"], ["p", &ann, "", ""]]);
    }

    #[test]
    fn contacts_keep_their_limits() {
        let key = Keys::generate().public_key().to_hex();
        for bad in [&key[1..], &format!("{key}0"), &"g".repeat(64)] {
            assert!(contacts(&[contact(bad)], 5).is_err(), "{bad}");
        }
        let long_relay = Contact { relay_url: Some("x".repeat(2049)), ..contact(&key) };
        let long_name = Contact { petname: Some("x".repeat(257)), ..contact(&key) };
        assert!(contacts(&[long_relay], 5).is_err() && contacts(&[long_name], 5).is_err());
        let many = vec![contact(&key); 10_001];
        assert!(contacts(&many[1..], 5).is_ok() && contacts(&many, 5).is_err());
    }

    #[test]
    fn a_list_has_a_known_kind_and_a_name_where_there_are_several() {
        let people = || vec![vec!["p".to_owned(), "x".to_owned()]];
        let draft = list(10_000, people(), "x", 5).unwrap();
        assert_eq!((draft.kind, draft.tags, draft.content.as_str()), (10_000, people(), "x"));
        assert!(list(30_000, people(), "", 5).is_err());
        let named = [people(), vec![vec!["d".to_owned(), "friends".to_owned()]]].concat();
        assert!(list(30_000, named, "", 5).is_ok());
        assert!(list(1, people(), "", 5).is_err() && list(10_030, people(), "", 5).is_err());
    }
}
