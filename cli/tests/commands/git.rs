//! Issues, pull requests and patches.

use serde_json::json;
use waxlog_nostr::Keys;

use crate::scripted::{accepted, found, tags, usage, Outcome, Stage};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

#[test]
fn an_issue_takes_its_text_from_stdin_and_prints_the_relays_line() {
    let (stage, owner) = (Stage::new(vec![accepted()]), Keys::generate().public_key().to_hex());
    let arguments = ["issues", "create", "--repo-owner", &owner.to_uppercase(), "--repo-id", "tool"];
    let run =
        stage.run_with(&[&arguments[..], &["--title", "It breaks", "--content", "-"]].concat(), "badly\n");
    assert_eq!(run.json(), json!({"event_id": "e", "accepted": true, "message": ""}));
    let event = stage.sent_one();
    let wanted = [format!("a|30617:{owner}:tool"), format!("p|{owner}"), "subject|It breaks".into()];
    assert_eq!((event.kind, event.content.as_str(), tags(&event)), (1621, "badly\n", wanted.to_vec()));
}

#[test]
fn the_owner_of_a_repository_is_not_called_by_own_issues() {
    let stage = Stage::new(vec![accepted()]);
    let me = stage.keys.public_key().to_hex();
    let arguments =
        ["issues", "create", "--repo-owner", &me, "--repo-id", "tool", "--subject", "x", "--content", ""];
    assert_eq!(stage.run(&arguments).code, 0);
    assert_eq!(tags(&stage.sent_one()), [format!("a|30617:{me}:tool"), "subject|x".into()]);
}

#[test]
fn a_list_asks_for_the_repository_in_lower_case_and_for_no_limit_of_its_own() {
    let (stage, owner) = (Stage::new(vec![found(&[])]), Keys::generate().public_key().to_hex());
    let shared = ["--repo-owner", &owner.to_uppercase(), "--repo-id", "tool"];
    for (group, kind) in [("issues", 1621), ("pr", 1618), ("patches", 1617)] {
        assert_eq!(stage.run(&[&[group, "list"], &shared[..]].concat()).json(), json!([]));
        let wanted = json!([{"kinds": [kind], "#a": [format!("30617:{owner}:tool")]}]);
        assert_eq!(stage.queries().last(), Some(&wanted));
    }
    let more = ["issues", "list", "--label", "bug", "--author", &owner, "--limit", "3"];
    assert_eq!(stage.run(&[&more[..], &shared].concat()).code, 0);
    let query = stage.queries().pop().unwrap();
    assert_eq!(
        (&query[0]["#t"], &query[0]["authors"], &query[0]["limit"]),
        (&json!(["bug"]), &json!([owner]), &json!(3))
    );
}

#[test]
fn a_status_names_the_repository_wholly_or_not_at_all() {
    let (stage, id, owner) = (Stage::new(vec![accepted()]), "7".repeat(64), "8".repeat(64));
    let status = ["issues", "status", "--issue", &id, "--status", "resolved"];
    for half in [["--repo-id", "tool"], ["--repo-owner", &owner]] {
        assert_eq!(stage.run(&[&status[..], &half].concat()).failure(), usage());
    }
    assert!(stage.server.requests().is_empty());
    assert_eq!(stage.run(&status).code, 0);
    assert_eq!((stage.sent_one().kind, tags(&stage.sent_one())), (1631, vec![format!("e|{id}||root")]));
}

#[test]
fn a_pull_request_has_one_text_from_one_place() {
    let stage = Stage::new(vec![accepted()]);
    let body = stage.file("body.md", "# Why\n");
    let owner = "8".repeat(64);
    let open =
        ["pr", "open", "--repo-owner", &owner, "--repo-id", "tool", "--title", "x", "--commit", COMMIT];
    let open = [&open[..], &["--clone", "https://a.example"]].concat();
    let file = ["--body-file", body.to_str().unwrap()];
    assert_eq!(stage.run(&[&open[..], &file, &["--body", "y"]].concat()).failure(), usage());
    assert_eq!(stage.run(&[&open[..], &["--body-file", "absent.md"]].concat()).failure(), usage());
    assert!(stage.server.requests().is_empty());
    for (arguments, stdin, wanted) in [
        (&file[..], "", "# Why\n"),
        (&["--body", "-"], "in", "in"),
        (&["--body-file", "-"], "in", "in"),
        (&[], "", ""),
    ] {
        assert_eq!(stage.run_with(&[&open[..], arguments].concat(), stdin).code, 0);
        assert_eq!(stage.sent().last().unwrap().content, wanted);
    }
}

#[test]
fn what_belongs_to_a_merge_is_refused_with_another_status() {
    let (stage, id) = (Stage::new(vec![accepted()]), "7".repeat(64));
    for (group, target) in [("pr", "--pr"), ("patches", "--root")] {
        let status = [group, "status", target, &id, "--merge-commit", COMMIT, "--status"];
        assert_eq!(stage.run(&[&status[..], &["closed"]].concat()).failure(), usage());
        assert_eq!(stage.run(&[&status[..], &["merged"]].concat()).code, 0);
    }
    assert_eq!(stage.sent().len(), 2);
}

#[test]
fn a_patch_is_sent_byte_for_byte() {
    let (stage, owner) = (Stage::new(vec![accepted()]), "8".repeat(64));
    let text = "From 0\n\n---\n x | 1 +\n-- \n2.40\n\n";
    let send = ["patches", "send", "--patch-file", "-", "--repo-owner", &owner, "--repo-id", "tool"];
    assert_eq!(
        stage.run_with(&[&send[..], &["--root", "--root-revision"]].concat(), text).failure(),
        usage()
    );
    assert_eq!(stage.run_with(&send, " \n").failure(), usage());
    assert_eq!(stage.run_with(&[&send[..], &["--root"]].concat(), text).code, 0);
    assert_eq!((stage.sent_one().kind, stage.sent_one().content.as_str()), (1617, text));
}

#[test]
fn an_id_that_is_none_is_refused_before_anything_is_asked() {
    let stage = Stage::new(vec![found(&[])]);
    for group in ["issues", "pr", "patches"] {
        assert_eq!(stage.run(&[group, "get", "--event", "nothex"]).failure(), usage());
    }
    assert!(stage.server.requests().is_empty());
}
