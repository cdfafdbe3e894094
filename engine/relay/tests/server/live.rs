//! Live delivery: who hears what, once and in order.

use std::time::Duration;

use async_std::task;
use serde_json::{json, Value};
use waxlog_nostr::{Draft, Event, Keys};
use waxlog_relay::server::limits::Limits;

use crate::client::{limits, note, now, Client, TestRelay};

/// A channel that `client`'s keys have made.
async fn channel(client: &mut Client, keys: &Keys, id: &str, visibility: &str) {
    let draft = Draft::new(9007, "", now()).tag(["h", id]).tag(["name", "test"]);
    let created = client.publish(&keys.sign(draft.tag(["visibility", visibility]))).await;
    assert!(created.0, "{}", created.1);
}

const GENERAL: &str = "0d4e86e4-5d4c-4f0a-8a7f-0a7d3a3b1f01";
const OTHER: &str = "0d4e86e4-5d4c-4f0a-8a7f-0a7d3a3b1f02";

fn message(keys: &Keys, channel: &str, content: &str) -> Event {
    keys.sign(Draft::new(9, content, now()).tag(["h", channel]))
}

#[async_std::test]
async fn everyone_in_a_channel_hears_a_message_exactly_once_and_nobody_else() {
    let relay = TestRelay::start().await;
    let keys = Keys::generate();
    let mut author = relay.login(&keys).await;
    channel(&mut author, &keys, GENERAL, "open").await;
    channel(&mut author, &keys, OTHER, "open").await;
    let messages = |ids: &[&str]| json!({"kinds": [9], "#h": ids});
    let mut readers = Vec::new();
    for _ in 0..5 {
        let mut reader = relay.login(&Keys::generate()).await;
        reader.subscribe("kinded", &[messages(&[GENERAL])]).await;
        readers.push(reader);
    }
    let mut outside = relay.login(&Keys::generate()).await;
    outside.subscribe("other", &[messages(&[OTHER])]).await;
    outside.subscribe("global", &[json!({"kinds": [9]})]).await;
    outside.subscribe("both", &[messages(&[GENERAL, OTHER])]).await;
    outside.subscribe("mixed", &[messages(&[GENERAL]), json!({"kinds": [9]})]).await;
    let event = message(&keys, GENERAL, "hello");
    assert!(author.publish(&event).await.0);
    for reader in &mut readers {
        assert_eq!(reader.next().await, json!(["EVENT", "kinded", event]));
        reader.is_quiet().await;
    }
    outside.is_quiet().await;
}

#[async_std::test]
async fn a_subscription_with_kinds_and_one_without_both_hear_until_closed() {
    let relay = TestRelay::start().await;
    let keys = Keys::generate();
    let mut client = relay.login(&keys).await;
    channel(&mut client, &keys, GENERAL, "open").await;
    let mut reader = relay.login(&Keys::generate()).await;
    reader.subscribe("all", &[json!({"#h": [GENERAL], "limit": 0})]).await;
    reader.subscribe("nines", &[json!({"#h": [GENERAL], "kinds": [9], "limit": 0})]).await;
    reader.subscribe("none", &[json!({"#h": [GENERAL], "kinds": []})]).await;
    assert!(client.publish(&message(&keys, GENERAL, "to both")).await.0);
    let mut heard = [reader.next().await[1].clone(), reader.next().await[1].clone()];
    heard.sort_by_key(Value::to_string);
    assert_eq!(heard, ["all", "nines"]);
    reader.say(&json!(["CLOSE", "all"])).await;
    assert_eq!(reader.next().await, json!(["CLOSED", "all", ""]));
    assert!(client.publish(&message(&keys, GENERAL, "to one")).await.0);
    assert_eq!(reader.next().await[1], "nines");
    reader.is_quiet().await;
}

