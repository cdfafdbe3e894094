//! What an agent's turn cost (kind 44200, NIP-AM): the payload, sealed for the owner, and its envelope.
//!
//! A counter that is not known is absent, which is never the same as zero.

mod payload;

pub use payload::{harness_name, Payload, PayloadError, StopReason, TokenCounts};

use crate::event::{Draft, Event, VerifyError};
use crate::filter::Filter;
use crate::id::PublicKey;
use crate::keys::Keys;
use crate::kind::TURN_METRIC;
use crate::nip44::{looks_encrypted, ConversationKey, Nip44Error};

/// Why an event is no metric, or a payload cannot be one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetricError {
    /// The kind, the tags or the outer form of the content are not a metric's.
    #[error("not a turn metric: {0}")]
    Envelope(&'static str),
    /// Meant for another owner.
    #[error("the turn metric is for the owner {0}; use that owner's key")]
    Owner(PublicKey),
    /// Not signed by whom it names.
    #[error(transparent)]
    Event(#[from] VerifyError),
    /// Not to be encrypted or opened.
    #[error(transparent)]
    Cipher(#[from] Nip44Error),
    /// What is inside counts nothing.
    #[error(transparent)]
    Payload(#[from] PayloadError),
}

/// Seals a payload for the owner and signs it. Two calls give two events, which no relay can tell are one: who
/// must not publish twice keeps the first.
pub fn build(
    agent: &Keys,
    owner: &PublicKey,
    payload: &Payload,
    created_at: u64,
) -> Result<Event, MetricError> {
    let text = payload.to_json()?;
    let sealed = ConversationKey::new(agent, owner)?.encrypt(&text)?;
    let draft = Draft::new(TURN_METRIC, sealed, created_at)
        .tag(["p", &owner.to_hex()])
        .tag(["agent", &agent.public_key().to_hex()]);
    Ok(agent.sign(draft))
}

/// Opens a metric with the owner's key after every check: envelope, addressee, signature, cipher, payload.
pub fn open(owner: &Keys, event: &Event) -> Result<Payload, MetricError> {
    let addressee = check_envelope(event)?;
    if addressee != owner.public_key() {
        return Err(MetricError::Owner(addressee));
    }
    event.verify()?;
    let text = ConversationKey::new(owner, &event.pubkey)?.decrypt(&event.content)?;
    Ok(Payload::parse(&text)?)
}

/// Checks what anybody can see of a metric, as a relay does: its kind, one `p` and one `agent` of 64
/// lower-case hex digits, the agent being the author, no `h`, and content that looks encrypted. Gives the
/// owner, whom only a relay's own record can prove to be one.
pub fn check_envelope(event: &Event) -> Result<PublicKey, MetricError> {
    let bad = |why| Err(MetricError::Envelope(why));
    if event.kind != TURN_METRIC {
        return bad("its kind is not 44200");
    }
    if event.tags_named("h").next().is_some() {
        return bad("it must not have an h tag");
    }
    let Some(owner) = event.only_hex("p").and_then(|owner| owner.parse().ok()) else {
        return bad("it needs exactly one p tag of 64 lower-case hex digits");
    };
    match event.only_hex("agent") {
        None => bad("it needs exactly one agent tag of 64 lower-case hex digits"),
        Some(agent) if agent != event.pubkey.to_hex() => bad("its agent tag does not name its author"),
        Some(_) if !looks_encrypted(&event.content) => bad("its content is no NIP-44 version 2 message"),
        Some(_) => Ok(owner),
    }
}

/// What asks a relay for the metrics of all of an owner's agents since a time.
pub fn filter(owner: &PublicKey, since: u64) -> Filter {
    Filter::new().kinds([TURN_METRIC]).tag('p', [owner.to_hex()]).since(since)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Signature;

    fn payload() -> Payload {
        Payload::new("buzz-agent", "2026-07-01T20:11:03.213Z")
    }

    #[test]
    fn the_owner_opens_a_metric_and_others_do_not() {
        let (agent, owner, other) = (Keys::generate(), Keys::generate(), Keys::generate());
        let event = build(&agent, &owner.public_key(), &payload(), 7).unwrap();
        assert_eq!(event.tags.len(), 2);
        assert_eq!((event.tags[0][0].as_str(), event.tags[1][0].as_str()), ("p", "agent"));
        assert!(filter(&owner.public_key(), 7).matches(&event, None));
        assert_eq!(open(&owner, &event), Ok(payload()));
        assert_eq!(open(&other, &event), Err(MetricError::Owner(owner.public_key())));
    }

    #[test]
    fn a_metric_sealed_for_another_key_stays_closed() {
        let (agent, owner, other) = (Keys::generate(), Keys::generate(), Keys::generate());
        let sealed = build(&agent, &other.public_key(), &payload(), 7).unwrap().content;
        let tags = build(&agent, &owner.public_key(), &payload(), 7).unwrap().tags;
        let event = agent.sign(Draft { kind: TURN_METRIC, tags, content: sealed, created_at: 7 });
        assert_eq!(open(&owner, &event), Err(MetricError::Cipher(Nip44Error::Closed)));
    }

    #[test]
    fn a_forged_metric_is_not_opened() {
        let (agent, owner) = (Keys::generate(), Keys::generate());
        let event = build(&agent, &owner.public_key(), &payload(), 7).unwrap();
        let forged = Event { sig: Signature::from_bytes([0; 64]), ..event };
        assert!(matches!(open(&owner, &forged), Err(MetricError::Event(_))));
    }

    #[test]
    fn a_cost_that_is_none_is_refused_by_the_writer_and_by_the_reader() {
        let (agent, owner) = (Keys::generate(), Keys::generate());
        let key = ConversationKey::new(&agent, &owner.public_key()).unwrap();
        for cost in [-0.001, -1.0, f64::NAN, f64::INFINITY] {
            let counts = TokenCounts { cost_usd: Some(cost), ..TokenCounts::default() };
            let bad = Payload { turn: Some(counts), ..payload() };
            let refused = build(&agent, &owner.public_key(), &bad, 7);
            assert!(matches!(refused, Err(MetricError::Payload(PayloadError::Cost(_)))), "{cost}");
        }
        let text = r#"{"harness":"h","timestamp":"t","turn":{"costUsd":-1}}"#;
        let tags = build(&agent, &owner.public_key(), &payload(), 7).unwrap().tags;
        let content = key.encrypt(text).unwrap();
        let raw = agent.sign(Draft { kind: TURN_METRIC, tags, content, created_at: 7 });
        assert_eq!(open(&owner, &raw), Err(MetricError::Payload(PayloadError::Cost("-1".to_owned()))));
    }

    #[test]
    fn the_envelope_needs_one_owner_the_author_as_agent_no_channel_and_a_cipher() {
        let (agent, owner) = (Keys::generate(), Keys::generate());
        let event = build(&agent, &owner.public_key(), &payload(), 7).unwrap();
        let Event { kind, tags, content, created_at, .. } = event;
        let good = Draft { kind, tags, content, created_at };
        assert_eq!(check_envelope(&agent.sign(good.clone())), Ok(owner.public_key()));
        let tolerated = good.clone().tag(["alt", "x"]).tag(["expiration", "9"]);
        assert!(check_envelope(&agent.sign(tolerated)).is_ok());
        type Change = fn(&mut Draft);
        let changes: [Change; 9] = [
            |draft| draft.kind = 9,
            |draft| draft.tags.push(vec!["h".into()]),
            |draft| drop(draft.tags.remove(0)),
            |draft| draft.tags.push(draft.tags[0].clone()),
            |draft| drop(draft.tags.remove(1)),
            |draft| draft.tags.push(draft.tags[1].clone()),
            |draft| draft.tags[1][1] = "a".repeat(64),
            |draft| draft.tags[0][1] = "A".repeat(64),
            |draft| draft.content = "1234".into(),
        ];
        for (at, change) in changes.iter().enumerate() {
            let mut draft = good.clone();
            change(&mut draft);
            let refused = check_envelope(&agent.sign(draft));
            assert!(matches!(refused, Err(MetricError::Envelope(_))), "change {at}");
        }
    }
}
