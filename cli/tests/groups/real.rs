//! Against the embedded relay: what was written is read again.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{json, Value};
use tempfile::TempDir;
use waxlog_nostr::Keys;

use crate::stage::{command, run, Run, WAXLOG};

/// A relay under way. It is killed with the value.
struct Relay {
    child: Child,
    url: String,
    home: TempDir,
}

impl Relay {
    fn start() -> Relay {
        let home = tempfile::tempdir().unwrap();
        let mut command = Command::new(WAXLOG);
        command.args(["relay", "--listen", "127.0.0.1:0"]).env("WAXLOG_HOME", home.path());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.split(' ').next().unwrap().to_owned();
        Relay { child, url, home }
    }

    fn run(&self, keys: &Keys, arguments: &[&str], stdin: &str) -> Run {
        let mut command = command(&self.url, keys);
        command.env("WAXLOG_HOME", self.home.path()).args(arguments);
        run(command, stdin)
    }

    fn json(&self, keys: &Keys, arguments: &[&str]) -> Value {
        self.run(keys, arguments, "").json()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_memory_is_written_patched_read_by_its_owner_and_forgotten() {
    let (relay, agent, owner) = (Relay::start(), Keys::generate(), Keys::generate());
    let (me, own) = (agent.public_key().to_hex(), owner.public_key().to_hex());
    let mem = |arguments: &[&str], stdin: &str| {
        let run = relay.run(&agent, &[&["mem"], arguments, &["--owner", &own]].concat(), stdin);
        assert_eq!(run.code, 0, "{run:?}");
        run.out
    };
    mem(&["set", "doc", "-"], "one\ntwo\n");
    let hash = mem(&["hash", "doc"], "");
    mem(&["patch", "doc", "--base-hash", hash.trim()], "--- a\n+++ b\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n");
    let read = relay.run(&owner, &["mem", "get", "doc", "--agent", &me], "");
    assert_eq!(read.out, "one\nTWO\n");
    mem(&["rm", "doc"], "");
    let run = relay.run(&agent, &["mem", "get", "doc", "--owner", &own], "");
    assert_eq!(run.failure(), (1, "not_found".into()));
}

#[test]
fn writes_of_one_second_are_all_kept() {
    let (relay, keys) = (Relay::start(), Keys::generate());
    for code in ["ant", "bee", "cat", "dog"] {
        relay.json(&keys, &["emoji", "set", "--shortcode", code, "--url", "https://e.example/x"]);
    }
    let list = relay.json(&keys, &["emoji", "export"]);
    let codes: Vec<_> = list["emojis"].as_array().unwrap().iter().map(|emoji| &emoji["shortcode"]).collect();
    assert_eq!(codes, ["ant", "bee", "cat", "dog"]);
    for rule in ["--no-delete", "--no-force-push", "--require-patch"] {
        if rule == "--no-delete" {
            relay.json(&keys, &["repos", "create", "--id", "tool"]);
        }
        let pattern = format!("refs/heads/{rule}");
        relay.json(&keys, &["repos", "protect", "set", "--id", "tool", "--ref", &pattern, rule]);
    }
    let list = relay.json(&keys, &["repos", "protect", "list", "--id", "tool"]);
    assert_eq!(list["protections"].as_array().unwrap().len(), 3, "{list}");
    for name in ["one", "two"] {
        relay.json(
            &keys,
            &["social", "set-list", "--kind", "10003", "--tags", &json!([["t", name]]).to_string()],
        );
    }
    let me = keys.public_key().to_hex();
    let list = relay.json(&keys, &["social", "list", "--pubkey", &me, "--kind", "10003"]);
    assert_eq!(list[0]["tags"], json!([["t", "two"]]));
}

#[test]
fn an_issue_and_its_status_are_found_by_their_repository() {
    let (relay, owner, bob) = (Relay::start(), Keys::generate(), Keys::generate());
    let key = owner.public_key().to_hex();
    let repo = ["--repo-owner", &key, "--repo-id", "tool"];
    let issue = [&["issues", "create", "--title", "It breaks", "--content", "badly"], &repo[..]].concat();
    let id = relay.json(&bob, &issue)["event_id"].as_str().unwrap().to_owned();
    let list = relay.json(&owner, &[&["issues", "list"], &repo[..]].concat());
    assert_eq!((&list[0]["id"], &list[0]["content"]), (&json!(id), &json!("badly")));
    let status = relay.json(&owner, &["issues", "status", "--issue", &id, "--status", "resolved"]);
    let shown = relay.json(&bob, &["social", "event", "--event", status["event_id"].as_str().unwrap()]);
    assert_eq!((&shown[0]["kind"], &shown[0]["tags"][0]), (&json!(1631), &json!(["e", id, "", "root"])));
}

#[test]
fn a_note_is_rewritten_in_place_and_deleted() {
    let (relay, ann, bob) = (Relay::start(), Keys::generate(), Keys::generate());
    let set = |more: &[&str]| {
        let run = relay.run(&ann, &[&["notes", "set", "--name", "plan"], more].concat(), "");
        assert_eq!(run.code, 0, "{run:?}");
    };
    set(&["--title", "The Plan", "--tag", "ci", "--content", "one"]);
    set(&["--content", "two"]);
    let note = relay.json(&bob, &["notes", "get", "--name", "plan"]);
    assert_eq!(
        (&note["title"], &note["content"], &note["tags"]),
        (&json!("The Plan"), &json!("two"), &json!(["ci"]))
    );
    let again = relay.json(&bob, &["notes", "get", "--naddr", note["naddr"].as_str().unwrap()]);
    assert_eq!(again, note);
    assert_eq!(relay.run(&ann, &["notes", "rm", "--name", "plan"], "").code, 0);
    let gone = relay.run(&bob, &["notes", "get", "--name", "plan"], "");
    assert_eq!(gone.failure(), (1, "not_found".into()));
}
