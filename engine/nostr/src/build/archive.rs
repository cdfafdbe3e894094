//! Archived identities (NIP-IA): the requests, kinds 9035 and 9036.

use super::{check_bytes, BuildError};
use crate::event::{Draft, Event, Tag};
use crate::id::PublicKey;
use crate::kind::{ARCHIVE_IDENTITY, UNARCHIVE_IDENTITY};
use crate::owner::OwnerTag;

/// Longest reason, in bytes.
pub const MAX_REASON_BYTES: usize = 64;

/// What a request says beside whom it is about.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Why, as a word for programs: at most [`MAX_REASON_BYTES`], no control characters.
    pub reason: Option<String>,
    /// Who takes the place of an archived identity.
    pub replaced_by: Option<PublicKey>,
    /// Why, in words.
    pub content: String,
    /// The signer's word that the identity is theirs: see [`consent_of`].
    pub consent: Option<Tag>,
}

/// Asks the relay to archive an identity. To be signed as it is: no other tag may be added.
pub fn archive(target: &PublicKey, request: Request, now: u64) -> Result<Draft, BuildError> {
    if request.replaced_by.as_ref() == Some(target) {
        return Err(BuildError::Together("an archived identity cannot be replaced by itself"));
    }
    build(ARCHIVE_IDENTITY, target, request, now)
}

/// Asks the relay to bring an identity back. To be signed as it is: no other tag may be added.
pub fn unarchive(target: &PublicKey, request: Request, now: u64) -> Result<Draft, BuildError> {
    build(UNARCHIVE_IDENTITY, target, Request { replaced_by: None, ..request }, now)
}

fn build(kind: u16, target: &PublicKey, request: Request, now: u64) -> Result<Draft, BuildError> {
    let mut draft = Draft::new(kind, request.content, now).tag(["-"]).tag(["p", &target.to_hex()]);
    if let Some(reason) = &request.reason {
        check_bytes("the reason", reason, MAX_REASON_BYTES)?;
        if reason.chars().any(char::is_control) {
            return Err(BuildError::invalid("the reason", "without control characters", reason));
        }
        draft = draft.tag(["reason", reason]);
    }
    if let Some(key) = &request.replaced_by {
        draft = draft.tag(["replaced-by", &key.to_hex()]);
    }
    draft.tags.extend(request.consent);
    Ok(draft)
}

/// The `auth` tag of a profile, if it is the only one, has four elements and names `signer` as the owner.
pub fn consent_of(profile: &Event, signer: &PublicKey) -> Option<Tag> {
    let mut tags = profile.tags_named("auth");
    let (tag, None) = (tags.next()?, tags.next()) else { return None };
    let owner = OwnerTag::from_tag(tag).ok()?.owner;
    (owner == *signer).then(|| tag.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Keys;

    const TARGET: PublicKey = PublicKey::from_bytes([7; 32]);

    fn with_reason(reason: &str) -> Request {
        Request { reason: Some(reason.into()), ..Request::default() }
    }

    #[test]
    fn a_request_has_its_tags_in_order() {
        let other = PublicKey::from_bytes([8; 32]);
        let consent = vec!["auth".to_owned(), "a".into(), "b".into(), "c".into()];
        let request = Request {
            replaced_by: Some(other),
            content: "after the rebuild".into(),
            consent: Some(consent.clone()),
            ..with_reason("bot-rebuilt")
        };
        let draft = archive(&TARGET, request.clone(), 5).unwrap();
        let tags = |draft: &Draft| draft.tags.iter().map(|tag| tag.join(" ")).collect::<Vec<_>>();
        let (p, replaced) = (format!("p {TARGET}"), format!("replaced-by {other}"));
        assert_eq!((draft.kind, draft.content.as_str()), (9035, "after the rebuild"));
        assert_eq!(tags(&draft), ["-", &p, "reason bot-rebuilt", &replaced, &consent.join(" ")]);
        let back = unarchive(&TARGET, request, 5).unwrap();
        assert_eq!(back.kind, 9036);
        assert_eq!(tags(&back), ["-", &p, "reason bot-rebuilt", &consent.join(" ")]);
    }

    #[test]
    fn the_request_of_a_known_event_has_the_known_id() {
        let owner = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
        let agent = "c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5".parse().unwrap();
        let signature = "8b7df2575caf0a108374f8471722b233c53f9ff827a8b0f91861966c3b9dd5cb2e189eae9f49d72187674c2f5bd244145e10ff86c9f257ffe65a1ee5f108b369";
        let consent = ["auth", owner, "kind=1&created_at<1713957000", signature].map(String::from).to_vec();
        let request = Request {
            content: "Archiving zombie agent after rebuild.".into(),
            consent: Some(consent),
            ..with_reason("bot-rebuilt")
        };
        let draft = archive(&agent, request, 1_713_956_400).unwrap();
        let id = draft.id(&owner.parse().unwrap()).to_hex();
        assert_eq!(id, "3eb98c5200ee3b0280471131c0e63b5a3a3b6049a3c51ee4f425e649a45389d8");
    }

    #[test]
    fn a_reason_is_short_and_printable() {
        assert!(archive(&TARGET, with_reason(&"x".repeat(64)), 5).is_ok());
        for reason in ["x".repeat(65), "a\nb".to_owned(), "\u{7f}".to_owned()] {
            assert!(archive(&TARGET, with_reason(&reason), 5).is_err(), "{reason:?}");
        }
    }

    #[test]
    fn nobody_replaces_itself() {
        let request = Request { replaced_by: Some(TARGET), ..Request::default() };
        assert!(archive(&TARGET, request, 5).is_err());
    }

    #[test]
    fn consent_is_the_only_tag_that_names_the_signer() {
        let (owner, agent, other) = (Keys::generate(), Keys::generate(), Keys::generate());
        let tag = OwnerTag::issue(&owner, &agent.public_key(), "").unwrap().to_tag();
        let one = Draft::new(0, "{}", 1).tag(tag.clone());
        let two = one.clone().tag(tag.clone());
        assert_eq!(consent_of(&agent.sign(one.clone()), &owner.public_key()), Some(tag));
        assert_eq!(consent_of(&agent.sign(one), &other.public_key()), None);
        assert_eq!(consent_of(&agent.sign(two), &owner.public_key()), None);
    }
}
