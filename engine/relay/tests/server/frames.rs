//! Frames of the socket and their answers.

use std::time::Duration;

use async_tungstenite::tungstenite::Message;
use serde_json::{json, Value};
use waxlog_nostr::{Draft, Keys};
use waxlog_relay::server::limits::Limits;

use crate::client::{limits, note, now, Client, TestRelay};

#[async_std::test]
async fn the_first_frame_is_a_challenge_of_64_hex_digits_unlike_any_other() {
    let relay = TestRelay::start().await;
    let (_, first) = relay.connect().await;
    let (_, second) = relay.connect().await;
    assert!(first.len() == 64 && first.bytes().all(|byte| byte.is_ascii_hexdigit()), "{first}");
    assert_ne!(first, second);
}

#[async_std::test]
async fn a_connection_that_does_not_say_who_it_is_ends_at_the_deadline() {
    let relay = TestRelay::with(Limits { auth_deadline: Duration::from_millis(200), ..limits() }).await;
    let (mut client, _) = relay.connect().await;
    assert_eq!(client.rest().await, [] as [Value; 0]);
    let mut known = relay.login(&Keys::generate()).await;
    let (mut other, _) = relay.connect().await;
    assert_eq!(other.rest().await, [] as [Value; 0]);
    known.is_quiet().await;
}

#[async_std::test]
async fn without_an_identity_nothing_is_taken_or_given() {
    let relay = TestRelay::start().await;
    let (mut client, _) = relay.connect().await;
    let refused = "auth-required: not authenticated";
    let event = note(&Keys::generate(), "too early");
    assert_eq!(client.publish(&event).await, (false, refused.to_owned()));
    client.say(&json!(["REQ", "s", {}])).await;
    let notice = json!(["NOTICE", "auth-required: authenticate before subscribing"]);
    assert_eq!(client.next().await, notice);
    assert_eq!(client.next().await, json!(["CLOSED", "s", refused]));
    client.say(&json!(["COUNT", "c", {}])).await;
    assert_eq!(client.next().await, json!(["CLOSED", "c", refused]));
    client.is_quiet().await;
}

#[async_std::test]
async fn what_is_no_frame_gets_a_notice_and_the_socket_lives() {
    let relay = TestRelay::start().await;
    let mut client = relay.login(&Keys::generate()).await;
    let long = json!(["REQ", "s".repeat(257), {"kinds": [1]}]).to_string();
    let many = json!(["REQ", "s", {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}]).to_string();
    let frames = ["not json", "{}", "[]", "[1]", "[\"FOO\"]", "[\"REQ\"]", "[\"REQ\",\"\",{}]", &long, &many];
    for frame in frames {
        client.say_text(frame).await;
        let answer = client.next().await;
        assert_eq!(answer[0], "NOTICE", "{answer}");
        assert!(answer[1].as_str().unwrap().starts_with("invalid message: "), "{answer}");
    }
    client.socket.send(Message::binary(vec![0xff, 0xfe])).await.unwrap();
    assert_eq!(client.next().await, json!(["NOTICE", "invalid message: not UTF-8"]));
    client.socket.send(Message::binary(b"[\"CLOSE\",\"b\"]".to_vec())).await.unwrap();
    assert_eq!(client.next().await, json!(["CLOSED", "b", ""]));
    let just = "s".repeat(256);
    assert!(client.subscribe(&just, &[json!({"kinds": [1], "limit": 0})]).await.is_empty());
}

#[async_std::test]
async fn ten_filters_are_one_question() {
    let relay = TestRelay::start().await;
    let keys = Keys::generate();
    let mut client = relay.login(&keys).await;
    let events: Vec<_> =
        (0..3).map(|n| keys.sign(Draft::new(1, format!("n{n}"), now()).tag(["t", &n.to_string()]))).collect();
    for event in &events {
        assert_eq!(client.publish(event).await, (true, String::new()));
    }
    let filters: Vec<Value> = (0..10).map(|n| json!({"kinds": [1], "#t": [n.to_string()]})).collect();
    let found = client.subscribe("ten", &filters).await;
    assert_eq!(found.len(), 3);
    assert!(events.iter().all(|event| found.contains(&json!(event.id))));
}

#[async_std::test]
async fn a_closed_subscription_is_silent_and_any_close_is_answered() {
    let relay = TestRelay::start().await;
    let keys = Keys::generate();
    let mut client = relay.login(&keys).await;
    client.subscribe("a", &[json!({"kinds": [1]})]).await;
    client.say(&json!(["CLOSE", "a"])).await;
    assert_eq!(client.next().await, json!(["CLOSED", "a", ""]));
    assert!(client.publish(&note(&keys, "unheard")).await.0);
    client.is_quiet().await;
}

