//! Channels as the store keeps them.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use waxlog_nostr::channel::{ChannelId, Role};
use waxlog_nostr::PublicKey;

use super::Channel;
use crate::store::record::{pack, unpack};
use crate::store::StoreError;

#[derive(Serialize, Deserialize)]
struct Packed {
    id: [u8; 16],
    name: String,
    about: Option<String>,
    kind: String,
    visibility: String,
    topic: Option<String>,
    purpose: Option<String>,
    model: Option<String>,
    ttl_secs: Option<u64>,
    ttl_deadline: Option<u64>,
    archived: bool,
    deleted: bool,
    members: Vec<([u8; 32], u8)>,
    dm_of: Option<Vec<[u8; 32]>>,
    hidden_by: Vec<[u8; 32]>,
    announced_at: u64,
}

impl Channel {
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, StoreError> {
        let bytes =
            |keys: &std::collections::BTreeSet<PublicKey>| keys.iter().map(|key| *key.as_bytes()).collect();
        pack(&Packed {
            id: *self.id.as_bytes(),
            name: self.name.clone(),
            about: self.about.clone(),
            kind: self.kind.as_str().to_owned(),
            visibility: self.visibility.as_str().to_owned(),
            topic: self.topic.clone(),
            purpose: self.purpose.clone(),
            model: self.model.clone(),
            ttl_secs: self.ttl_secs,
            ttl_deadline: self.ttl_deadline,
            archived: self.archived,
            deleted: self.deleted,
            members: self.members.iter().map(|(key, role)| (*key.as_bytes(), role_number(*role))).collect(),
            dm_of: self.dm_of.as_ref().map(bytes),
            hidden_by: bytes(&self.hidden_by),
            announced_at: self.announced_at,
        })
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, StoreError> {
        let packed: Packed = unpack(bytes)?;
        let members =
            packed.members.into_iter().map(|(key, number)| Ok((PublicKey::from_bytes(key), role(number)?)));
        Ok(Self {
            id: ChannelId::from_bytes(packed.id),
            name: packed.name,
            about: packed.about,
            kind: word(&packed.kind)?,
            visibility: word(&packed.visibility)?,
            topic: packed.topic,
            purpose: packed.purpose,
            model: packed.model,
            ttl_secs: packed.ttl_secs,
            ttl_deadline: packed.ttl_deadline,
            archived: packed.archived,
            deleted: packed.deleted,
            members: members.collect::<Result<_, StoreError>>()?,
            dm_of: packed.dm_of.map(|keys| keys.into_iter().map(PublicKey::from_bytes).collect()),
            hidden_by: packed.hidden_by.into_iter().map(PublicKey::from_bytes).collect(),
            announced_at: packed.announced_at,
        })
    }
}

fn word<T: FromStr<Err = impl std::fmt::Display>>(text: &str) -> Result<T, StoreError> {
    text.parse().map_err(|error| StoreError(format!("a stored channel is damaged: {error}")))
}

fn role_number(role: Role) -> u8 {
    match role {
        Role::Owner => 0,
        Role::Admin => 1,
        Role::Member => 2,
        Role::Guest => 3,
        Role::Bot => 4,
    }
}

fn role(number: u8) -> Result<Role, StoreError> {
    Role::ALL
        .iter()
        .copied()
        .find(|role| role_number(*role) == number)
        .ok_or_else(|| StoreError(format!("a stored channel has a member of the unknown role {number}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use waxlog_nostr::channel::{ChannelType, Visibility};
    use waxlog_nostr::Keys;

    #[test]
    fn a_channel_survives_its_bytes() {
        let key = Keys::generate().public_key();
        let id = ChannelId::from_random([3; 16]);
        let mut channel = Channel::new(id, "general".into(), ChannelType::Dm, Visibility::Private);
        channel.members = Role::ALL.iter().map(|role| (Keys::generate().public_key(), *role)).collect();
        channel.dm_of = Some([key].into());
        channel.hidden_by = [key].into();
        channel.ttl_secs = Some(7);
        assert_eq!(Channel::from_bytes(&channel.to_bytes().unwrap()), Ok(channel));
    }
}
