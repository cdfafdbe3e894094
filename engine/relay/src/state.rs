//! What the relay keeps in memory: channels, whose agent is whose, and who may be added by whom. All of it
//! is in the store as well and read from there at the start.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use waxlog_nostr::channel::AddPolicy;
use waxlog_nostr::PublicKey;

use crate::channel::{Channel, ChannelId};
use crate::index::Index;
use crate::store::{key, Store, StoreError};

/// The relay's memory.
#[derive(Default)]
pub(crate) struct State {
    channels: HashMap<ChannelId, Arc<Channel>>,
    direct: HashMap<BTreeSet<PublicKey>, ChannelId>,
    owners: HashMap<PublicKey, PublicKey>,
    policies: HashMap<PublicKey, AddPolicy>,
    kinds: BTreeSet<u16>,
    trusted: Option<PublicKey>,
}

/// What one submission changes of it.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) channels: BTreeMap<ChannelId, Channel>,
    pub(crate) owners: BTreeMap<PublicKey, PublicKey>,
    pub(crate) policies: BTreeMap<PublicKey, AddPolicy>,
    pub(crate) kinds: BTreeSet<u16>,
}

impl Changes {
    /// Whether the state is the same with them.
    pub(crate) fn is_empty(&self, state: &State) -> bool {
        self.channels.is_empty()
            && self.owners.is_empty()
            && self.policies.is_empty()
            && self.kinds.is_subset(&state.kinds)
    }
}

impl State {
    pub(crate) fn load(store: &Store, index: &Index, trusted: Option<PublicKey>) -> Result<Self, StoreError> {
        let mut state = Self { trusted, ..Self::default() };
        let mut changes = Changes::default();
        let mut channels = store.scan(&key::channels(), &key::channels());
        while let Some(channel) = channels.next_with(|_, value| Channel::from_bytes(value))? {
            changes.channels.insert(channel.id, channel);
        }
        let mut owners = store.scan(&key::owners(), &key::owners());
        while let Some((agent, owner)) =
            owners.next_with(|key, value| Ok((pubkey(&key[1..])?, pubkey(value)?)))?
        {
            changes.owners.insert(agent, owner);
        }
        let mut policies = store.scan(&key::policies(), &key::policies());
        while let Some((of, policy)) =
            policies.next_with(|key, value| Ok((pubkey(&key[1..])?, policy(value)?)))?
        {
            changes.policies.insert(of, policy);
        }
        changes.kinds = kinds_in(store, index)?;
        state.take(changes);
        Ok(state)
    }

    pub(crate) fn take(&mut self, changes: Changes) {
        for (id, channel) in changes.channels {
            if let (Some(people), false) = (&channel.dm_of, channel.deleted) {
                self.direct.insert(people.clone(), id);
            } else if let Some(people) = &channel.dm_of {
                self.direct.remove(people);
            }
            self.channels.insert(id, Arc::new(channel));
        }
        self.owners.extend(changes.owners);
        self.policies.extend(changes.policies);
        self.kinds.extend(changes.kinds);
    }

    /// A channel that was not deleted.
    pub(crate) fn channel(&self, id: &ChannelId) -> Option<&Arc<Channel>> {
        self.channels.get(id).filter(|channel| !channel.deleted)
    }

    /// Whether a channel has or had this id.
    pub(crate) fn is_taken(&self, id: &ChannelId) -> bool {
        self.channels.contains_key(id)
    }

    pub(crate) fn channels(&self) -> impl Iterator<Item = &Arc<Channel>> {
        self.channels.values()
    }

    /// The direct conversation of exactly these people.
    pub(crate) fn direct(&self, people: &BTreeSet<PublicKey>) -> Option<&Arc<Channel>> {
        self.channel(self.direct.get(people)?)
    }

    pub(crate) fn owner_of(&self, agent: &PublicKey) -> Option<PublicKey> {
        self.owners.get(agent).copied()
    }

    /// Whether `owner` is the attested owner of `agent`.
    pub(crate) fn owns(&self, owner: &PublicKey, agent: &PublicKey) -> bool {
        self.owners.get(agent) == Some(owner)
    }

    pub(crate) fn policy(&self, of: &PublicKey) -> AddPolicy {
        self.policies.get(of).copied().unwrap_or(AddPolicy::Anyone)
    }

    /// The kinds that are or were stored.
    pub(crate) fn kinds(&self) -> &BTreeSet<u16> {
        &self.kinds
    }

    /// Whether a key may read a channel, and write to it while it is not archived.
    pub(crate) fn admits(&self, id: &ChannelId, pubkey: &PublicKey) -> bool {
        self.channel(id).is_some_and(|channel| channel.admits(pubkey) || self.trusted == Some(*pubkey))
    }

    /// Whether a key counts as a member of a channel.
    pub(crate) fn is_member(&self, id: &ChannelId, pubkey: &PublicKey) -> bool {
        self.channel(id).is_some_and(|channel| channel.is_member(pubkey) || self.trusted == Some(*pubkey))
    }
}

/// The kinds in the store, one seek for each.
fn kinds_in(store: &Store, index: &Index) -> Result<BTreeSet<u16>, StoreError> {
    let mut kinds = BTreeSet::new();
    let mut from = Some(key::kinds().to_vec());
    while let Some(start) = from {
        let found = index.scan(store, &key::kinds(), &start)?.next_key()?;
        let found = found.as_deref().and_then(key::kind_of);
        from = found.and_then(|kind| key::after(&key::by_kind(kind)));
        kinds.extend(found);
    }
    Ok(kinds)
}

fn pubkey(bytes: &[u8]) -> Result<PublicKey, StoreError> {
    let bytes = bytes.try_into().map_err(|_| StoreError("a stored key has a wrong length".into()))?;
    Ok(PublicKey::from_bytes(bytes))
}

fn policy(bytes: &[u8]) -> Result<AddPolicy, StoreError> {
    let text = String::from_utf8_lossy(bytes);
    text.parse().map_err(|error| StoreError(format!("a stored policy is damaged: {error}")))
}
