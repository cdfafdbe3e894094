//! Short notes, contacts and lists.

use serde_json::json;
use waxlog_nostr::Keys;

use crate::scripted::{accepted, event, found, now, tags, usage, Outcome, Stage};

#[test]
fn a_note_with_a_dash_is_a_dash() {
    let stage = Stage::new(vec![accepted()]);
    let run = stage.run_with(&["social", "publish", "--content", "-"], "stdin");
    assert_eq!(run.json(), json!({"event_id": "e", "accepted": true, "message": ""}));
    assert_eq!((stage.sent_one().kind, stage.sent_one().content.as_str()), (1, "-"));
    let long = "x".repeat(65_537);
    assert_eq!(stage.run(&["social", "publish", "--content", &long]).failure(), (4, "error".into()));
}

#[test]
fn contacts_replace_a_newer_list_and_are_checked_before_any_request() {
    let (keys, bob) = (Keys::generate(), Keys::generate().public_key().to_hex());
    let head = event(&keys, 3, &[], "", now() + 50);
    let created_at = head.created_at + 1;
    let stage = Stage::of(keys, vec![found(&[head]), accepted()]);
    for (text, failure) in [("nonsense", usage()), (r#"[{"pubkey":"abc"}]"#, (4, "error".into()))] {
        assert_eq!(stage.run(&["social", "set-contacts", "--contacts", text]).failure(), failure);
    }
    assert!(stage.server.requests().is_empty());
    let list = json!([{"pubkey": bob.to_uppercase(), "petname": "bobby"}, {"pubkey": bob}]).to_string();
    assert_eq!(stage.run(&["social", "set-contacts", "--contacts", &list]).code, 0);
    let sent = stage.sent_one();
    assert_eq!((sent.created_at, tags(&sent)), (created_at, vec![format!("p|{bob}||bobby")]));
}

#[test]
fn a_page_of_notes_is_asked_for_as_it_is_typed() {
    let (stage, key, id) = (Stage::new(vec![found(&[])]), "7".repeat(64), "8".repeat(64));
    let notes = ["social", "notes", "--pubkey", &key];
    stage.run(&[&notes[..], &["--limit", "500", "--before", "9", "--before-id", &id]].concat());
    stage.run(&notes);
    let wanted = [
        json!([{"kinds": [1], "authors": [key], "limit": 100, "until": 9, "before_id": id}]),
        json!([{"kinds": [1], "authors": [key], "limit": 50}]),
    ];
    assert_eq!(stage.queries(), wanted);
}

#[test]
fn a_named_list_replaces_the_one_of_its_name() {
    let stage = Stage::new(vec![found(&[]), accepted()]);
    let tags = r#"[["d","friends"],["p","x"]]"#;
    let run = stage.run(&["social", "set-list", "--kind", "30000", "--tags", tags]);
    assert_eq!(run.json()["accepted"], true);
    assert_eq!(stage.queries()[0][0]["#d"], json!(["friends"]));
    for (kind, tags) in [("30000", "[]"), ("1", "[]"), ("10000", "nonsense"), ("10000", r#"{"d":1}"#)] {
        let run = stage.run(&["social", "set-list", "--kind", kind, "--tags", tags]);
        assert_eq!(run.failure(), usage(), "{kind} {tags}");
    }
}

#[test]
fn a_name_is_for_lists_that_have_names() {
    let (stage, key) = (Stage::new(vec![found(&[])]), "7".repeat(64));
    let list = ["social", "list", "--pubkey", &key, "--d-tag", "x", "--kind"];
    assert_eq!(stage.run(&[&list[..], &["10000"]].concat()).failure(), usage());
    assert_eq!(stage.run(&[&list[..], &["30003"]].concat()).json(), json!([]));
    let wanted = json!([{"kinds": [30003], "authors": [key], "#d": ["x"], "limit": 10}]);
    assert_eq!(stage.queries(), [wanted]);
}
