//! Exit codes, categories, and what stands on which stream.

use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::json;
use waxlog_scripted::model_server::{Answer, ModelServer};

use crate::stage::{finish, Person, NO_CHANNEL, NO_EVENT, WAXLOG};

fn serve(answers: Vec<Answer>) -> ModelServer {
    ModelServer::start(answers).expect("a port")
}

/// A person whose relay answers this and nothing else.
fn answered(answer: Answer) -> (ModelServer, Person) {
    let server = serve(vec![answer]);
    let person = Person::at(&server.url());
    (server, person)
}

#[test]
fn wrong_arguments_end_with_1_and_one_line_of_json() {
    let (_server, ann) = answered(Answer::json("[]"));
    for arguments in [
        &[][..],
        &["nonsense"],
        &["--version"],
        &["channels"],
        &["channels", "list", "--no-such-flag"],
        &["channels", "list", "--format", "compact"],
        &["--format", "pretty", "channels", "list"],
        &["channels", "search", "--query"],
        &["channels", "search", "--query", " "],
        &["messages", "get", "--channel", "nope"],
        &["messages", "get", "--channel", NO_CHANNEL, "--limit", "many"],
        &["messages", "thread", "--channel", NO_CHANNEL, "--event", "xyz"],
        &["messages", "send", "--channel", NO_CHANNEL, "--content", "x", "--kind", "40002"],
        &["messages", "send", "--channel", NO_CHANNEL, "--content", "x", "--kind", "45003"],
        &["messages", "send", "--channel", NO_CHANNEL, "--content", "x", "--mention", "nobody"],
        &["messages", "vote", "--event", NO_EVENT, "--direction", "sideways"],
        &["messages", "search"],
        &["channels", "update", "--channel", NO_CHANNEL],
        &["channels", "update", "--channel", NO_CHANNEL, "--ttl", "5", "--no-ttl"],
        &["channels", "create", "--name", "x", "--type", "stream", "--visibility", "open", "--ttl", "0"],
        &["channels", "create", "--name", "x", "--type", "stream"],
        &["channels", "add-member", "--channel", NO_CHANNEL, "--pubkey", NO_EVENT, "--role", "king"],
        &["users", "set-status"],
        &["users", "set-status", "--emoji", "x"],
        &["users", "set-status", "--clear", "--text", "x"],
        &["users", "set-profile"],
        &["users", "get", "--owner", "me"],
        &["users", "get", "--name", "x", "--pubkey", NO_EVENT],
        &["feed", "get", "--types", "gossip"],
        &["dms", "open"],
        &["media", "get", "../x"],
    ] {
        ann.run(arguments).fails(1, "user_error");
    }
}

#[test]
fn a_bad_value_is_named() {
    let (_server, ann) = answered(Answer::json("[]"));
    let message = ann.run(&["reactions", "get", "--event", "12ab"]).fails(1, "user_error");
    assert!(message.contains("12ab") && message.contains("64 hex digits"), "{message}");
}

#[test]
fn waxlogs_own_commands_keep_their_text_and_their_code() {
    let (_server, ann) = answered(Answer::json("[]"));
    for arguments in [&["log", "--no-such-flag"][..], &["--format", "compact", "log", "ls"]] {
        let done = ann.run(arguments);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{}", done.err);
        assert!(!done.err.starts_with('{'), "{}", done.err);
    }
}

#[test]
fn a_link_named_buzz_is_these_groups_alone() {
    let (_server, ann) = answered(Answer::json("[]"));
    let link = ann.path("buzz");
    symlink(WAXLOG, &link).expect("a link");
    let linked = |arguments: &[&str]| {
        let mut command = Command::new(&link);
        command.args(arguments).env_clear().env("HOME", ann.folder.path());
        command.env("BUZZ_RELAY_URL", ann_url(&ann)).env("BUZZ_PRIVATE_KEY", ann.keys.nsec().expose());
        finish(command, "")
    };
    assert_eq!(linked(&["channels", "list"]).ok(), json!([]));
    linked(&["log", "ls"]).fails(1, "user_error");
    linked(&["--version"]).fails(1, "user_error");
    linked(&[]).fails(1, "user_error");
    let help = linked(&["--help"]);
    assert_eq!((help.code, help.err.as_str()), (0, ""));
    assert!(help.out.contains("messages") && !help.out.contains("replay"), "{}", help.out);
}

