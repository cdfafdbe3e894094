//! Long notes.

use serde_json::json;
use waxlog_nostr::coordinate::Coordinate;
use waxlog_nostr::{naddr, Event, Keys};

use crate::scripted::{accepted, duplicate, event, found, now, tags, usage, Outcome, Stage};

fn note(keys: &Keys, title: &str, created_at: u64) -> Event {
    let tags: [&[&str]; 4] = [&["d", "plan"], &["title", title], &["t", "one"], &["published_at", "5"]];
    event(keys, 30_023, &tags, "# Plan", created_at)
}

#[test]
fn a_new_version_keeps_what_was_not_given_and_says_where_it_is() {
    let keys = Keys::generate();
    let head = note(&keys, "The Plan", now() + 20);
    let (created_at, me) = (head.created_at + 1, keys.public_key());
    let stage = Stage::of(keys, vec![found(&[head]), accepted()]);
    let run = stage.run_with(&["notes", "set", "--name", "plan", "--content", "-"], "# Plan 2\n");
    let sent = stage.sent_one();
    assert_eq!(tags(&sent), ["d|plan", "title|The Plan", "t|one", "published_at|5"]);
    assert_eq!((sent.created_at, sent.content.as_str()), (created_at, "# Plan 2\n"));
    let naddr = naddr::encode(&Coordinate::new(30_023, me, "plan")).unwrap();
    let wanted = format!(
        "event_id   {}\nnaddr      {naddr}\ncoordinate 30023:{me}:plan\nslug       plan\ntitle      The Plan\n",
        sent.id
    );
    assert_eq!(run.out, wanted);
}

#[test]
fn a_first_version_needs_a_title_and_a_lost_one_is_a_conflict() {
    let stage = Stage::new(vec![found(&[]), found(&[]), duplicate()]);
    let set = ["notes", "set", "--name", "plan", "--content", "x"];
    assert_eq!(stage.run(&set).failure(), usage());
    assert_eq!(stage.run(&[&set[..], &["--title", "The Plan"]].concat()).failure(), (5, "conflict".into()));
}

#[test]
fn what_cannot_be_a_note_is_refused_before_any_request() {
    let stage = Stage::new(vec![found(&[])]);
    for arguments in [
        vec!["set", "--name", "Bad Name", "--title", "x", "--content", "x"],
        vec!["set", "--name", "x", "--tag", "a", "--clear-tags", "--content", "x"],
        vec!["set", "--name", "x", "--title", "x", "--content", "-"],
        vec!["get"],
        vec!["get", "--name", "x", "--naddr", "naddr1"],
        vec!["get", "--name", "x", "--author", "me", "--latest"],
        vec!["get", "--naddr", "naddr1"],
    ] {
        let run = stage.run(&[vec!["notes"], arguments].concat());
        assert_eq!(run.failure(), usage());
    }
    assert!(stage.server.requests().is_empty());
}

#[test]
fn a_name_of_several_authors_is_told_with_all_of_them() {
    let (ann, bob) = (Keys::generate(), Keys::generate());
    let notes = [note(&ann, "Ann's", 5), note(&bob, "Bob's", 6)];
    let stage = Stage::new(vec![found(&notes)]);
    let run = stage.run(&["notes", "get", "--name", "plan"]);
    assert_eq!(run.failure(), usage());
    for keys in [&ann, &bob] {
        assert!(run.err.contains(&keys.public_key().to_hex()), "{}", run.err);
    }
    let latest = stage.run(&["notes", "get", "--name", "plan", "--latest"]).json();
    assert_eq!(
        (&latest["title"], &latest["tags"], &latest["published_at"]),
        (&json!("Bob's"), &json!(["one"]), &json!(5))
    );
}

#[test]
fn an_address_finds_exactly_its_note() {
    let ann = Keys::generate();
    let address = naddr::encode(&Coordinate::new(30_023, ann.public_key(), "plan")).unwrap();
    let stage = Stage::new(vec![found(&[note(&ann, "Ann's", 5)])]);
    let run = stage.run(&["notes", "get", "--naddr", &address, "--content-only"]);
    assert_eq!(run.out, "# Plan");
    let wanted = json!([{"kinds": [30023], "authors": [ann.public_key()], "#d": ["plan"]}]);
    assert_eq!(stage.queries(), [wanted]);
    let other = naddr::encode(&Coordinate::new(30_617, ann.public_key(), "plan")).unwrap();
    assert_eq!(stage.run(&["notes", "get", "--naddr", &other]).failure(), usage());
}

#[test]
fn lists_are_ones_own_unless_asked_for_and_the_newest_comes_first() {
    let keys = Keys::generate();
    let stage = Stage::of(keys.clone(), vec![found(&[note(&keys, "old", 5), note(&keys, "new", 6)])]);
    let list = stage.run(&["notes", "ls"]).json();
    assert_eq!((&list[0]["title"], &list[1]["title"]), (&json!("new"), &json!("old")));
    stage.run(&["notes", "ls", "--author", "all", "--tag", "ci", "--limit", "1000"]);
    let wanted = [
        json!([{"kinds": [30023], "authors": [keys.public_key()], "limit": 50}]),
        json!([{"kinds": [30023], "#t": ["ci"], "limit": 200}]),
    ];
    assert_eq!(stage.queries(), wanted);
}

#[test]
fn removing_names_the_address_and_covers_a_version_of_the_future() {
    let keys = Keys::generate();
    let (me, head) = (keys.public_key(), note(&keys, "x", now() + 60));
    let created_at = head.created_at;
    let stage = Stage::of(keys, vec![found(&[head]), accepted()]);
    let run = stage.run(&["notes", "rm", "--name", "plan"]);
    let sent = stage.sent_one();
    assert_eq!(
        (sent.kind, sent.created_at, tags(&sent)),
        (5, created_at, vec![format!("a|30023:{me}:plan")])
    );
    assert_eq!(run.out, format!("deleted    30023:{me}:plan\ndeletion   {}\n", sent.id));
    let stage = Stage::new(vec![found(&[])]);
    assert_eq!(stage.run(&["notes", "rm", "--name", "plan"]).failure(), (1, "not_found".into()));
    assert!(stage.sent().is_empty());
}