#[async_std::test]
async fn a_global_subscription_hears_by_kind_author_tag_and_id() {
    let relay = TestRelay::start().await;
    let keys = Keys::generate();
    let mut author = relay.login(&keys).await;
    let reader_keys = Keys::generate();
    let mut reader = relay.login(&reader_keys).await;
    let (me, other) = (reader_keys.public_key(), Keys::generate().public_key());
    let meant = keys.sign(Draft::new(1, "for you", now()).tag(["p", &me.to_hex()]));
    for (id, filter) in [
        ("kind", json!({"kinds": [1]})),
        ("author", json!({"kinds": [1, 7], "authors": [keys.public_key()]})),
        ("tag", json!({"kinds": [1], "#p": [me]})),
        ("id", json!({"ids": [meant.id]})),
        ("other kind", json!({"kinds": [7]})),
        ("other author", json!({"kinds": [1], "authors": [other]})),
        ("other tag", json!({"kinds": [1], "#p": [other]})),
        ("future", json!({"kinds": [1], "since": now() + 600})),
    ] {
        reader.subscribe(id, &[filter]).await;
    }
    assert!(author.publish(&meant).await.0);
    let mut heard = Vec::new();
    for _ in 0..4 {
        heard.push(reader.next().await[1].as_str().unwrap().to_owned());
    }
    heard.sort();
    assert_eq!(heard, ["author", "id", "kind", "tag"]);
    reader.is_quiet().await;
}

#[async_std::test]
async fn a_publisher_hears_its_own_event() {
    let relay = TestRelay::start().await;
    let keys = Keys::generate();
    let mut client = relay.login(&keys).await;
    client.subscribe("own", &[json!({"kinds": [1], "authors": [keys.public_key()]})]).await;
    let event = note(&keys, "echo");
    client.say(&json!(["EVENT", event])).await;
    let mut frames = [client.next().await, client.next().await];
    frames.sort_by_key(Value::to_string);
    assert_eq!(frames, [json!(["EVENT", "own", event]), json!(["OK", event.id, true, ""])]);
}

#[async_std::test]
async fn an_ephemeral_event_is_heard_and_never_stored() {
    let relay = TestRelay::start().await;
    let keys = Keys::generate();
    let mut client = relay.login(&keys).await;
    channel(&mut client, &keys, GENERAL, "open").await;
    let mut reader = relay.login(&Keys::generate()).await;
    reader.subscribe("typing", &[json!({"kinds": [20002], "#h": [GENERAL]})]).await;
    let typing = keys.sign(Draft::new(20002, "", now()).tag(["h", GENERAL]));
    assert!(client.publish(&typing).await.0);
    assert_eq!(reader.next().await, json!(["EVENT", "typing", typing]));
    assert!(reader.subscribe("later", &[json!({"kinds": [20002], "#h": [GENERAL]})]).await.is_empty());
}

#[async_std::test]
async fn each_event_comes_exactly_once_whether_stored_or_live_at_the_time_of_asking() {
    let relay = TestRelay::start().await;
    let keys = Keys::generate();
    let mut author = relay.login(&keys).await;
    let events: Vec<Event> = (0..400).map(|n| note(&keys, &format!("note {n}"))).collect();
    let sent = events.clone();
    let publish = task::spawn(async move {
        for event in &sent {
            author.say(&json!(["EVENT", event])).await;
        }
        for event in &sent {
            assert_eq!(author.next().await, json!(["OK", event.id, true, ""]));
        }
    });
    let mut reader = relay.login(&Keys::generate()).await;
    let mut heard = vec![Vec::new(); 20];
    for id in 0..heard.len() {
        reader.say(&json!(["REQ", id.to_string(), {"kinds": [1]}])).await;
    }
    let mut ended = vec![false; heard.len()];
    while heard.iter().any(|ids| ids.len() < events.len()) || ended.contains(&false) {
        let frame = reader.next().await;
        let id: usize = frame[1].as_str().unwrap().parse().unwrap();
        match frame[0].as_str() {
            Some("EVENT") => heard[id].push(frame[2]["id"].clone()),
            Some("EOSE") => ended[id] = true,
            _ => panic!("{frame}"),
        }
    }
    publish.await;
    reader.is_quiet().await;
    for ids in heard {
        let mut once: Vec<String> = ids.iter().map(Value::to_string).collect();
        once.sort();
        once.dedup();
        assert_eq!((ids.len(), once.len()), (events.len(), events.len()));
    }
}

