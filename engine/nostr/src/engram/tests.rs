use super::*;
use crate::{EventId, Signature};

struct Pair {
    agent: Keys,
    owner: Keys,
    memory: Memory,
}

fn pair() -> Pair {
    let (agent, owner) = (Keys::generate(), Keys::generate());
    let memory = Memory::of_agent(&agent, &owner.public_key()).unwrap();
    Pair { agent, owner, memory }
}

fn note() -> Body {
    Body::new("mem/note".parse().unwrap(), "tea")
}

#[test]
fn the_owner_opens_what_the_agent_wrote_and_nobody_else_does() {
    let Pair { agent, owner, memory } = pair();
    let event = agent.sign(memory.draft(&note(), 5).unwrap());
    assert_eq!(event.tags.len(), 2);
    assert_eq!(memory.open(&event), Ok(note()));
    let read = Memory::of_owner(&owner, &agent.public_key()).unwrap();
    assert_eq!(read.open(&event), Ok(note()));
    assert!(read.list_filter().matches(&event, None));
    assert!(read.head_filter(note().slug()).matches(&event, None));
    assert!(!read.head_filter(&Slug::core()).matches(&event, None));
    let stranger = Memory::of_owner(&Keys::generate(), &agent.public_key()).unwrap();
    assert!(matches!(stranger.open(&event), Err(EngramError::Envelope(_))));
}

#[test]
fn an_engram_by_another_author_or_with_a_forged_signature_is_refused() {
    let Pair { agent, owner, memory } = pair();
    let event = agent.sign(memory.draft(&note(), 5).unwrap());
    let by_owner = owner.sign(memory.draft(&note(), 5).unwrap());
    assert_eq!(memory.open(&by_owner), Err(EngramError::Author(owner.public_key())));
    let forged = Event { sig: Signature::from_bytes([0; 64]), ..event.clone() };
    assert!(matches!(memory.open(&forged), Err(EngramError::Event(VerifyError::Signature(_)))));
    let moved = Event { created_at: 6, ..event };
    assert!(matches!(memory.open(&moved), Err(EngramError::Event(VerifyError::Id { .. }))));
}

#[test]
fn a_body_under_the_tag_of_another_slug_is_refused() {
    let Pair { agent, memory, .. } = pair();
    let mut draft = memory.draft(&note(), 5).unwrap();
    draft.tags[0][1] = memory.d_tag(&Slug::core());
    let refused = memory.open(&agent.sign(draft));
    assert_eq!(refused, Err(EngramError::Foreign(note().slug().clone())));
}

#[test]
fn the_envelope_needs_one_d_and_one_p_in_lower_case_and_a_cipher() {
    let Pair { agent, memory, .. } = pair();
    let good = memory.draft(&note(), 5).unwrap();
    assert!(check_envelope(&agent.sign(good.clone())).is_ok());
    type Change = fn(&mut Draft);
    let changes: [Change; 10] = [
        |draft| draft.kind = 30175,
        |draft| draft.content = "plain".into(),
        |draft| draft.content = String::new(),
        |draft| draft.tags.truncate(1),
        |draft| drop(draft.tags.remove(0)),
        |draft| draft.tags.push(draft.tags[0].clone()),
        |draft| draft.tags.push(draft.tags[1].clone()),
        |draft| draft.tags[0][1] = "A".repeat(64),
        |draft| draft.tags[1][1] = draft.tags[1][1][1..].to_owned(),
        |draft| draft.tags[0].truncate(1),
    ];
    for (at, change) in changes.iter().enumerate() {
        let mut draft = good.clone();
        change(&mut draft);
        let refused = memory.open(&agent.sign(draft));
        assert!(matches!(refused, Err(EngramError::Envelope(_))), "change {at}: {refused:?}");
    }
}

#[test]
fn the_head_is_the_newest_and_the_lower_id_of_two() {
    let event = |created_at, id| {
        let event = Keys::generate().sign(Draft::new(ENGRAM, "", created_at));
        Event { id: EventId::from_bytes([id; 32]), ..event }
    };
    let (old, high, low) = (event(1, 0), event(2, 9), event(2, 3));
    for order in [[&old, &high, &low], [&low, &high, &old], [&high, &low, &old]] {
        assert_eq!(head(order), Some(&low));
    }
    assert_eq!(head([]), None);
}

#[test]
fn a_new_version_is_never_older_than_the_head() {
    assert_eq!(next_created_at(10, None), 10);
    assert_eq!(next_created_at(10, Some(4)), 10);
    assert_eq!(next_created_at(10, Some(10)), 11);
    assert_eq!(next_created_at(10, Some(u64::MAX)), u64::MAX);
}