fn ann_url(person: &Person) -> String {
    let command = person.command(&[]);
    let found = command.get_envs().find(|(name, _)| *name == "BUZZ_RELAY_URL").and_then(|(_, value)| value);
    found.expect("set").to_string_lossy().into_owned()
}

#[test]
fn help_never_shows_a_secret_and_always_an_example() {
    let (_server, ann) = answered(Answer::json("[]"));
    let secret = ann.keys.secret_hex();
    for arguments in [
        &["--help"][..],
        &["messages", "--help"],
        &["messages", "send", "--help"],
        &["channels", "create", "--help"],
        &["users", "set-status", "--help"],
        &["keys", "import", "--help"],
    ] {
        let mut command = ann.command(arguments);
        command.env("BUZZ_AUTH_TAG", "tag-canary");
        let done = finish(command, "");
        assert_eq!((done.code, done.err.as_str()), (0, ""));
        assert!(!done.out.contains(secret.expose().as_str()) && !done.out.contains("tag-canary"));
        assert!(done.out.contains("EXAMPLE"), "{}", done.out);
    }
}

#[test]
fn a_key_that_is_none_ends_with_3_and_is_not_repeated() {
    let (server, ann) = answered(Answer::json("[]"));
    for key in ["", "nonsense-canary", NO_EVENT] {
        let mut command = ann.command(&["channels", "list"]);
        command.env("BUZZ_PRIVATE_KEY", key);
        let message = finish(command, "").fails(3, "key_error");
        assert!(message.starts_with("key error: ") && !message.contains("canary"), "{message}");
    }
    let mut command = ann.command(&["channels", "list"]);
    command.env_remove("BUZZ_PRIVATE_KEY");
    finish(command, "").fails(3, "auth_error");
    assert!(server.requests().is_empty());
}

#[test]
fn an_owners_tag_for_another_agent_ends_with_3_before_any_request() {
    let (server, ann) = answered(Answer::json("[]"));
    let owner = Person::at("http://unused");
    let other = Person::at("http://unused").owned_by(&owner);
    let tag = other.command(&[]);
    let tag = tag.get_envs().find(|(name, _)| *name == "BUZZ_AUTH_TAG").and_then(|(_, value)| value);
    for tag in ["nonsense", tag.and_then(|tag| tag.to_str()).expect("set")] {
        let mut command = ann.command(&["channels", "list"]);
        command.env("BUZZ_AUTH_TAG", tag);
        finish(command, "").fails(3, "auth_error");
    }
    assert!(server.requests().is_empty());
    let mut command = ann.command(&["channels", "list"]);
    command.env("BUZZ_AUTH_TAG", "");
    assert_eq!(finish(command, "").ok(), json!([]));
}

