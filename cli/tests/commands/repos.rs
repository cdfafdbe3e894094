//! Announcements of repositories.

use serde_json::json;
use waxlog_nostr::{Event, Keys};

use crate::scripted::{accepted, duplicate, event, found, now, tags, Outcome, Stage};
use crate::stage::Done;

const CHANNEL: &str = "00112233-4455-4677-8899-aabbccddeeff";

fn announcement(keys: &Keys, more: &[&[&str]], created_at: u64) -> Event {
    let tags = [&[&["d", "tool"][..], &["name", "Tool"]], more].concat();
    event(keys, 30_617, &tags, "text", created_at)
}

/// A command on an announcement of one's own.
fn rewritten(more: &[&[&str]], created_at: u64, arguments: &[&str]) -> (Done, Vec<Event>) {
    let keys = Keys::generate();
    let old = announcement(&keys, more, created_at);
    let stage = Stage::of(keys, vec![found(&[old]), accepted()]);
    (stage.run(arguments), stage.sent())
}

#[test]
fn binding_keeps_everything_else_and_is_just_past_the_old_version() {
    let old = now() - 60;
    let arguments = ["repos", "bind", "--id", "tool", "--channel", CHANNEL];
    let (run, sent) = rewritten(&[&["buzz-channel", "x"], &["later", "1"]], old, &arguments);
    assert_eq!(run.json()["accepted"], true);
    let wanted = ["d|tool", "name|Tool", "later|1", &format!("buzz-channel|{CHANNEL}")];
    assert_eq!(tags(&sent[0]), wanted);
    assert_eq!((sent[0].created_at, sent[0].content.as_str()), (old + 1, "text"));
}

#[test]
fn an_announcement_that_is_too_old_for_a_relay_is_rewritten_now() {
    let start = now();
    let arguments = ["repos", "bind", "--id", "tool", "--channel", CHANNEL];
    let (run, sent) = rewritten(&[], 5, &arguments);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(sent[0].created_at >= start, "{}", sent[0].created_at);
}

#[test]
fn a_rewrite_that_lost_is_a_conflict() {
    let keys = Keys::generate();
    let old = announcement(&keys, &[], now());
    let stage = Stage::of(keys, vec![found(&[old]), duplicate()]);
    let run = stage.run(&["repos", "bind", "--id", "tool", "--channel", CHANNEL]);
    assert_eq!(run.failure(), (5, "conflict".into()));
}

#[test]
fn an_agents_rewrite_is_signed_anew_with_its_owners_word() {
    let (owner, keys) = (Keys::generate(), Keys::generate());
    let old = announcement(&keys, &[&["auth", "x", "", "y"]], now());
    let stage = Stage::of(keys, vec![found(&[old]), accepted()]).with_owner(owner.clone());
    assert_eq!(stage.run(&["repos", "bind", "--id", "tool", "--channel", CHANNEL]).code, 0);
    let sent = stage.sent_one();
    let words: Vec<_> = sent.tags_named("auth").collect();
    assert_eq!((words.len(), &words[0][1]), (1, &owner.public_key().to_hex()));
}

#[test]
fn malformed_rules_are_left_alone() {
    let broken: [&[&str]; 1] = [&["buzz-protect", "main", "no-delete"]];
    for arguments in [
        vec!["repos", "bind", "--id", "tool", "--channel", CHANNEL],
        vec!["repos", "protect", "set", "--id", "tool", "--ref", "refs/x", "--no-delete"],
        vec!["repos", "protect", "remove", "--id", "tool", "--ref", "main"],
    ] {
        let (run, sent) = rewritten(&broken, now(), &arguments);
        assert_eq!((run.failure(), sent.len()), ((4, "error".into()), 0), "{arguments:?}");
    }
    let (run, _) = rewritten(&broken, now(), &["repos", "protect", "list", "--id", "tool"]);
    assert!(run.json()["validation_error"].is_string());
}

#[test]
fn setting_and_removing_rules_leaves_the_others() {
    let rules: [&[&str]; 2] =
        [&["buzz-protect", "refs/heads/main", "push:admin"], &["buzz-protect", "refs/tags/*", "no-delete"]];
    let set = ["repos", "protect", "set", "--id", "tool", "--ref", "refs/heads/main", "--require-patch"];
    let (_, sent) = rewritten(&rules, now(), &set);
    let wanted = [
        "d|tool",
        "name|Tool",
        "buzz-protect|refs/tags/*|no-delete",
        "buzz-protect|refs/heads/main|require-patch",
    ];
    assert_eq!(tags(&sent[0]), wanted);
    let remove = ["repos", "protect", "remove", "--id", "tool", "--ref"];
    let (_, sent) = rewritten(&rules, now(), &[&remove[..], &["refs/tags/*"]].concat());
    assert_eq!(tags(&sent[0]), ["d|tool", "name|Tool", "buzz-protect|refs/heads/main|push:admin"]);
    let (run, sent) = rewritten(&rules, now(), &[&remove[..], &["refs/tags"]].concat());
    assert_eq!((run.failure(), sent.len()), ((1, "not_found".into()), 0));
}

#[test]
fn one_url_tag_holds_all_clone_urls_and_what_is_too_much_is_an_error_before_any_request() {
    let stage = Stage::new(vec![found(&[]), accepted()]);
    let clones = ["--clone", "https://a.example", "--clone", "https://b.example"];
    assert_eq!(
        stage.run(&[&["repos", "create", "--id", "tool"], &clones[..]].concat()).json()["accepted"],
        true
    );
    assert_eq!(tags(&stage.sent_one()), ["d|tool", "clone|https://a.example|https://b.example"]);
    let count = stage.server.requests().len();
    let long = "x".repeat(129);
    assert_eq!(
        stage.run(&["repos", "create", "--id", "tool", "--name", &long]).failure(),
        (4, "error".into())
    );
    assert_eq!(stage.run(&["repos", "create", "--id", "a..b"]).failure(), (1, "user_error".into()));
    assert_eq!(stage.server.requests().len(), count);
}

#[test]
fn a_repository_that_is_not_there_is_not_found() {
    let stage = Stage::new(vec![found(&[])]);
    for arguments in [
        vec!["repos", "bind", "--id", "tool", "--channel", CHANNEL],
        vec!["repos", "protect", "list", "--id", "tool"],
        vec!["repos", "protect", "remove", "--id", "tool", "--ref", "refs/x"],
    ] {
        assert_eq!(stage.run(&arguments).failure(), (1, "not_found".into()));
    }
    assert_eq!(stage.run(&["repos", "list"]).json(), json!([]));
}
