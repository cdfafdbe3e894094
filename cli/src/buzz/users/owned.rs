//! `users get --owner`: the agents of an owner by name, each with how far its ownership is proved.

use std::collections::{BTreeSet, HashMap};

use serde_json::{json, Map, Value};
use waxlog_nostr::kind::{MANAGED_AGENT, PROFILE};
use waxlog_nostr::owner::OwnerTag;
use waxlog_nostr::{Event, Filter, PublicKey};

use super::super::context::{Context, PAGE_EVENTS};
use super::super::failure::{as_usage, Failure};
use super::super::output::{Format, Output};
use super::shown_name;

/// The most agents of one owner that are looked at.
const MAX_AGENTS: usize = 10_000;
/// The word for one's own owner.
const ME: &str = "me";

pub(super) fn get(context: &Context, name: &str, owner: &str) -> Result<Output, Failure> {
    let owner = match owner {
        ME => context.effective_owner(),
        key => PublicKey::parse(key).map_err(as_usage)?,
    };
    let all = context.pages(&Filter::new().kinds([MANAGED_AGENT]).authors([owner]), MAX_AGENTS)?;
    let is_named = |event: &&Event| {
        let content: Value = serde_json::from_str(&event.content).unwrap_or_default();
        content["name"].as_str().is_some_and(|known| known.to_lowercase() == name.to_lowercase())
    };
    let agents: BTreeSet<&str> = all.iter().filter(is_named).map(Event::identifier).collect();
    let keys: Vec<PublicKey> = agents.iter().filter_map(|agent| agent.parse().ok()).collect();
    let mut profiles = HashMap::new();
    for some in keys.chunks(PAGE_EVENTS) {
        let filter = Filter::new().kinds([PROFILE]).authors(some.iter().copied()).limit(some.len());
        profiles.extend(context.query(&[filter])?.into_iter().map(|event| (event.pubkey, event)));
    }
    let items = agents.iter().map(|agent| {
        let key = agent.parse().ok();
        let profile = key.and_then(|key: PublicKey| profiles.get(&key));
        let proof = match key {
            None => Proof::InvalidAgentPubkey,
            Some(_) => Proof::of(profile, &owner),
        };
        item(agent, profile, proof, &owner, &context.effective_owner(), context.format())
    });
    Ok(Value::from(items.collect::<Vec<_>>()).into())
}

/// How far it is proved that an agent is its owner's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proof {
    Verified,
    MissingProfile,
    MissingAuth,
    MultipleAuthTags,
    InvalidAuth,
    InvalidAgentPubkey,
    OwnerMismatch,
    ConditionMismatch,
}

impl Proof {
    fn of(profile: Option<&Event>, owner: &PublicKey) -> Proof {
        let Some(profile) = profile else { return Proof::MissingProfile };
        let mut tags = profile.tags_named("auth");
        let tag = match (tags.next(), tags.next()) {
            (None, _) => return Proof::MissingAuth,
            (_, Some(_)) => return Proof::MultipleAuthTags,
            (Some(tag), None) => tag,
        };
        let tag = OwnerTag::from_tag(tag).and_then(|tag| tag.verify(&profile.pubkey).map(|()| tag));
        match tag {
            Err(_) => Proof::InvalidAuth,
            Ok(tag) if tag.owner != *owner => Proof::OwnerMismatch,
            Ok(tag) if !tag.allows(profile.kind, profile.created_at) => Proof::ConditionMismatch,
            Ok(_) => Proof::Verified,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Proof::Verified => "verified",
            Proof::MissingProfile => "missing_profile",
            Proof::MissingAuth => "missing_auth",
            Proof::MultipleAuthTags => "multiple_auth_tags",
            Proof::InvalidAuth => "invalid_auth",
            Proof::InvalidAgentPubkey => "invalid_agent_pubkey",
            Proof::OwnerMismatch => "owner_mismatch",
            Proof::ConditionMismatch => "condition_mismatch",
        }
    }
}

fn item(
    agent: &str,
    profile: Option<&Event>,
    proof: Proof,
    owner: &PublicKey,
    own: &PublicKey,
    format: Format,
) -> Value {
    let fields = profile.and_then(|event| serde_json::from_str::<Map<_, _>>(&event.content).ok());
    let mut fields = match (fields, format) {
        (Some(fields), Format::Json) => fields,
        (Some(fields), Format::Compact) => {
            Map::from_iter([("display_name".to_owned(), json!(shown_name(&fields)))])
        }
        (None, _) => Map::new(),
    };
    let is_verified = proof == Proof::Verified;
    // A profile cannot say these of itself.
    fields.remove("owner_pubkey");
    fields.insert("pubkey".to_owned(), json!(agent));
    fields.insert("verification".to_owned(), json!(proof.word()));
    fields.insert("owned_by_me".to_owned(), json!(is_verified && owner == own));
    if is_verified {
        fields.insert("owner_pubkey".to_owned(), json!(owner));
    }
    fields.into()
}

#[cfg(test)]
mod tests {
    use waxlog_nostr::{Draft, Keys};

    use super::*;

    fn tag(owner: &Keys, agent: &Keys, conditions: &str) -> Vec<String> {
        OwnerTag::issue(owner, &agent.public_key(), conditions).unwrap().to_tag()
    }

    #[test]
    fn each_way_to_fail_a_proof_has_its_word() {
        let (owner, other, agent) = (Keys::generate(), Keys::generate(), Keys::generate());
        let proof = |tags: &[Vec<String>]| {
            let draft = tags.iter().fold(Draft::new(PROFILE, "{}", 10), |draft, tag| draft.tag(tag.clone()));
            Proof::of(Some(&agent.sign(draft)), &owner.public_key()).word()
        };
        let good = tag(&owner, &agent, "kind=0");
        assert_eq!(proof(std::slice::from_ref(&good)), "verified");
        assert_eq!(proof(&[]), "missing_auth");
        assert_eq!(proof(&[good.clone(), good]), "multiple_auth_tags");
        assert_eq!(proof(&[vec!["auth".to_owned()]]), "invalid_auth");
        assert_eq!(proof(&[tag(&owner, &other, "")]), "invalid_auth");
        assert_eq!(proof(&[tag(&other, &agent, "")]), "owner_mismatch");
        assert_eq!(proof(&[tag(&owner, &agent, "created_at<10")]), "condition_mismatch");
        assert_eq!(Proof::of(None, &owner.public_key()).word(), "missing_profile");
    }

    #[test]
    fn a_profile_cannot_prove_itself_by_its_content() {
        let (owner, agent) = (Keys::generate().public_key(), Keys::generate());
        let claims = r#"{"owner_pubkey":"x","verification":"verified","owned_by_me":true,"name":"n"}"#;
        let profile = agent.sign(Draft::new(PROFILE, claims, 1));
        let shown = item("k", Some(&profile), Proof::MissingAuth, &owner, &owner, Format::Json);
        let wanted =
            json!({"name": "n", "pubkey": "k", "verification": "missing_auth", "owned_by_me": false});
        assert_eq!(shown, wanted);
    }
}