#[async_std::test]
async fn a_reader_that_does_not_read_is_cut_off_and_the_others_are_served() {
    let limits = Limits { queue_frames: 50, write_stall: Duration::from_secs(20), ..limits() };
    let relay = TestRelay::with(limits).await;
    let keys = Keys::generate();
    let mut author = relay.login(&keys).await;
    let mut slow = relay.login(&Keys::generate()).await;
    slow.subscribe("slow", &[json!({"kinds": [1]})]).await;
    let mut quick = relay.login(&Keys::generate()).await;
    quick.subscribe("quick", &[json!({"kinds": [1]})]).await;
    let content = "x".repeat(200_000);
    for n in 0..120 {
        let event = note(&keys, &format!("{n} {content}"));
        assert!(author.publish(&event).await.0);
        assert_eq!(quick.next().await[2]["id"], json!(event.id));
    }
    let heard = slow.rest().await.len();
    assert!(heard < 120, "{heard} events reached a reader that was to be cut off");
    author.is_quiet().await;
    quick.is_quiet().await;
}

#[async_std::test]
async fn a_private_channel_is_heard_by_members_and_a_removed_one_is_told() {
    let relay = TestRelay::start().await;
    let (owner, member, stranger) = (Keys::generate(), Keys::generate(), Keys::generate());
    let mut client = relay.login(&owner).await;
    channel(&mut client, &owner, GENERAL, "private").await;
    let target = member.public_key().to_hex();
    let add = Draft::new(9000, "", now()).tag(["h", GENERAL]).tag(["p", &target]);
    assert!(client.publish(&owner.sign(add)).await.0);
    let mut inside = relay.login(&member).await;
    inside.subscribe("in", &[json!({"kinds": [9], "#h": [GENERAL]})]).await;
    let mut outside = relay.login(&stranger).await;
    outside.say(&json!(["REQ", "out", {"kinds": [9], "#h": [GENERAL]}])).await;
    assert_eq!(outside.next().await, json!(["CLOSED", "out", "restricted: not a channel member"]));
    assert!(client.publish(&message(&owner, GENERAL, "among us")).await.0);
    assert_eq!(inside.next().await[1], "in");
    let remove = Draft::new(9001, "", now()).tag(["h", GENERAL]).tag(["p", &target]);
    assert!(client.publish(&owner.sign(remove)).await.0);
    assert_eq!(inside.next().await, json!(["CLOSED", "in", "restricted: channel access revoked"]));
    assert!(client.publish(&message(&owner, GENERAL, "without you")).await.0);
    inside.is_quiet().await;
    outside.is_quiet().await;
}

#[async_std::test]
async fn a_reaction_that_is_sent_again_after_its_deletion_is_heard_and_stays_deleted() {
    let relay = TestRelay::start().await;
    let keys = Keys::generate();
    let mut client = relay.login(&keys).await;
    channel(&mut client, &keys, GENERAL, "open").await;
    let target = message(&keys, GENERAL, "hello");
    assert!(client.publish(&target).await.0);
    let reaction = keys.sign(Draft::new(7, "+", now()).tag(["e", &target.id.to_hex()]));
    assert_eq!(client.publish(&reaction).await, (true, String::new()));
    assert!(!client.publish(&reaction).await.0);
    let back = keys.sign(Draft::new(5, "", now()).tag(["e", &reaction.id.to_hex()]));
    assert!(client.publish(&back).await.0);
    let filter = json!({"kinds": [7], "#e": [target.id], "#h": [GENERAL]});
    let mut reader = relay.login(&Keys::generate()).await;
    assert!(reader.subscribe("live", std::slice::from_ref(&filter)).await.is_empty());
    assert_eq!(client.publish(&reaction).await, (true, String::new()));
    assert_eq!(reader.next().await, json!(["EVENT", "live", reaction]));
    assert!(reader.subscribe("stored", &[filter]).await.is_empty());
    let later = keys.sign(Draft::new(7, "+", now() + 1).tag(["e", &target.id.to_hex()]));
    assert_eq!(client.publish(&later).await, (true, String::new()));
}
