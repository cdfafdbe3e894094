//! Messages on the embedded relay.

use serde_json::{json, Value};

use crate::stage::{Person, Relay, NO_EVENT};

/// A channel of Ann's with Bob in it, who has this display name.
fn room(relay: &Relay, name: &str) -> (Person, Person, String) {
    let (ann, bob) = (relay.person(), relay.person());
    let channel = ann.channel("room", "open");
    ann.run(&["channels", "add-member", "--channel", &channel, "--pubkey", &bob.key()]).ok();
    bob.run(&["users", "set-profile", "--name", name]).ok();
    (ann, bob, channel)
}

fn send(person: &Person, channel: &str, more: &[&str]) -> Value {
    let base = ["messages", "send", "--channel", channel, "--content"];
    person.run(&[&base[..], more].concat()).ok()
}

fn thread(person: &Person, channel: &str, event: &str) -> Vec<Value> {
    let found = person.run(&["messages", "thread", "--channel", channel, "--event", event]).ok();
    found.as_array().expect("a list").clone()
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().filter_map(|event| event["content"].as_str()).collect()
}

#[test]
fn a_text_arrives_as_it_is_from_an_argument_or_stdin() {
    let relay = Relay::start();
    let ann = relay.person();
    let channel = ann.channel("room", "open");
    for text in ["-hello", "a\\nb \"quoted\" ü 日本", "- item"] {
        send(&ann, &channel, &[text]);
    }
    let stdin = "from stdin\nsecond line\n";
    ann.run_with(stdin, &["messages", "send", "--channel", &channel, "--content", "-"]).ok();
    let list = ann.run(&["--format", "compact", "messages", "get", "--channel", &channel]).ok();
    let mut found = texts(&list);
    found.sort();
    assert_eq!(found, ["- item", "-hello", "a\\nb \"quoted\" ü 日本", stdin]);
}

#[test]
fn a_full_display_name_is_told_and_the_answer_proves_it() {
    let relay = Relay::start();
    let (ann, bob, channel) = room(&relay, "Bob Stone");
    let sent = send(&ann, &channel, &["hi @bob stone, look"]);
    assert_eq!(sent["mention_pubkeys"], json!([bob.key()]));
    let feed = bob.run(&["--format", "compact", "feed", "get", "--types", "mentions"]).ok();
    assert_eq!(texts(&feed), ["hi @bob stone, look"]);
    let own = send(&bob, &channel, &["me", "--mention", &bob.key()]);
    assert_eq!(own["mention_pubkeys"], json!([]));
}

#[test]
fn a_short_name_or_a_stranger_is_refused_before_anything_is_sent() {
    let relay = Relay::start();
    let (ann, bob, channel) = room(&relay, "Bob Stone");
    let stranger = relay.person().key();
    let refused = |more: &[&str]| {
        let base = ["messages", "send", "--channel", &channel, "--content"];
        ann.run(&[&base[..], more].concat()).fails(1, "user_error")
    };
    assert!(refused(&["@Bob are you there"]).contains("bob"));
    let message = refused(&["hi", "--mention", &bob.key(), "--mention", &stranger]);
    let parts: Value = serde_json::from_str(&message).expect("json in the message");
    assert_eq!(parts["missing_member_pubkeys"], json!([stranger]));
    assert!(parts["add_member_command"].as_str().expect("text").contains(&stranger));
    assert_eq!(ann.run(&["messages", "get", "--channel", &channel]).ok(), json!([]));
}

#[test]
fn replies_keep_to_their_thread() {
    let relay = Relay::start();
    let (ann, bob, channel) = room(&relay, "Bob");
    let root = ann.say(&channel, "root");
    let id = |sent: Value| sent["event_id"].as_str().expect("an id").to_owned();
    let first = id(send(&bob, &channel, &["first", "--reply-to", &root]));
    send(&ann, &channel, &["second", "--reply-to", &first, "--broadcast"]);
    let events = thread(&ann, &channel, &root);
    assert_eq!(events[0]["id"], json!(root));
    let second = events.iter().find(|event| event["content"] == "second").expect("there");
    let wanted =
        json!([["h", channel], ["e", root, "", "root"], ["e", first, "", "reply"], ["broadcast", "1"],]);
    assert_eq!(second["tags"], wanted);
    let lost = ["messages", "send", "--channel", &channel, "--content", "x", "--reply-to", NO_EVENT];
    ann.run(&lost).fails(4, "error");
}

