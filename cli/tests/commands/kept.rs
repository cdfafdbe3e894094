//! What was written to the embedded relay is read again.

use serde_json::json;

use crate::scripted::Outcome;
use crate::stage::{Person, Relay};

#[test]
fn a_memory_is_written_patched_read_by_its_owner_and_forgotten() {
    let relay = Relay::start();
    let owner = relay.person();
    let agent = relay.person().owned_by(&owner);
    let mem = |arguments: &[&str], stdin: &str| {
        let done = agent.run_with(stdin, &[&["mem"], arguments].concat());
        assert_eq!(done.code, 0, "{done:?}");
        done.out
    };
    mem(&["set", "doc", "-"], "one\ntwo\n");
    let hash = mem(&["hash", "doc"], "");
    let diff = "--- a\n+++ b\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n";
    mem(&["patch", "doc", "--base-hash", hash.trim()], diff);
    assert_eq!(owner.run(&["mem", "get", "doc", "--agent", &agent.key()]).out, "one\nTWO\n");
    let late = agent.run_with(diff, &["mem", "patch", "doc", "--base-hash", hash.trim()]);
    late.fails(5, "conflict");
    mem(&["rm", "doc"], "");
    agent.run(&["mem", "get", "doc"]).fails(1, "not_found");
}

#[test]
fn writes_of_one_second_are_all_kept() {
    let relay = Relay::start();
    let ann = relay.person();
    for code in ["ant", "bee", "cat", "dog"] {
        ann.run(&["emoji", "set", "--shortcode", code, "--url", "https://e.example/x"]).ok();
    }
    let list = ann.run(&["emoji", "export"]).ok();
    let emojis = list["emojis"].as_array().expect("a list");
    let codes: Vec<_> = emojis.iter().map(|emoji| &emoji["shortcode"]).collect();
    assert_eq!(codes, ["ant", "bee", "cat", "dog"]);
    ann.run(&["repos", "create", "--id", "tool"]).ok();
    for rule in ["--no-delete", "--no-force-push", "--require-patch"] {
        let pattern = format!("refs/heads/{rule}");
        ann.run(&["repos", "protect", "set", "--id", "tool", "--ref", &pattern, rule]).ok();
    }
    let list = ann.run(&["repos", "protect", "list", "--id", "tool"]).ok();
    assert_eq!(list["protections"].as_array().map(Vec::len), Some(3), "{list}");
    for name in ["one", "two"] {
        let tags = json!([["t", name]]).to_string();
        ann.run(&["social", "set-list", "--kind", "10003", "--tags", &tags]).ok();
    }
    let list = ann.run(&["social", "list", "--pubkey", &ann.key(), "--kind", "10003"]).ok();
    assert_eq!(list[0]["tags"], json!([["t", "two"]]));
}

#[test]
fn an_issue_and_its_status_are_found_by_their_repository() {
    let relay = Relay::start();
    let (owner, bob) = (relay.person(), relay.person());
    let key = owner.key();
    let repo = ["--repo-owner", &key, "--repo-id", "tool"];
    let issue = [&["issues", "create", "--title", "It breaks", "--content", "- badly"], &repo[..]].concat();
    let id = bob.run(&issue).ok()["event_id"].as_str().expect("an id").to_owned();
    let list = owner.run(&[&["issues", "list"], &repo[..]].concat()).ok();
    assert_eq!((&list[0]["id"], &list[0]["content"]), (&json!(id), &json!("- badly")));
    let status = owner.run(&["issues", "status", "--issue", &id, "--status", "resolved"]).ok();
    let shown = bob.run(&["social", "event", "--event", status["event_id"].as_str().expect("an id")]).ok();
    assert_eq!((&shown[0]["kind"], &shown[0]["tags"][0]), (&json!(1631), &json!(["e", id, "", "root"])));
}

#[test]
fn a_note_is_rewritten_in_place_and_deleted() {
    let relay = Relay::start();
    let (ann, bob) = (relay.person(), relay.person());
    let set = |more: &[&str]| {
        let done = ann.run(&[&["notes", "set", "--name", "plan"], more].concat());
        assert_eq!(done.code, 0, "{done:?}");
    };
    set(&["--title", "The Plan", "--tag", "ci", "--content", "one"]);
    set(&["--content", "- two"]);
    let note = bob.run(&["notes", "get", "--name", "plan"]).ok();
    let wanted = (&json!("The Plan"), &json!("- two"), &json!(["ci"]));
    assert_eq!((&note["title"], &note["content"], &note["tags"]), wanted);
    let again = bob.run(&["notes", "get", "--naddr", note["naddr"].as_str().expect("an address")]).ok();
    assert_eq!(again, note);
    assert_eq!(ann.run(&["notes", "rm", "--name", "plan"]).code, 0);
    bob.run(&["notes", "get", "--name", "plan"]).fails(1, "not_found");
}

#[test]
fn each_group_ends_with_the_codes_that_all_have() {
    let relay = Relay::start();
    let owner = relay.person();
    let mut ann = relay.person().owned_by(&owner);
    let key = ann.key();
    let groups: [&[&str]; 8] = [
        &["mem", "ls"],
        &["repos", "list"],
        &["issues", "list", "--repo-owner", &key, "--repo-id", "tool"],
        &["emoji", "list"],
        &["social", "notes", "--pubkey", &key],
        &["notes", "ls"],
        &["workflows", "list", "--channel", crate::stage::NO_CHANNEL],
        &["agents", "archived"],
    ];
    for arguments in groups {
        assert_eq!(ann.run(arguments).code, 0, "{arguments:?}");
        assert_eq!(ann.run(&[arguments, &["--what"]].concat()).failure(), (1, "user_error".into()));
        let stranger = without_key(&ann, arguments);
        assert_eq!(stranger.failure(), (3, "auth_error".into()), "{arguments:?}");
    }
    // Nobody listens at a port that was given back.
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    ann.move_to(&format!("http://{free}"));
    for arguments in groups {
        assert_eq!(ann.run(arguments).failure(), (2, "network_error".into()), "{arguments:?}");
    }
}

fn without_key(person: &Person, arguments: &[&str]) -> crate::stage::Done {
    let mut command = person.command(arguments);
    command.env_remove("BUZZ_PRIVATE_KEY");
    crate::stage::finish(command, "")
}
