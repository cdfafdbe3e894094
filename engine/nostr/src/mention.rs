//! Mentions: who a message calls, by key, by `nostr:` URI or by name.
//!
//! Three steps, so that a command asks the relay for no more than it needs: [`Mentions::read`] looks at the
//! text; if it [`needs_members`](Mentions::needs_members), the channel's list is fetched; if it
//! [`needs_names`](Mentions::needs_names), the members' profiles; [`Mentions::resolve`] then says who it is.

mod code;
mod scan;

pub use code::blank_code;
pub use scan::{names, uris};

use crate::event::Tag;
use crate::id::PublicKey;

/// The most that one message mentions.
pub const MAX_MENTIONS: usize = 50;

/// What a message says of whom it calls, before names are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mentions {
    blanked: String,
    identities: Vec<PublicKey>,
}

/// A member of a channel and the name its profile gives, if any: see [`crate::profile::name`].
pub type Named = (PublicKey, Option<String>);

/// Why a message cannot be sent to whom it calls.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MentionError {
    /// No member of the channel has the name.
    #[error(
        "no member of this channel is called {0:?}; write the whole display name, or give the key with --mention"
    )]
    Unknown(String),
    /// Several members have it.
    #[error("{} members are called {name:?} ({}); give one of these keys with --mention", .candidates.len(), list(.candidates))]
    Ambiguous {
        /// The name in lower case.
        name: String,
        /// Who has it, in the order of the members.
        candidates: Vec<PublicKey>,
    },
    /// More than a message may mention.
    #[error("{0} mentions, at most {MAX_MENTIONS} are taken; mention fewer")]
    TooMany(usize),
    /// These are no members of the channel.
    #[error("not members of this channel: {}; add them first, or do not mention them", list(.0))]
    NotMembers(Vec<PublicKey>),
}

fn list(keys: &[PublicKey]) -> String {
    keys.iter().map(PublicKey::to_hex).collect::<Vec<_>>().join(", ")
}

impl Mentions {
    /// Reads a text and the keys that were given beside it. Code in the text calls nobody.
    pub fn read(text: &str, explicit: &[PublicKey]) -> Result<Self, MentionError> {
        let blanked = blank_code(text);
        let explicit = unique(explicit.iter().copied());
        let checked = within_limit(explicit)?;
        let identities = unique(checked.into_iter().chain(uris(&blanked)));
        Ok(Self { blanked, identities })
    }

    /// Whether somebody is named by key: then a name that fits nobody is plain text, not an error.
    pub fn has_identity(&self) -> bool {
        !self.identities.is_empty()
    }

    /// Whether the channel's members must be known to resolve this.
    pub fn needs_members(&self) -> bool {
        self.has_identity() || self.needs_names()
    }

    /// Whether the members' names must be known too.
    pub fn needs_names(&self) -> bool {
        self.blanked.contains('@')
    }

    /// Who is mentioned: keys that were given, then URIs, then names, each once.
    pub fn resolve(&self, members: &[PublicKey], profiles: &[Named]) -> Result<Vec<PublicKey>, MentionError> {
        let profiles: Vec<_> = profiles
            .iter()
            .filter(|(key, _)| members.contains(key))
            .filter_map(|(key, name)| Some((*key, name.as_deref()?)))
            .collect();
        let known: Vec<_> = profiles.iter().map(|(_, name)| *name).collect();
        let mut mentioned = self.identities.clone();
        for name in names(&self.blanked, &known) {
            mentioned.extend(self.bearer(name, &profiles)?);
        }
        let mentioned = within_limit(unique(mentioned))?;
        let missing: Vec<_> = mentioned.iter().filter(|key| !members.contains(key)).copied().collect();
        match missing.is_empty() {
            true => Ok(mentioned),
            false => Err(MentionError::NotMembers(missing)),
        }
    }

    fn bearer(
        &self,
        name: String,
        profiles: &[(PublicKey, &str)],
    ) -> Result<Option<PublicKey>, MentionError> {
        let bearers = profiles.iter().filter(|(_, known)| known.eq_ignore_ascii_case(&name));
        let candidates = unique(bearers.map(|(key, _)| *key));
        match candidates.as_slice() {
            [key] => Ok(Some(*key)),
            _ if self.has_identity() => Ok(None),
            [] => Err(MentionError::Unknown(name)),
            _ => Err(MentionError::Ambiguous { name, candidates }),
        }
    }
}

/// The `p` tags of a message: each key once, in order, without the sender where one is given.
pub fn tags(mentioned: &[PublicKey], sender: Option<&PublicKey>) -> Result<Vec<Tag>, MentionError> {
    let keys = within_limit(unique(mentioned.iter().copied()))?;
    let others = keys.iter().filter(|key| Some(*key) != sender);
    Ok(others.map(|key| vec!["p".to_owned(), key.to_hex()]).collect())
}

fn unique(keys: impl IntoIterator<Item = PublicKey>) -> Vec<PublicKey> {
    let mut seen = Vec::new();
    for key in keys {
        if !seen.contains(&key) {
            seen.push(key);
        }
    }
    seen
}

fn within_limit(keys: Vec<PublicKey>) -> Result<Vec<PublicKey>, MentionError> {
    match keys.len() {
        count if count > MAX_MENTIONS => Err(MentionError::TooMany(count)),
        _ => Ok(keys),
    }
}

#[cfg(test)]
mod tests;
