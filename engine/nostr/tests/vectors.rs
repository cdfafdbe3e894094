//! Vectors that other implementations of the same protocols answer to as well.

#![allow(clippy::unwrap_used)]

use serde_json::Value;
use waxlog_nostr::engram::{check_envelope, Body, Memory, Slug};
use waxlog_nostr::keys::is_signed;
use waxlog_nostr::nip44::ConversationKey;
use waxlog_nostr::owner::{parse_conditions, OwnerTag};
use waxlog_nostr::turn_metric::{harness_name, Payload, StopReason, TokenCounts};
use waxlog_nostr::{Event, Keys, PublicKey};

mod projects;

fn load(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn keys(value: &Value) -> Keys {
    Keys::parse(value.as_str().unwrap()).unwrap()
}

fn key(value: &Value) -> PublicKey {
    value.as_str().unwrap().parse().unwrap()
}

fn event(value: &Value) -> Event {
    serde_json::from_value(value.clone()).unwrap()
}

fn texts(value: &Value) -> Vec<&str> {
    let list = value.as_array().unwrap().iter().map(|item| item.as_str().unwrap()).collect::<Vec<_>>();
    assert!(!list.is_empty());
    list
}

#[test]
fn nip_oa_conditions_and_tags_have_their_verdicts() {
    let vector = load(include_str!("vectors/nip-oa.json"));
    for conditions in texts(&vector["conditions_valid"]) {
        assert!(parse_conditions(conditions).is_ok(), "{conditions}");
    }
    for conditions in texts(&vector["conditions_invalid"]) {
        assert!(parse_conditions(conditions).is_err(), "{conditions}");
    }
    let agent = key(&vector["agent_pubkey"]);
    let good = OwnerTag::from_json(&vector["tag"].to_string()).unwrap();
    assert_eq!(good.verify(&agent), Ok(()));
    for tag in vector["tags_invalid"].as_array().unwrap() {
        let read = OwnerTag::from_json(&tag.to_string());
        assert!(read.is_err() || read.unwrap().verify(&agent).is_err(), "{tag}");
    }
}

#[test]
fn nip_oa_an_owner_issues_a_tag_that_verifies_and_its_event_names_the_owner() {
    let vector = load(include_str!("vectors/nip-oa.json"));
    let (owner, agent) = (keys(&vector["owner_secret"]), keys(&vector["agent_secret"]));
    assert_eq!(owner.public_key(), key(&vector["owner_pubkey"]));
    assert_eq!(agent.public_key(), key(&vector["agent_pubkey"]));
    let conditions = vector["conditions"].as_str().unwrap();
    let tag = OwnerTag::issue(&owner, &agent.public_key(), conditions).unwrap();
    assert_eq!(tag.verify(&agent.public_key()), Ok(()));
    let signed = event(&vector["signed_event"]);
    assert_eq!(signed.verify(), Ok(()));
    assert_eq!(OwnerTag::of_event(&signed).unwrap().owner, owner.public_key());
}

#[test]
fn nip_ae_keys_and_d_tags_are_those_of_the_vector() {
    let vector = load(include_str!("vectors/nip-ae.json"));
    let (agent, owner) = (keys(&vector["seckey_agent"]), keys(&vector["seckey_owner"]));
    let shared = ConversationKey::new(&agent, &owner.public_key()).unwrap();
    assert_eq!(hex::encode(shared.as_bytes()), vector["conversation_key"].as_str().unwrap());
    let memory = Memory::of_owner(&owner, &agent.public_key()).unwrap();
    for (slug, d) in vector["d_tags"].as_object().unwrap() {
        assert_eq!(memory.d_tag(&slug.parse().unwrap()), d.as_str().unwrap(), "{slug}");
    }
}

#[test]
fn nip_ae_events_open_to_their_bodies_and_are_built_byte_for_byte() {
    let vector = load(include_str!("vectors/nip-ae.json"));
    let (agent, owner) = (keys(&vector["seckey_agent"]), keys(&vector["seckey_owner"]));
    let memory = Memory::of_agent(&agent, &owner.public_key()).unwrap();
    let cases = vector["events"].as_array().unwrap();
    assert_eq!(cases.len(), 4);
    for case in cases {
        let event = event(&case["event"]);
        assert!(check_envelope(&event).is_ok());
        let body = memory.open(&event).unwrap();
        assert_eq!(body.slug().as_str(), case["slug"].as_str().unwrap());
        assert_eq!(body.to_json().unwrap(), case["body"].as_str().unwrap());
        let mut nonce = [0; 32];
        hex::decode_to_slice(case["nip44_nonce"].as_str().unwrap(), &mut nonce).unwrap();
        let draft = memory.draft_with(&body, event.created_at, nonce).unwrap();
        assert_eq!(draft.content, event.content);
        assert_eq!(draft.id(&agent.public_key()), event.id);
        assert_eq!(Body::parse(case["body"].as_str().unwrap()), Ok(body));
    }
}

#[test]
fn nip_ae_slugs_have_their_verdicts() {
    let vector = load(include_str!("vectors/nip-ae.json"));
    for slug in texts(&vector["slugs_valid"]) {
        assert!(slug.parse::<Slug>().is_ok(), "{slug}");
    }
    for slug in texts(&vector["slugs_invalid"]) {
        assert!(slug.parse::<Slug>().is_err(), "{slug}");
    }
}

#[test]
fn nip_ia_events_verify_and_the_request_is_consented_to_by_the_owner() {
    let vector = load(include_str!("vectors/nip-ia.json"));
    let cases = vector["events"].as_array().unwrap();
    assert_eq!(cases.len(), 5);
    let agent = key(&vector["agent_pubkey"]);
    for case in cases {
        let event = event(&case["event"]);
        assert_eq!(event.verify(), Ok(()), "vector {}", case["vector"]);
        let preimage = (0, event.pubkey, event.created_at, event.kind, &event.tags, &event.content);
        assert_eq!(serde_json::to_string(&preimage).unwrap(), case["id_preimage"].as_str().unwrap());
        for tag in event.tags_named("auth") {
            let owner = OwnerTag::from_tag(tag).unwrap();
            assert_eq!((owner.verify(&agent), owner.owner), (Ok(()), key(&vector["owner_pubkey"])));
        }
    }
}

#[test]
fn nip_gs_signatures_are_over_their_hashes() {
    let vector = load(include_str!("vectors/nip-gs.json"));
    let signer = keys(&vector["secret"]);
    assert_eq!(signer.public_key(), key(&vector["pubkey"]));
    for case in [&vector, &vector["with_oa"]] {
        let mut hash = [0; 32];
        hex::decode_to_slice(case["hash"].as_str().unwrap(), &mut hash).unwrap();
        let signature = case["sig"].as_str().unwrap().parse().unwrap();
        assert!(is_signed(&signer.public_key(), &hash, &signature));
        hash[0] ^= 1;
        assert!(!is_signed(&signer.public_key(), &hash, &signature));
    }
    let mut attested = vec!["auth"];
    attested.extend(texts(&vector["with_oa"]["oa"]));
    let tag: Vec<_> = attested.iter().map(ToString::to_string).collect();
    assert_eq!(OwnerTag::from_tag(&tag).unwrap().verify(&signer.public_key()), Ok(()));
}

#[test]
fn turn_metrics_have_their_words_and_bytes() {
    let vector = load(include_str!("vectors/turn-metric.json"));
    for (reason, wanted) in vector["stop_reason_map"].as_object().unwrap() {
        assert_eq!(StopReason::read(reason).as_str(), wanted.as_str().unwrap(), "{reason}");
    }
    for (command, wanted) in vector["harness_identity"].as_object().unwrap() {
        assert_eq!(harness_name(command), wanted.as_str().unwrap(), "{command}");
    }
    for case in vector["plaintext_serialisation"].as_array().unwrap() {
        let text = case["payload"].as_str().unwrap();
        assert_eq!(Payload::parse(text).unwrap().to_json().as_deref(), Ok(text));
    }
    for case in vector["plaintext_parse"].as_array().unwrap() {
        let payload = Payload::parse(&case["json"].to_string()).unwrap();
        assert_eq!(payload.delta_reliable, case["deltaReliable"].as_bool().unwrap());
        assert_eq!(payload.stop_reason.map(StopReason::as_str), case["stopReason"].as_str());
    }
}

#[test]
fn turn_metrics_refuse_costs_that_are_none() {
    let vector = load(include_str!("vectors/turn-metric.json"));
    let number = |cost: &Value| match cost.as_str() {
        Some("NaN") => Some(f64::NAN),
        Some("Infinity") => Some(f64::INFINITY),
        _ => cost.as_f64(),
    };
    let with = |cost: &Value| {
        let turn = Some(TokenCounts { cost_usd: number(cost), ..TokenCounts::default() });
        Payload { turn, ..Payload::new("h", "t") }.to_json()
    };
    for cost in vector["cost_invalid"].as_array().unwrap() {
        assert!(with(cost).is_err(), "{cost}");
    }
    for cost in vector["cost_valid"].as_array().unwrap() {
        assert!(with(cost).is_ok(), "{cost}");
    }
}
