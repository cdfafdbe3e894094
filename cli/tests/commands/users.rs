//! Users on the embedded relay: profiles, status, presence, and whose agents they are.

use serde_json::json;

use crate::stage::Relay;

#[test]
fn a_profile_changes_in_parts_and_loses_nothing_within_a_second() {
    let relay = Relay::start();
    let (ann, bob) = (relay.person(), relay.person());
    assert_eq!(ann.run(&["users", "get"]).ok(), json!([]));
    ann.run(&["users", "set-profile", "--name", "Ann Lee", "--about", "first"]).ok();
    ann.run(&["users", "set-profile", "--about", "second"]).ok();
    ann.run(&["users", "set-profile", "--avatar", "https://example.org/a.png"]).ok();
    let wanted = json!([{"pubkey": ann.key(), "display_name": "Ann Lee", "about": "second",
        "picture": "https://example.org/a.png"}]);
    assert_eq!(bob.run(&["users", "get", "--pubkey", &ann.key()]).ok(), wanted);
    assert_eq!(bob.run(&["users", "get", "--name", "ANN LEE"]).ok(), wanted);
    let compact = bob.run(&["--format", "compact", "users", "get", "--name", "Ann"]).ok();
    assert_eq!(compact, json!([{"pubkey": ann.key(), "display_name": "Ann Lee"}]));
    bob.run(&["users", "get", "--name", " "]).fails(1, "user_error");
}

#[test]
fn more_than_200_keys_are_refused() {
    let relay = Relay::start();
    let ann = relay.person();
    let key = ann.key();
    let mut arguments = vec!["users", "get"];
    for _ in 0..201 {
        arguments.extend(["--pubkey", &key]);
    }
    ann.run(&arguments).fails(1, "user_error");
    ann.run(&arguments[..402]).ok();
}

#[test]
fn a_status_is_replaced_within_a_second_and_cleared() {
    let relay = Relay::start();
    let ann = relay.person();
    for arguments in [&["--text", "  busy ", "--emoji", "x"][..], &["--text", "back"], &["--clear"]] {
        let set = ann.run(&[&["users", "set-status"], arguments].concat()).ok();
        assert_eq!((&set["accepted"], &set["message"]), (&json!(true), &json!("")));
    }
}

#[test]
fn presence_is_taken_over_a_socket() {
    let relay = Relay::start();
    let (ann, bob) = (relay.person(), relay.person());
    let set = ann.run(&["users", "set-presence", "--status", "away"]).ok();
    assert_eq!(set["accepted"], true);
    ann.run(&["users", "set-presence", "--status", "busy"]).fails(1, "user_error");
    // The command's connection was Ann's last one.
    assert_eq!(bob.run(&["users", "presence", "--pubkeys", &ann.key()]).ok(), json!([]));
    bob.run(&["users", "presence", "--pubkeys", "nothex"]).fails(1, "user_error");
}

#[test]
fn an_agents_events_carry_its_owners_word() {
    let relay = Relay::start();
    let owner = relay.person();
    let agent = relay.person().owned_by(&owner);
    let channel = agent.channel("den", "open");
    let message = agent.say(&channel, "from the agent");
    let list = owner.run(&["messages", "get", "--channel", &channel]).ok();
    let proof = list[0]["tags"].as_array().and_then(|tags| tags.last()).expect("a last tag");
    assert_eq!((&proof[0], &proof[1]), (&json!("auth"), &json!(owner.key())));
    owner.run(&["messages", "edit", "--event", &message, "--content", "by the owner"]).ok();
    owner.run(&["channels", "archive", "--channel", &channel]).ok();
}
