//! What a broken or hostile client sends: each is told off in the right words, and the relay lives on.

use async_std::net::TcpStream;
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use serde_json::{json, Value};
use waxlog_nostr::{Draft, Event, Keys, Signature};

use crate::client::{note, now, Client, TestRelay};
use crate::requests::post;

#[async_std::test]
async fn a_frame_over_the_limit_gets_its_notice_and_the_end() {
    let relay = TestRelay::start().await;
    let mut client = relay.login(&Keys::generate()).await;
    client.say_text(&" ".repeat(524_289)).await;
    let notice = json!(["NOTICE", "error: frame too large (524289 bytes, limit 524288)"]);
    assert_eq!(client.rest().await, [notice]);
    relay.login(&Keys::generate()).await.is_quiet().await;
}

#[async_std::test]
async fn a_frame_of_ten_megabytes_is_refused_by_its_head_alone() {
    let relay = TestRelay::start().await;
    let client = relay.login(&Keys::generate()).await;
    let mut stream = client.stream.clone();
    let mut head = vec![0x81, 0xff];
    head.extend(10_000_000_u64.to_be_bytes());
    head.extend([0; 4]);
    stream.write_all(&head).await.unwrap();
    let mut said = Vec::new();
    // Not one byte of the ten million is sent.
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    stream.read_to_end(&mut said).await.unwrap();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(said.contains("error: frame too large (10000000 bytes, limit 524288)"), "{said}");
}

#[async_std::test]
async fn a_message_in_many_frames_is_limited_as_a_whole() {
    let relay = TestRelay::start().await;
    let client = relay.login(&Keys::generate()).await;
    let mut stream = client.stream.clone();
    for number in 0..6 {
        let mut frame = vec![if number == 0 { 0x01 } else { 0x00 }, 0xff];
        frame.extend(100_000_u64.to_be_bytes());
        frame.extend([0; 4]);
        frame.resize(frame.len() + 100_000, b'x');
        // The relay may have ended the connection already.
        if stream.write_all(&frame).await.is_err() {
            break;
        }
    }
    let mut said = Vec::new();
    stream.read_to_end(&mut said).await.unwrap();
    assert!(String::from_utf8_lossy(&said).contains("error: frame too large"));
}

#[async_std::test]
async fn an_event_just_below_the_limit_of_frame_and_content_is_taken() {
    let relay = TestRelay::start().await;
    let keys = Keys::generate();
    let mut client = relay.login(&keys).await;
    // A quotation mark takes two bytes in a frame.
    let content = format!("{}{}", "\"".repeat(261_000), "x".repeat(262_144 - 261_000));
    assert_eq!(client.publish(&note(&keys, &content)).await, (true, String::new()));
    let (accepted, why) = client.publish(&note(&keys, &"x".repeat(262_145))).await;
    assert!(!accepted && why.starts_with("invalid: "), "{why}");
}

#[async_std::test]
async fn deep_json_is_no_frame_and_does_not_reach_the_stack() {
    let relay = TestRelay::start().await;
    let keys = Keys::generate();
    let mut client = relay.login(&keys).await;
    for open in ["[", "{\"a\":", "[\"EVENT\",[", "[\"REQ\",\"s\",{\"x\":["] {
        client.say_text(&open.repeat(500_000 / open.len())).await;
        assert_eq!(client.next().await[0], "NOTICE");
    }
    let closed = format!("[\"REQ\",\"s\",{{\"x\":{}{}}}]", "[".repeat(200_000), "]".repeat(200_000));
    client.say_text(&closed).await;
    assert_eq!(client.next().await[0], "NOTICE");
    client.is_quiet().await;
    let body: Value = serde_json::from_str(&format!("{}{}", "[".repeat(100), "]".repeat(100))).unwrap();
    for path in ["/events", "/query", "/count"] {
        assert_eq!(post(&relay, &keys, path, &body).await.0, 400, "{path}");
    }
}

#[async_std::test]
async fn a_wrong_id_signature_author_or_time_is_refused_with_its_reason() {
    let relay = TestRelay::start().await;
    let keys = Keys::generate();
    let mut client = relay.login(&keys).await;
    let other = Keys::generate();
    let signed = note(&keys, "true");
    let at = |created_at| keys.sign(Draft::new(1, "when", created_at));
    for wrong in [
        Event { content: "changed".into(), ..signed.clone() },
        Event { sig: Signature::from_bytes([0; 64]), ..signed.clone() },
        Event { sig: note(&keys, "other").sig, ..signed.clone() },
        note(&other, "foreign"),
        at(now() + 1_000),
        at(now() - 1_000),
        at(0),
        at(u64::MAX),
    ] {
        let (accepted, why) = client.publish(&wrong).await;
        assert!(!accepted && why.starts_with("invalid: "), "{wrong:?} {why}");
    }
    assert!(client.publish(&signed).await.0);
}

#[async_std::test]
async fn what_is_no_http_ends_the_connection_and_nothing_else() {
    let relay = TestRelay::start().await;
    let endless = format!("GET / HTTP/1.1\r\nx: {}", "x".repeat(200_000));
    for bytes in [&b"\x16\x03\x01\x02\0\x01\0"[..], b"nonsense\r\n\r\n", b"GET\r\n\r\n", endless.as_bytes()] {
        let mut stream = TcpStream::connect(relay.server.address()).await.unwrap();
        // The relay may end the connection before it has read all.
        let _ = stream.write_all(bytes).await;
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(&answer));
    }
    relay.login(&Keys::generate()).await.is_quiet().await;
}

#[async_std::test]
async fn a_thousand_subscriptions_that_fit_nothing_do_not_hear_and_do_not_harm() {
    let relay = TestRelay::start().await;
    let mut idle = relay.login(&Keys::generate()).await;
    for n in 0..1_000 {
        let nobody = Keys::generate().public_key();
        idle.say(&json!(["REQ", n.to_string(), {"kinds": [1], "authors": [nobody]}])).await;
    }
    for n in 0..1_000 {
        assert_eq!(idle.next().await, json!(["EOSE", n.to_string()]));
    }
    let keys = Keys::generate();
    let mut client = relay.login(&keys).await;
    for n in 0..50 {
        assert!(client.publish(&note(&keys, &format!("note {n}"))).await.0);
    }
    idle.is_quiet().await;
}

#[async_std::test]
async fn connections_over_the_limit_wait_for_a_place() {
    let mut limits = crate::client::limits();
    limits.connections = 2;
    let relay = TestRelay::with(limits).await;
    let first = relay.login(&Keys::generate()).await;
    let _second = relay.login(&Keys::generate()).await;
    let url = relay.url();
    let waiting = async_std::task::spawn(async move { Client::connect(&url).await.next().await });
    drop(first);
    assert_eq!(waiting.await[0], "AUTH");
}
