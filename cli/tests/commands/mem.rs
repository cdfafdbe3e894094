//! What agents remember.

use waxlog_nostr::engram::{Body, Memory};
use waxlog_nostr::{Draft, Event, Keys};

use crate::scripted::{accepted, duplicate, found, now, Outcome, Stage};
use crate::stage::Done;

const DIFF: &str = "--- a\n+++ b\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n";

/// An agent, its owner, and a memory that they share.
fn cast() -> (Keys, Keys, Memory) {
    let (agent, owner) = (Keys::generate(), Keys::generate());
    let memory = Memory::of_agent(&agent, &owner.public_key()).expect("a key");
    (agent, owner, memory)
}

fn engram(agent: &Keys, memory: &Memory, slug: &str, text: &str, created_at: u64) -> Event {
    let body = Body::new(slug.parse().expect("a slug"), text);
    agent.sign(memory.draft(&body, created_at).expect("fits"))
}

fn patched(text: &str, arguments: &[&str], diff: &str) -> (Done, Vec<String>) {
    let (agent, owner, memory) = cast();
    let stored = engram(&agent, &memory, "mem/doc", text, 5);
    let stage = Stage::of(agent, vec![found(&[stored]), accepted()]).with_owner(owner);
    let run = stage.run_with(&[&["mem", "patch", "doc"], arguments].concat(), diff);
    let text = |event| memory.open(event).expect("opens").text().expect("a text").to_owned();
    let written = stage.sent().iter().map(text).collect();
    (run, written)
}

#[test]
fn a_memory_is_sealed_behind_the_head_and_carries_no_other_tag() {
    let (agent, owner, memory) = cast();
    let head = engram(&agent, &memory, "mem/x", "old", now() + 100);
    let created_at = head.created_at + 1;
    let stage = Stage::of(agent, vec![found(&[head]), accepted()]).with_owner(owner);
    let run = stage.run(&["mem", "set", "x", "new"]);
    assert_eq!((run.code, run.out.as_str()), (0, ""), "{run:?}");
    let event = stage.sent_one();
    assert_eq!(memory.open(&event).unwrap().text(), Some("new"));
    assert_eq!((event.created_at, event.tags.len()), (created_at, 2));
    assert!(!event.content.contains("new"));
}

#[test]
fn a_write_that_lost_is_a_conflict() {
    for arguments in [vec!["mem", "set", "x", "y"], vec!["mem", "rm", "x"]] {
        let (agent, owner, _) = cast();
        let stage = Stage::of(agent, vec![found(&[]), duplicate()]).with_owner(owner);
        assert_eq!(stage.run(&arguments).failure(), (5, "conflict".into()));
    }
}

#[test]
fn versions_that_do_not_open_are_passed_over_and_the_newest_of_the_rest_counts() {
    let (agent, owner, memory) = cast();
    let old = engram(&agent, &memory, "mem/x", "old", 5);
    let new = engram(&agent, &memory, "mem/x", "new", 6);
    let foreign = engram(&agent, &memory, "mem/y", "foreign", 7);
    let renamed =
        agent.sign(Draft { tags: new.tags.clone(), ..Draft::new(30_174, foreign.content.clone(), 8) });
    let garbage = agent.sign(Draft { tags: new.tags.clone(), ..Draft::new(30_174, "garbage", 9) });
    let stage = Stage::of(agent, vec![found(&[old, garbage, renamed, new])]).with_owner(owner);
    assert_eq!(stage.run(&["mem", "get", "x"]).out, "new");
}

#[test]
fn the_owner_reads_with_the_agents_key_and_never_both_ways_at_once() {
    let (agent, owner, memory) = cast();
    let stored = engram(&agent, &memory, "core", "I am Robin", 5);
    let (agent, own) = (agent.public_key().to_hex(), owner.public_key().to_hex());
    let stage = Stage::of(owner, vec![found(&[stored])]);
    assert_eq!(stage.run(&["mem", "get", "core", "--agent", &agent]).out, "I am Robin");
    let query = &stage.queries()[0][0];
    assert_eq!((&query["authors"][0], &query["#p"][0]), (&agent.clone().into(), &own.clone().into()));
    for arguments in [vec!["--agent", &agent, "--owner", &own], vec!["--agent", &own], vec![]] {
        let run = stage.run(&[vec!["mem", "ls"], arguments].concat());
        assert_eq!(run.failure(), (1, "user_error".into()));
    }
}

