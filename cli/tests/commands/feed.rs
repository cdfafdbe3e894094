//! The feed on the embedded relay.

use serde_json::json;

use crate::stage::Relay;

#[test]
fn what_names_me_comes_newest_first() {
    let relay = Relay::start();
    let (ann, bob) = (relay.person(), relay.person());
    let channel = ann.channel("room", "open");
    bob.run(&["channels", "join", "--channel", &channel]).ok();
    let call = ["messages", "send", "--channel", &channel, "--mention", &ann.key(), "--content", "ping"];
    bob.run(&call).ok();
    bob.say(&channel, "not for you");
    let feed = ann.run(&["--format", "compact", "feed", "get", "--types", "mentions, needs_action"]).ok();
    assert_eq!(feed.as_array().unwrap().len(), 1);
    assert_eq!(feed[0]["content"], "ping");
    let all = ann.run(&["feed", "get"]).ok();
    let times: Vec<_> =
        all.as_array().unwrap().iter().map(|event| event["created_at"].as_u64().unwrap()).collect();
    assert!(times.is_sorted_by(|one, next| one >= next), "{times:?}");
    assert_eq!(bob.run(&["feed", "get", "--types", "mentions"]).ok(), json!([]));
}