#[test]
fn a_message_is_edited_deleted_and_voted_on_in_its_own_channel() {
    let relay = Relay::start();
    let (ann, bob, channel) = room(&relay, "Bob");
    let message = ann.say(&channel, "first words");
    ann.run(&["messages", "edit", "--event", &message, "--content", "-"]).ok();
    bob.run(&["messages", "edit", "--event", &message, "--content", "x"]).fails(2, "relay_error");
    assert!(thread(&ann, &channel, &message).iter().any(|event| event["content"] == "-"));
    let post = send(&ann, &channel, &["post", "--kind", "45001"])["event_id"].as_str().unwrap().to_owned();
    bob.run(&["messages", "vote", "--event", &post, "--direction", "up"]).ok();
    bob.run(&["messages", "vote", "--event", &message, "--direction", "up"]).fails(2, "relay_error");
    ann.run(&["messages", "delete", "--event", &message]).ok();
    ann.run(&["messages", "delete", "--event", &message]).fails(4, "error");
    ann.run(&["messages", "edit", "--event", NO_EVENT, "--content", "x"]).fails(4, "error");
}

#[test]
fn a_text_has_65536_bytes_at_most() {
    let relay = Relay::start();
    let ann = relay.person();
    let channel = ann.channel("room", "open");
    let send = ["messages", "send", "--channel", &channel, "--content", "-"];
    ann.run_with(&"x".repeat(65_536), &send).ok();
    ann.run_with(&"é".repeat(32_769), &send).fails(1, "user_error");
}

#[test]
fn a_diff_is_shown_with_where_it_comes_from() {
    let relay = Relay::start();
    let ann = relay.person();
    let channel = ann.channel("room", "open");
    let base = ["messages", "send-diff", "--channel", &channel, "--repo", "https://example.org/r"];
    let diff = |more: &[&str]| ann.run_with("--- a\n+++ b\n", &[&base[..], &["--diff", "-"], more].concat());
    diff(&["--commit", "0123456", "--file", "x.rs", "--source-branch", "a", "--target-branch", "b"]).ok();
    diff(&["--commit", "0123456", "--source-branch", "a"]).fails(1, "user_error");
    diff(&["--commit", "01234"]).fails(4, "error");
    diff(&["--commit", "0123456", "--pr", "0"]).fails(4, "error");
    let list = ann.run(&["messages", "get", "--channel", &channel]).ok();
    assert_eq!(list[0]["content"], "--- a\n+++ b\n");
    assert!(list[0]["tags"].as_array().unwrap().contains(&json!(["branch", "a", "b"])));
}

#[test]
fn reactions_are_counted_and_taken_back() {
    let relay = Relay::start();
    let (ann, bob, channel) = room(&relay, "Bob");
    let message = ann.say(&channel, "like it?");
    let react = |person: &Person, verb: &str, emoji: &str| {
        person.run(&["reactions", verb, "--event", &message, "--emoji", emoji])
    };
    react(&bob, "add", "👍").ok();
    assert_eq!(react(&bob, "add", "👍").ok()["accepted"], false);
    let get = || ann.run(&["reactions", "get", "--event", &message]).ok();
    assert_eq!(get(), json!({"reactions": [{"emoji": "👍", "count": 1, "pubkeys": [bob.key()]}]}));
    react(&bob, "remove", "👍").ok();
    react(&bob, "remove", "👍").fails(4, "error");
    assert_eq!(get(), json!({"reactions": []}));
    react(&ann, "add", &"x".repeat(65)).fails(4, "error");
}

#[test]
fn messages_are_found_by_words_and_author() {
    let relay = Relay::start();
    let (ann, bob, channel) = room(&relay, "Bobby");
    ann.say(&channel, "quick brown fox");
    bob.say(&channel, "slow green turtle");
    let search = |more: &[&str]| ann.run(&[&["messages", "search"], more].concat());
    assert_eq!(texts(&search(&["--query", "TURTLE"]).ok()), ["slow green turtle"]);
    for author in [bob.key(), bob.keys.public_key().to_npub(), "bOBBY".to_owned()] {
        assert_eq!(texts(&search(&["--author", &author]).ok()), ["slow green turtle"], "{author}");
    }
    search(&["--author", "Nobody"]).fails(1, "user_error");
    search(&["--author", "npub1nonsense"]).fails(1, "user_error");
}
