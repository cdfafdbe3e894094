//! Channels, their members, their canvas, and direct conversations, on the embedded relay.

use serde_json::{json, Value};

use crate::stage::{finish, Person, Relay, NO_CHANNEL};

fn ids(list: &Value, field: &str) -> Vec<String> {
    let mut ids: Vec<_> = list
        .as_array()
        .expect("a list")
        .iter()
        .map(|item| item[field].as_str().expect("a text").to_owned())
        .collect();
    ids.sort();
    ids
}

#[test]
fn channels_are_made_listed_found_and_changed() {
    let relay = Relay::start();
    let (ann, bob) = (relay.person(), relay.person());
    let bees = ann.channel("##  Bees  ", "open");
    let den = ann.channel("den", "private");
    let got = ann.run(&["channels", "get", "--channel", &bees]).ok();
    assert_eq!((&got["name"], &got["description"]), (&json!("Bees"), &json!("")));
    assert_eq!(ids(&bob.run(&["channels", "list"]).ok(), "channel_id"), std::slice::from_ref(&bees));
    let private = ann.run(&["channels", "list", "--visibility", "private"]).ok();
    assert_eq!(ids(&private, "channel_id"), std::slice::from_ref(&den));
    assert_eq!(bob.run(&["channels", "list", "--member"]).ok(), json!([]));
    bob.run(&["channels", "join", "--channel", &bees]).ok();
    let compact = bob.run(&["--format", "compact", "channels", "list", "--member"]).ok();
    assert_eq!(compact, json!([{"channel_id": bees, "name": "Bees"}]));
    ann.run(&["channels", "topic", "--channel", &bees, "--topic", "the hive"]).ok();
    ann.run(&["channels", "update", "--channel", &bees, "--name", "hives", "--ttl", "60"]).ok();
    bob.run(&["channels", "update", "--channel", &bees, "--name", "x"]).fails(2, "relay_error");
    let found = bob.run(&["channels", "search", "--query", "HIVES", "--exact"]).ok();
    assert_eq!((&found[0]["topic"], &found[0]["visibility"]), (&json!("the hive"), &json!("public")));
    ann.run(&["channels", "archive", "--channel", &bees]).ok();
    assert_eq!(bob.run(&["channels", "search", "--query", "hives"]).ok(), json!([]));
    ann.run(&["channels", "unarchive", "--channel", &bees]).ok();
    bob.run(&["channels", "delete", "--channel", &bees]).fails(2, "relay_error");
    ann.run(&["channels", "delete", "--channel", &bees]).ok();
    assert_eq!(ann.run(&["channels", "get", "--channel", &bees]).ok(), json!(null));
    let nameless = ["channels", "create", "--name", "# #", "--type", "stream", "--visibility", "open"];
    ann.run(&nameless).fails(4, "error");
}

#[test]
fn members_have_roles_and_a_stranger_sees_none_of_a_private_channel() {
    let relay = Relay::start();
    let (ann, bob, eve) = (relay.person(), relay.person(), relay.person());
    let den = ann.channel("den", "private");
    let add = |who: &Person, whom: &Person, role: &str| {
        who.run(&["channels", "add-member", "--channel", &den, "--pubkey", &whom.key(), "--role", role])
    };
    add(&ann, &bob, "guest").ok();
    add(&eve, &eve, "member").fails(2, "relay_error");
    let members = ann.run(&["channels", "members", "--channel", &den]).ok();
    assert!(members.as_array().unwrap().contains(&json!({"pubkey": bob.key(), "role": "guest"})));
    assert_eq!(eve.run(&["channels", "members", "--channel", &den]).ok(), json!([]));
    assert_eq!(eve.run(&["messages", "get", "--channel", &den]).ok(), json!([]));
    eve.run(&["messages", "send", "--channel", &den, "--content", "@Ann x"]).fails(4, "error");
    ann.run(&["channels", "remove-member", "--channel", &den, "--pubkey", &bob.key()]).ok();
    assert_eq!(bob.run(&["channels", "get", "--channel", &den]).ok(), json!(null));
}

#[test]
fn pages_of_channels_are_all_seen() {
    let relay = Relay::start();
    let ann = relay.person();
    for number in 0..5 {
        ann.channel(&format!("room {number}"), "open");
    }
    let list = |limit: &str| ann.run(&["channels", "list", "--limit", limit]).ok().as_array().unwrap().len();
    assert_eq!((list("3"), list("5"), list("500"), list("0")), (3, 5, 5, 0));
}

#[test]
fn a_policy_keeps_the_agents_profile_and_the_last_of_two_in_a_second_holds() {
    let relay = Relay::start();
    let bob = relay.person();
    for policy in ["nobody", "owner_only", "anyone", "nobody"] {
        let set = bob.run(&["channels", "set-add-policy", "--policy", policy]).ok();
        assert_eq!(set["message"], "");
    }
    let ann = relay.person();
    let channel = ann.channel("room", "open");
    let add = ["channels", "add-member", "--channel", &channel, "--pubkey", &bob.key()];
    ann.run(&add).fails(2, "relay_error");
    let mut command = bob.command(&["channels", "set-add-policy", "--policy", "anyone"]);
    command.env("BUZZ_ACP_ALLOWED_CHANNEL_ADD_POLICIES", "owner_only, nobody");
    assert!(finish(command, "").fails(1, "user_error").contains("not permitted"));
}

#[test]
fn a_canvas_that_is_set_twice_in_a_second_shows_the_second() {
    let relay = Relay::start();
    let ann = relay.person();
    let channel = ann.channel("room", "open");
    assert_eq!(ann.run(&["canvas", "get", "--channel", &channel]).ok(), json!(null));
    for text in ["one", "two", "three"] {
        ann.run_with(text, &["canvas", "set", "--channel", &channel, "--content", "-"]).ok();
        let got = ann.run(&["canvas", "get", "--channel", &channel]);
        assert_eq!((got.code, got.out), (0, format!("{text}\n")));
    }
    ann.run(&["canvas", "set", "--channel", NO_CHANNEL, "--content", "x"]).fails(2, "relay_error");
}

#[test]
fn the_same_people_have_one_conversation() {
    let relay = Relay::start();
    let (ann, bob, cleo) = (relay.person(), relay.person(), relay.person());
    let open = |who: &Person, others: &[&Person]| {
        let keys: Vec<_> = others.iter().map(|other| other.key()).collect();
        let mut arguments = vec!["dms", "open"];
        for key in &keys {
            arguments.extend(["--pubkey", key]);
        }
        who.run(&arguments).ok()["dm_id"].as_str().expect("an id").to_owned()
    };
    let two = open(&ann, &[&bob]);
    assert_eq!(open(&bob, &[&ann]), two);
    let three = open(&ann, &[&cleo, &bob]);
    assert_ne!(three, two);
    bob.say(&two, "between us");
    assert_eq!(cleo.run(&["messages", "get", "--channel", &two]).ok(), json!([]));
    let larger = bob.run(&["dms", "add-member", "--channel", &two, "--pubkey", &cleo.key()]).ok();
    assert!(larger["message"].as_str().unwrap().contains(&three), "{larger}");
    ann.run(&["dms", "hide", "--channel", &two]).ok();
    cleo.run(&["dms", "hide", "--channel", &two]).fails(2, "relay_error");
    ann.run(&["dms", "list"]).ok();
}