#[async_std::test]
async fn a_reused_id_takes_the_new_filters_only() {
    let relay = TestRelay::start().await;
    let keys = Keys::generate();
    let mut client = relay.login(&keys).await;
    client.subscribe("a", &[json!({"kinds": [1]})]).await;
    client.subscribe("a", &[json!({"kinds": [7]})]).await;
    assert!(client.publish(&note(&keys, "unheard")).await.0);
    client.is_quiet().await;
}

#[async_std::test]
async fn one_subscription_too_many_is_refused_and_a_replacement_is_not() {
    let relay = TestRelay::with(Limits { subscriptions: 1_024, ..limits() }).await;
    let mut client = relay.login(&Keys::generate()).await;
    let filter = json!({"kinds": [1], "limit": 0});
    for n in 0..1_024 {
        client.say(&json!(["REQ", n.to_string(), filter])).await;
    }
    for n in 0..1_024 {
        assert_eq!(client.next().await, json!(["EOSE", n.to_string()]));
    }
    client.say(&json!(["REQ", "more", filter])).await;
    assert_eq!(client.next().await, json!(["CLOSED", "more", "error: too many subscriptions"]));
    assert!(client.subscribe("7", &[filter]).await.is_empty());
}

#[async_std::test]
async fn filters_that_take_too_much_memory_together_are_refused() {
    let relay = TestRelay::with(Limits { subscription_bytes: 1_000, ..limits() }).await;
    let mut client = relay.login(&Keys::generate()).await;
    let key = Keys::generate().public_key();
    client.subscribe("small", &[json!({"kinds": [1], "authors": [key], "limit": 0})]).await;
    client.say(&json!(["REQ", "large", {"kinds": [1], "authors": vec![key; 20], "limit": 0}])).await;
    assert_eq!(client.next().await, json!(["CLOSED", "large", "error: too many subscriptions"]));
}

#[async_std::test]
async fn a_count_is_answered_with_a_number() {
    let relay = TestRelay::start().await;
    let keys = Keys::generate();
    let mut client = relay.login(&keys).await;
    assert!(client.publish(&note(&keys, "one")).await.0);
    client.say(&json!(["COUNT", "c", {"kinds": [1], "authors": [keys.public_key()]}])).await;
    assert_eq!(client.next().await, json!(["COUNT", "c", {"count": 1}]));
}

#[async_std::test]
async fn events_sent_without_waiting_are_answered_in_their_order_and_read_by_the_next_question() {
    let relay = TestRelay::start().await;
    let keys = Keys::generate();
    let mut client = relay.login(&keys).await;
    let events: Vec<_> = (0..200).map(|n| note(&keys, &format!("note {n}"))).collect();
    for event in &events {
        client.say(&json!(["EVENT", event])).await;
    }
    client.say(&json!(["COUNT", "c", {"kinds": [1], "authors": [keys.public_key()]}])).await;
    for event in &events {
        assert_eq!(client.next().await, json!(["OK", event.id, true, ""]));
    }
    assert_eq!(client.next().await, json!(["COUNT", "c", {"count": 200}]));
}

#[async_std::test]
async fn a_ping_is_answered_and_unanswered_pings_of_the_relay_end_the_connection() {
    let limits = Limits { ping_every: Duration::from_millis(50), unanswered_pings: 3, ..limits() };
    let relay = TestRelay::with(limits).await;
    let mut client = relay.login(&Keys::generate()).await;
    client.socket.send(Message::Ping(b"x".to_vec().into())).await.unwrap();
    loop {
        match client.message().await.unwrap() {
            Message::Pong(answer) => break assert_eq!(&answer[..], b"x"),
            Message::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    }
    // Reading answers the relay's pings, so a client that reads lives on.
    let mut pings = 0;
    while pings < 6 {
        pings += usize::from(matches!(client.message().await.unwrap(), Message::Ping(_)));
    }
    let silent = Client::connect(&relay.url()).await;
    let mut stream = silent.stream.clone();
    let mut bytes = Vec::new();
    futures_lite::AsyncReadExt::read_to_end(&mut stream, &mut bytes).await.unwrap();
    let pings = bytes.windows(2).filter(|window| window == &[0x89, 0]).count();
    assert_eq!(pings, 3);
}
