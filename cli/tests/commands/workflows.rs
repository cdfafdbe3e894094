//! Workflows.

use serde_json::{json, Value};

use crate::scripted::{accepted, event, found, now, tags, usage, Outcome, Stage};

const ID: &str = "00112233-4455-4677-8899-aabbccddeeff";

#[test]
fn a_new_workflow_has_an_id_of_its_own_that_is_printed() {
    let stage = Stage::new(vec![accepted()]);
    let run = stage.run_with(&["workflows", "create", "--channel", ID, "--yaml", "-"], "name: x\n");
    let sent = stage.sent_one();
    let printed = run.json();
    let id = printed["workflow_id"].as_str().unwrap();
    assert_eq!((sent.kind, sent.content.as_str()), (30_620, "name: x\n"));
    assert_eq!(tags(&sent), [format!("d|{id}"), format!("h|{ID}")]);
    assert_ne!(id, ID);
}

#[test]
fn a_new_definition_comes_after_the_old_one() {
    let stage = Stage::new(Vec::new());
    let old = event(&stage.keys, 30_620, &[&["d", ID]], "", now() + 30);
    let stage = Stage::of(stage.keys, vec![found(std::slice::from_ref(&old)), accepted()]);
    let update = ["workflows", "update", "--channel", ID, "--workflow", ID, "--yaml", "name: y"];
    assert_eq!(stage.run(&update).code, 0);
    assert_eq!(stage.sent_one().created_at, old.created_at + 1);
}

#[test]
fn a_definition_is_shown_as_what_it_is_and_a_missing_one_is_null() {
    let stage = Stage::new(Vec::new());
    let flow = event(&stage.keys, 30_620, &[&["d", ID], &["h", ID]], "name: x", 5);
    let (me, answers) =
        (stage.keys.public_key(), vec![found(std::slice::from_ref(&flow)), found(&[flow]), found(&[])]);
    let stage = Stage::of(stage.keys, answers);
    let shown = json!({"workflow_id": ID, "content": "name: x", "created_at": 5, "pubkey": me});
    assert_eq!(stage.run(&["workflows", "get", "--workflow", ID]).json(), shown);
    assert_eq!(stage.run(&["workflows", "list", "--channel", ID]).json(), json!([shown]));
    assert_eq!(stage.run(&["workflows", "get", "--workflow", ID]).json(), Value::Null);
}

#[test]
fn a_trigger_takes_an_object_and_nothing_else() {
    let stage = Stage::new(vec![accepted()]);
    let trigger = ["workflows", "trigger", "--workflow", ID, "--inputs"];
    for text in ["nonsense", "[]", "1"] {
        assert_eq!(stage.run(&[&trigger[..], &[text]].concat()).failure(), usage(), "{text}");
    }
    assert!(stage.server.requests().is_empty());
    assert_eq!(stage.run(&[&trigger[..], &["{\"a\": 1}"]].concat()).code, 0);
    assert_eq!((stage.sent_one().kind, stage.sent_one().content.as_str()), (46_020, "{\"a\":1}"));
}

#[test]
fn a_decision_is_yes_unless_it_is_no() {
    let stage = Stage::new(vec![accepted()]);
    let approve = ["workflows", "approve", "--token", "abc"];
    for (more, kind) in
        [(&[][..], 46_030), (&["--approved", "true"], 46_030), (&["--approved", "false"], 46_031)]
    {
        assert_eq!(stage.run(&[&approve[..], more].concat()).code, 0);
        assert_eq!(stage.sent().last().unwrap().kind, kind);
    }
    assert_eq!(stage.run(&[&approve[..], &["--approved", "maybe"]].concat()).failure(), usage());
}

#[test]
fn runs_are_asked_for_in_pages_of_a_hundred_at_most() {
    let stage = Stage::new(vec![found(&[])]);
    for (more, limit) in [(&[][..], 20), (&["--limit", "500"], 100)] {
        assert_eq!(stage.run(&[&["workflows", "runs", "--workflow", ID], more].concat()).json(), json!([]));
        assert_eq!(stage.queries().last().unwrap()[0]["limit"], limit);
    }
}