#[test]
fn each_status_has_its_category() {
    for (status, code, category) in [
        (400, 2, "relay_error"),
        (401, 3, "auth_error"),
        (403, 3, "auth_error"),
        (404, 2, "relay_error"),
        (422, 2, "relay_error"),
        (500, 2, "relay_error"),
    ] {
        let (server, ann) = answered(Answer::status(status, r#"{"error":"no","message":"m"}"#));
        let message = ann.run(&["channels", "list"]).fails(code, category);
        assert_eq!(message, format!("relay error {status}: no"));
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn a_refused_agent_is_told_that_its_owners_tag_may_be_stale() {
    let server = serve(vec![Answer::status(403, r#"{"error":"no"}"#)]);
    let owner = Person::at(&server.url());
    let agent = Person::at(&server.url()).owned_by(&owner);
    let message = agent.run(&["channels", "list"]).fails(3, "auth_error");
    assert!(message.starts_with("relay error 403: no") && message.contains("stale"), "{message}");
}

#[test]
fn a_relay_that_is_down_or_no_relay_ends_with_2() {
    let closed = serve(Vec::new()).url();
    Person::at(&closed).run(&["channels", "list"]).fails(2, "network_error");
    Person::at("nonsense").run(&["channels", "list"]).fails(2, "network_error");
    let down = Person::at(&closed);
    down.run(&["messages", "send", "--channel", NO_CHANNEL, "--content", "x"]).fails(2, "network_error");
    down.run(&["users", "set-presence", "--status", "online"]).fails(4, "error");
}

#[test]
fn a_write_whose_answer_is_lost_is_unknown_and_was_sent_thrice() {
    let (server, ann) = answered(Answer::status(502, "bad gateway"));
    ann.run(&["channels", "join", "--channel", NO_CHANNEL]).fails(2, "delivery_unknown");
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn a_refusal_within_a_success_is_passed_on() {
    let answer = json!({"event_id": NO_EVENT, "accepted": false, "message": "duplicate: there already"});
    let (_server, ann) = answered(Answer::json(answer.to_string()));
    assert_eq!(ann.run(&["channels", "join", "--channel", NO_CHANNEL]).ok(), answer);
}

#[test]
fn forged_events_are_left_out_with_a_warning() {
    let server = serve(Vec::new());
    let bob = Person::at(&server.url());
    let good = bob.event(9, "true", &[&["h", NO_CHANNEL]]);
    let mut forged = bob.event(9, "false", &[&["h", NO_CHANNEL]]);
    forged["content"] = json!("forged");
    let (_server, ann) = answered(Answer::json(json!([good, forged]).to_string()));
    let done = ann.run(&["messages", "get", "--channel", NO_CHANNEL]);
    assert_eq!(done.code, 0);
    assert!(done.out.contains("true") && !done.out.contains("forged"), "{}", done.out);
    assert!(done.err.starts_with("{\"warning\"") && done.err.lines().count() == 1, "{}", done.err);
}

#[test]
fn a_full_page_is_followed_by_the_next_from_its_last_event() {
    let server = serve(Vec::new());
    let relay = Person::at(&server.url());
    let page: Vec<_> = (0..500)
        .map(|number| relay.event(39_000, "", &[&["d", &number.to_string()], &["name", "n"]]))
        .collect();
    let last = page[499].clone();
    let more = json!([relay.event(39_000, "", &[&["d", "500"], &["name", "n"]])]);
    let server = serve(vec![Answer::json(json!(page).to_string()), Answer::json(more.to_string())]);
    let list = Person::at(&server.url()).run(&["channels", "list", "--limit", "700"]).ok();
    assert_eq!(list.as_array().map(Vec::len), Some(501));
    let asked: Vec<serde_json::Value> = server
        .requests()
        .iter()
        .map(|request| serde_json::from_slice(&request.body).expect("json"))
        .collect();
    assert_eq!(asked[0], json!([{"kinds": [39_000], "limit": 500}]));
    let next =
        json!([{"kinds": [39_000], "limit": 200, "until": last["created_at"], "before_id": last["id"]}]);
    assert_eq!(asked[1], next);
}

#[test]
fn a_page_without_a_valid_event_ends_with_4() {
    let page = vec![json!({"id": "x"}); 3];
    let (_server, ann) = answered(Answer::json(json!(page).to_string()));
    let done = ann.run(&["channels", "list", "--limit", "3"]);
    assert_eq!((done.code, done.out.as_str()), (4, ""), "{}", done.err);
}

#[test]
fn a_password_in_the_relays_url_is_not_shown() {
    let server = serve(vec![Answer::json("{}")]);
    let ann = Person::at(&server.url().replace("http://", "http://user:canary@"));
    for arguments in [&["channels", "list"][..], &["media", "get", "x"]] {
        let done = ann.run(arguments);
        assert_ne!(done.code, 0);
        assert!(!done.err.contains("canary"), "{}", done.err);
    }
}

#[test]
fn a_reader_of_stdout_that_is_gone_is_no_error() {
    let (_server, ann) = answered(Answer::json("[]"));
    let mut command = ann.command(&["channels", "list"]);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let status = command.stdout(writer).status().expect("runs");
    assert_eq!(status.code(), Some(0));
}
