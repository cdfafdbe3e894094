//! An agent's memory (NIP-AE): one encrypted, addressable event for each slug.
//!
//! Agent and owner share a key, so the owner reads what the agent remembers; only the agent writes. The `d`
//! tag is a keyed hash of the slug: a relay sees how much is remembered, not what.

mod body;
mod slug;

pub use body::{Body, BodyError};
pub use slug::{references, Slug, SlugError, CORE, MAX_SLUG_BYTES};

use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::event::{Draft, Event, VerifyError};
use crate::filter::Filter;
use crate::id::PublicKey;
use crate::keys::Keys;
use crate::kind::ENGRAM;
use crate::nip44::{looks_encrypted, ConversationKey, Nip44Error};

/// How many versions of one slug a reader asks for, over which the head is chosen.
pub const HEAD_LIMIT: usize = 16;
/// How many engrams a reader asks for who wants all.
pub const LIST_LIMIT: usize = 5_000;
const D_TAG_LABEL: &[u8] = b"agent-memory/v1/d-tag\0";

/// One agent's memory, as the agent or its owner can open it.
#[derive(Debug)]
pub struct Memory {
    agent: PublicKey,
    owner: PublicKey,
    key: ConversationKey,
}

/// Why an event is no engram of a memory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngramError {
    /// The kind or the tags are not an engram's.
    #[error("not an engram: {0}")]
    Envelope(&'static str),
    /// Another agent's.
    #[error("the engram is by {0}, who is not the agent asked for")]
    Author(PublicKey),
    /// Not signed by whom it names.
    #[error(transparent)]
    Event(#[from] VerifyError),
    /// Not to be encrypted or opened.
    #[error(transparent)]
    Cipher(#[from] Nip44Error),
    /// What is inside is no body.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// The body is of another slug than the tag.
    #[error("the engram's body is of {0}, but its d tag is not")]
    Foreign(Slug),
}

impl Memory {
    /// The memory of the agent that holds `keys`.
    pub fn of_agent(keys: &Keys, owner: &PublicKey) -> Result<Self, Nip44Error> {
        let key = ConversationKey::new(keys, owner)?;
        Ok(Self { agent: keys.public_key(), owner: *owner, key })
    }

    /// The memory of `agent`, as its owner, who holds `keys`, reads it.
    pub fn of_owner(keys: &Keys, agent: &PublicKey) -> Result<Self, Nip44Error> {
        let key = ConversationKey::new(keys, agent)?;
        Ok(Self { agent: *agent, owner: keys.public_key(), key })
    }

    /// The `d` tag of a slug: 64 hex digits.
    pub fn d_tag(&self, slug: &Slug) -> String {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(self.key.as_bytes()) else {
            unreachable!("HMAC takes keys of any length")
        };
        mac.update(D_TAG_LABEL);
        mac.update(slug.as_str().as_bytes());
        hex::encode(mac.finalize().into_bytes())
    }

    /// What asks a relay for the versions of one slug.
    pub fn head_filter(&self, slug: &Slug) -> Filter {
        self.filter().tag('d', [self.d_tag(slug)]).limit(HEAD_LIMIT)
    }

    /// What asks a relay for all engrams.
    pub fn list_filter(&self) -> Filter {
        self.filter().limit(LIST_LIMIT)
    }

    fn filter(&self) -> Filter {
        Filter::new().kinds([ENGRAM]).authors([self.agent]).tag('p', [self.owner.to_hex()])
    }

    /// The draft of an engram, for the agent to sign as it is: no other tag may be added.
    pub fn draft(&self, body: &Body, created_at: u64) -> Result<Draft, EngramError> {
        let sealed = self.key.encrypt(&body.to_json()?)?;
        Ok(self.sealed_draft(body.slug(), sealed, created_at))
    }

    /// As [`Memory::draft`], with a nonce that the caller must never use twice.
    pub fn draft_with(&self, body: &Body, created_at: u64, nonce: [u8; 32]) -> Result<Draft, EngramError> {
        let sealed = self.key.encrypt_with(&body.to_json()?, nonce)?;
        Ok(self.sealed_draft(body.slug(), sealed, created_at))
    }

    fn sealed_draft(&self, slug: &Slug, sealed: String, created_at: u64) -> Draft {
        Draft::new(ENGRAM, sealed, created_at).tag(["d", &self.d_tag(slug)]).tag(["p", &self.owner.to_hex()])
    }

    /// Opens an engram after every check: shape, author, owner, signature, cipher, body, slug.
    pub fn open(&self, event: &Event) -> Result<Body, EngramError> {
        let (d, owner) = check_envelope(event)?;
        if owner != self.owner {
            return Err(EngramError::Envelope("its p tag names another owner"));
        }
        if event.pubkey != self.agent {
            return Err(EngramError::Author(event.pubkey));
        }
        event.verify()?;
        let body = Body::parse(&self.key.decrypt(&event.content)?)?;
        match self.d_tag(body.slug()) == d {
            true => Ok(body),
            false => Err(EngramError::Foreign(body.slug().clone())),
        }
    }
}

/// Checks what anybody can see of an engram, as a relay does: its kind, one `d` and one `p` of 64 lower-case
/// hex digits, and content that looks encrypted. Gives the `d` value and the owner.
pub fn check_envelope(event: &Event) -> Result<(&str, PublicKey), EngramError> {
    let bad = |why| Err(EngramError::Envelope(why));
    if event.kind != ENGRAM {
        return bad("its kind is not 30174");
    }
    let Some(d) = event.only_hex("d") else {
        return bad("it needs exactly one d tag of 64 lower-case hex digits");
    };
    let Some(owner) = event.only_hex("p").and_then(|owner| owner.parse().ok()) else {
        return bad("it needs exactly one p tag of 64 lower-case hex digits");
    };
    if !looks_encrypted(&event.content) {
        return bad("its content is no NIP-44 version 2 message");
    }
    Ok((d, owner))
}

/// The version that counts of events that are versions of one thing: the newest, and of two of one second
/// that with the lower id.
pub fn head<'a>(versions: impl IntoIterator<Item = &'a Event>) -> Option<&'a Event> {
    versions.into_iter().max_by_key(|event| (event.created_at, std::cmp::Reverse(event.id)))
}

/// The time of a new version, in seconds: now, or just behind the head, so that it becomes the head.
pub fn next_created_at(now: u64, head: Option<u64>) -> u64 {
    head.map_or(now, |head| now.max(head.saturating_add(1)))
}

#[cfg(test)]
mod tests;