#[test]
fn core_cannot_be_removed_and_nothing_is_sent() {
    let (agent, owner, _) = cast();
    let stage = Stage::of(agent, vec![accepted()]).with_owner(owner);
    assert_eq!(stage.run(&["mem", "rm", "core"]).failure(), (1, "user_error".into()));
    assert!(stage.server.requests().is_empty());
}

#[test]
fn a_diff_on_its_base_is_applied_and_echoed() {
    let base = "c3f9c8c283a2b1f2f1896f27a01cbe3cddc0c9d93f752e4639035a0f5b36f6e8";
    for arguments in [vec!["--base-hash", base], vec!["--no-base-hash"]] {
        let (run, written) = patched("one\ntwo\n", &arguments, DIFF);
        assert_eq!((run.code, written), (0, vec!["one\nTWO\n".to_owned()]), "{run:?}");
        assert!(run.out.is_empty() && run.err.starts_with("--- a\n+++ b\n"), "{run:?}");
    }
}

#[test]
fn a_diff_says_what_it_was_made_for() {
    let hash = "0".repeat(64);
    for arguments in [vec![], vec!["--base-hash", "abc"], vec!["--no-base-hash", "--base-hash", &hash]] {
        let (run, written) = patched("one\ntwo\n", &arguments, DIFF);
        assert_eq!((run.failure(), written.len()), ((1, "user_error".into()), 0), "{arguments:?}");
    }
}

#[test]
fn a_diff_for_another_base_is_a_conflict_and_writes_nothing() {
    let (run, written) = patched("one\ntwo\n", &["--base-hash", &"0".repeat(64)], DIFF);
    assert_eq!((run.failure(), written.len()), ((5, "conflict".into()), 0));
}

#[test]
fn a_dry_run_writes_nothing() {
    let (run, written) = patched("one\ntwo\n", &["--no-base-hash", "--dry-run"], DIFF);
    assert_eq!((run.code, written.len()), (0, 0), "{run:?}");
}

#[test]
fn a_diff_that_leaves_nothing_needs_to_be_meant() {
    let diff = "@@ -1,2 +0,0 @@\n-one\n-two\n";
    let (run, written) = patched("one\ntwo\n", &["--no-base-hash"], diff);
    assert_eq!((run.failure(), written.len()), ((1, "user_error".into()), 0));
    let (run, written) = patched("one\ntwo\n", &["--no-base-hash", "--allow-empty"], diff);
    assert_eq!((run.code, written), (0, vec![String::new()]));
}

#[test]
fn a_list_has_slugs_in_order_without_core_and_what_is_forgotten() {
    let (agent, owner, memory) = cast();
    let gone = Body::tombstone("mem/gone".parse().unwrap()).unwrap();
    let stored = [
        engram(&agent, &memory, "mem/b", "2", 5),
        engram(&agent, &memory, "mem/a", "1", 6),
        engram(&agent, &memory, "core", "me", 7),
        engram(&agent, &memory, "mem/gone", "x", 8),
        agent.sign(memory.draft(&gone, 9).unwrap()),
    ];
    let lines = format!("mem/a\t6\t{}\nmem/b\t5\t{}\n", stored[1].id, stored[0].id);
    let stage = Stage::of(agent, vec![found(&stored)]).with_owner(owner);
    assert_eq!(stage.run(&["mem", "ls"]).out, lines);
}

#[test]
fn an_empty_list_says_so_on_stderr_only() {
    let (agent, owner, _) = cast();
    let stage = Stage::of(agent, vec![found(&[])]).with_owner(owner);
    let run = stage.run(&["mem", "ls"]);
    assert_eq!((run.code, run.out.as_str(), run.err.is_empty()), (0, "", false));
    assert_eq!(stage.run(&["mem", "ls", "--json"]).json(), serde_json::json!([]));
}
