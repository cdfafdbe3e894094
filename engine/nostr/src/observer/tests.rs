use serde_json::json;

use super::*;
use crate::Signature;

const NOW: u64 = 1_700_000_000;

fn telemetry() -> TelemetryFrame {
    TelemetryFrame::new(1, "t", "turn_completed", json!({}))
}

fn cancel() -> Control {
    Control::CancelTurn { channel_id: "c".into() }
}

#[test]
fn telemetry_goes_from_agent_to_owner_and_control_back() {
    let (agent, owner) = (Keys::generate(), Keys::generate());
    let up = build_telemetry(&agent, &owner.public_key(), &telemetry(), NOW).unwrap();
    let names: Vec<_> = up.tags.iter().map(|tag| tag[0].as_str()).collect();
    assert_eq!(names, ["p", "agent", "frame"]);
    assert_eq!(open_telemetry(&owner, &up, NOW), Ok(telemetry()));
    assert!(filter(&owner.public_key(), NOW).matches(&up, None));
    let down = build_control(&owner, &agent.public_key(), &cancel(), NOW).unwrap();
    assert_eq!(open_control(&agent, &owner.public_key(), &down, NOW + 300), Ok(cancel()));
    let seen = check_envelope(&down, NOW).unwrap();
    let wanted = Envelope {
        direction: Direction::Control,
        agent: agent.public_key(),
        owner: owner.public_key(),
        is_labelled: true,
    };
    assert_eq!(seen, wanted);
}

#[test]
fn a_command_that_is_strange_stale_or_forged_has_no_effect() {
    let (agent, owner, other) = (Keys::generate(), Keys::generate(), Keys::generate());
    let good = build_control(&owner, &agent.public_key(), &cancel(), NOW).unwrap();
    let open = |event: &Event, now| open_control(&agent, &owner.public_key(), event, now);
    for now in [NOW - 301, NOW + 301] {
        assert_eq!(open(&good, now), Err(ObserverError::Time(NOW)));
    }
    let forged = Event { sig: Signature::from_bytes([0; 64]), ..good };
    assert!(matches!(open(&forged, NOW), Err(ObserverError::Event(_))));
    let strange = build_control(&other, &agent.public_key(), &cancel(), NOW).unwrap();
    assert_eq!(open(&strange, NOW), Err(ObserverError::Strange));
    let to_other = build_control(&owner, &other.public_key(), &cancel(), NOW).unwrap();
    assert_eq!(open(&to_other, NOW), Err(ObserverError::Strange));
    let up = build_telemetry(&agent, &owner.public_key(), &telemetry(), NOW).unwrap();
    assert_eq!(open(&up, NOW), Err(ObserverError::Strange));
}

#[test]
fn a_command_that_nobody_knows_is_dropped() {
    let (agent, owner) = (Keys::generate(), Keys::generate());
    let key = agent.public_key();
    let event = seal(&owner, &key, &key, Direction::Control, r#"{"type":"reboot"}"#, NOW).unwrap();
    let dropped = open_control(&agent, &owner.public_key(), &event, NOW);
    assert!(matches!(dropped, Err(ObserverError::Content(_))));
}

#[test]
fn a_label_that_does_not_fit_the_way_is_told_and_not_opened() {
    let (agent, owner) = (Keys::generate(), Keys::generate());
    let event = build_control(&owner, &agent.public_key(), &cancel(), NOW).unwrap();
    for label in ["telemetry", "other", ""] {
        let mut draft = draft_of(&event);
        draft.tags[2][1] = label.into();
        let event = owner.sign(draft);
        assert!(!check_envelope(&event, NOW).unwrap().is_labelled);
        assert_eq!(open_control(&agent, &owner.public_key(), &event, NOW), Err(ObserverError::Strange));
    }
}

fn draft_of(event: &Event) -> Draft {
    let Event { kind, tags, content, created_at, .. } = event.clone();
    Draft { kind, tags, content, created_at }
}

#[test]
fn the_envelope_needs_one_of_each_tag_a_way_and_a_cipher() {
    let (agent, owner) = (Keys::generate(), Keys::generate());
    let good = draft_of(&build_telemetry(&agent, &owner.public_key(), &telemetry(), NOW).unwrap());
    type Change = fn(&mut Draft);
    let changes: [Change; 11] = [
        |draft| draft.kind = 24201,
        |draft| drop(draft.tags.remove(0)),
        |draft| drop(draft.tags.remove(1)),
        |draft| drop(draft.tags.remove(2)),
        |draft| draft.tags.push(draft.tags[0].clone()),
        |draft| draft.tags.push(draft.tags[1].clone()),
        |draft| draft.tags.push(draft.tags[2].clone()),
        |draft| draft.tags[0][1] = "A".repeat(64),
        |draft| draft.tags[0][1] = draft.tags[1][1].clone(),
        |draft| draft.tags[1][1] = "a".repeat(64),
        |draft| draft.content = "plain".into(),
    ];
    for (at, change) in changes.iter().enumerate() {
        let mut draft = good.clone();
        change(&mut draft);
        let refused = check_envelope(&agent.sign(draft), NOW);
        assert!(matches!(refused, Err(ObserverError::Envelope(_))), "change {at}: {refused:?}");
    }
}

#[test]
fn an_oversize_frame_is_sealed_elided() {
    let (agent, owner) = (Keys::generate(), Keys::generate());
    let frame = TelemetryFrame::new(1, "t", "acp_read", json!({"text": "x".repeat(200_000)}));
    let event = build_telemetry(&agent, &owner.public_key(), &frame, NOW).unwrap();
    let read = open_telemetry(&owner, &event, NOW).unwrap();
    assert!(read.payload["text"].as_str().unwrap().contains("[elided 194000 bytes]"));
}
