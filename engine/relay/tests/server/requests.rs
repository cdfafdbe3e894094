//! Requests over HTTP: proofs, statuses, quotas and the information document.

use async_std::net::TcpStream;
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use serde_json::{json, Value};
use waxlog_nostr::auth::http_authorization;
use waxlog_nostr::{Draft, Keys};
use waxlog_relay::server::limits::Limits;

use crate::client::{limits, note, now, TestRelay};

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// One request, byte by byte ours.
pub(crate) async fn request(
    relay: &TestRelay,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let address = relay.server.address();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "host") {
        head += &format!("host: {address}\r\n");
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("content-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).await.unwrap();
    // The relay may have refused the body already.
    let _ = stream.write_all(body).await;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").expect("no head");
    let head = String::from_utf8(answer[..end].to_vec()).unwrap().to_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head, body: answer[end + 4..].to_vec() }
}

/// An authorised request with a JSON body.
pub(crate) async fn post(relay: &TestRelay, keys: &Keys, path: &str, body: &Value) -> (u16, Value) {
    let body = body.to_string();
    let proof = proof(relay, keys, path, body.as_bytes());
    let answer = request(relay, "POST", path, &[("authorization", &proof)], body.as_bytes()).await;
    (answer.status, answer.json())
}

fn proof(relay: &TestRelay, keys: &Keys, path: &str, body: &[u8]) -> String {
    let url = format!("http://{}{path}", relay.server.address());
    http_authorization(keys, "POST", &url, Some(body), &Keys::generate().public_key().to_hex(), now())
}

#[async_std::test]
async fn a_proof_counts_for_its_request_and_once() {
    let relay = TestRelay::start().await;
    let keys = Keys::generate();
    let url = format!("http://{}/query", relay.server.address());
    let port = relay.server.address().port();
    let body = b"[]";
    let made = |method: &str, url: &str, body: Option<&[u8]>, at: u64| {
        http_authorization(&keys, method, url, body, &Keys::generate().public_key().to_hex(), at)
    };
    let other_kind = {
        use base64::Engine;
        let event = keys.sign(Draft::new(1, "", now()).tag(["u", &url]).tag(["method", "POST"]));
        format!("Nostr {}", base64::engine::general_purpose::STANDARD.encode(event.to_json()))
    };
    for (header, status) in [
        (made("POST", &url, Some(body), now()), 200),
        (made("post", &url, Some(body), now()), 200),
        (made("POST", &url, None, now()), 200),
        (made("POST", &format!("{url}/"), Some(body), now()), 200),
        (made("GET", &url, Some(body), now()), 401),
        (made("POST", &format!("{url}?x=1"), Some(body), now()), 401),
        (made("POST", &format!("http://localhost:{port}/query"), Some(body), now()), 401),
        (made("POST", &url, Some(b"[{}]"), now()), 401),
        (made("POST", &url, Some(body), now() - 70), 401),
        (other_kind, 401),
        ("Nostr nonsense".to_owned(), 401),
    ] {
        let answer = request(&relay, "POST", "/query", &[("authorization", &header)], body).await;
        assert_eq!(answer.status, status, "{header} {}", answer.json());
        if status == 401 {
            assert!(answer.json()["error"].as_str().unwrap().starts_with("NIP-98: "), "{}", answer.json());
        } else {
            let again = request(&relay, "POST", "/query", &[("authorization", &header)], body).await;
            assert_eq!((again.status, again.json()), (401, json!({"error": "NIP-98: replay detected"})));
        }
    }
    let none = request(&relay, "POST", "/query", &[], body).await;
    assert_eq!((none.status, none.json()), (401, json!({"error": "missing Nostr auth"})));
}

#[async_std::test]
async fn a_key_without_a_proof_is_taken_only_where_that_is_switched_on() {
    let key = Keys::generate().public_key().to_hex();
    let closed = TestRelay::start().await;
    let open = TestRelay::set_up(|settings| settings.trusts_x_pubkey = true).await;
    for (relay, status) in [(&closed, 401), (&open, 200)] {
        let answer = request(relay, "POST", "/count", &[("x-pubkey", &key)], b"[{\"kinds\":[1]}]").await;
        assert_eq!(answer.status, status);
    }
    assert_eq!(request(&open, "POST", "/count", &[], b"[]").await.status, 401);
}

#[async_std::test]
async fn an_event_is_taken_once_and_refusals_have_their_status() {
    let relay = TestRelay::start().await;
    let keys = Keys::generate();
    let event = note(&keys, "over HTTP");
    let taken = json!({"event_id": event.id, "accepted": true, "message": ""});
    assert_eq!(post(&relay, &keys, "/events", &json!(event)).await, (200, taken));
    let (status, again) = post(&relay, &keys, "/events", &json!(event)).await;
    assert_eq!((status, &again["accepted"]), (200, &json!(true)));
    assert!(again["message"].as_str().unwrap().starts_with("duplicate:"), "{again}");
    let (status, foreign) = post(&relay, &Keys::generate(), "/events", &json!(note(&keys, "not mine"))).await;
    assert_eq!(status, 403, "{foreign}");
    for body in [json!([]), json!({}), json!("text")] {
        let (status, refused) = post(&relay, &keys, "/events", &body).await;
        assert_eq!(status, 400);
        assert!(refused["error"].as_str().unwrap().starts_with("invalid event JSON: "), "{refused}");
    }
    let (status, found) = post(&relay, &keys, "/query", &json!([{"ids": [event.id]}, {"kinds": [1]}])).await;
    assert_eq!((status, found), (200, json!([event, event])));
    let counted = post(&relay, &keys, "/count", &json!([{"kinds": [1]}])).await;
    assert_eq!(counted, (200, json!({"count": 1})));
    let many: Vec<Value> = vec![json!({"kinds": [1]}); 101];
    for filters in [json!({"kinds": [1]}), json!([{"ids": ["abc"]}]), json!(many)] {
        let (status, refused) = post(&relay, &keys, "/query", &filters).await;
        assert_eq!(status, 400);
        assert!(refused["error"].as_str().unwrap().starts_with("invalid filters: "), "{refused}");
    }
}

#[async_std::test]
async fn a_body_over_the_limit_is_refused_unread() {
    let relay = TestRelay::start().await;
    let body = vec![b' '; (1 << 20) + 1];
    let answer = request(&relay, "POST", "/events", &[], &body).await;
    assert_eq!(answer.status, 413);
    assert_eq!(request(&relay, "POST", "/events", &[], &body[1..]).await.status, 401);
}

#[async_std::test]
async fn another_host_is_not_served() {
    let relay = TestRelay::start().await;
    let answer = request(&relay, "POST", "/query", &[("host", "evil.example")], b"[]").await;
    assert_eq!(answer.status, 404);
    let upgrade = [
        ("host", "evil.example"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA=="),
    ];
    assert_eq!(request(&relay, "GET", "/", &upgrade, b"").await.status, 404);
}

#[async_std::test]
async fn a_quota_that_is_used_up_is_told_with_the_time_to_wait() {
    let mut limits = limits();
    limits.quotas.are_on = true;
    limits.quotas.person.events_per_minute = 1;
    limits.quotas.person.calls_per_minute = 1;
    limits.quotas.person.frames_per_second = 1;
    let relay = TestRelay::with(limits).await;
    let keys = Keys::generate();
    let mut client = relay.login(&keys).await;
    // Windows are fixed in time, so one of them may end between two uses, but not twice.
    let is_told = |text: &Value| {
        let text = text.as_str().unwrap();
        text.starts_with("rate-limited: quota exceeded; retry in ") && text.ends_with('s')
    };
    let mut noticed = 0;
    for n in 0..4 {
        client.say(&json!(["EVENT", note(&keys, &format!("note {n}"))])).await;
        let answer = client.next().await;
        if answer[0] == "NOTICE" {
            assert!(is_told(&answer[1]), "{answer}");
            noticed += 1;
        }
    }
    assert!(noticed >= 2, "{noticed}");
    let mut closed = 0;
    for n in 0..12 {
        client.say(&json!(["REQ", n.to_string(), {"kinds": [1], "limit": 0}])).await;
        let answer = client.next().await;
        if answer[0] == "CLOSED" {
            assert!(is_told(&answer[2]), "{answer}");
            closed += 1;
        }
    }
    assert!(closed >= 1, "{closed}");
    let mut refused = 0;
    for _ in 0..3 {
        let (status, answer) = post(&relay, &keys, "/count", &json!([])).await;
        if status == 429 {
            assert!(is_told(&answer["error"]), "{answer}");
            refused += 1;
        }
    }
    assert!(refused >= 1, "{refused}");
}

#[async_std::test]
async fn a_memory_of_proofs_that_is_full_refuses() {
    let relay = TestRelay::with(Limits { replay_proofs: 1, ..limits() }).await;
    let keys = Keys::generate();
    assert_eq!(post(&relay, &keys, "/count", &json!([])).await.0, 200);
    let refused = json!({"error": "rate-limited: shared admission unavailable"});
    assert_eq!(post(&relay, &keys, "/count", &json!([])).await, (503, refused));
}

#[async_std::test]
async fn the_information_document_tells_the_limits_as_they_are() {
    let relay = TestRelay::with(Limits { frame_bytes: 1_000, ..limits() }).await;
    for (path, accept) in [("/", "application/nostr+json"), ("/info", "*/*"), ("/", "text/html")] {
        let answer = request(&relay, "GET", path, &[("accept", accept)], b"").await;
        assert_eq!(answer.status, 200);
        assert!(answer.head.contains("content-type: application/json"), "{}", answer.head);
        let document = answer.json();
        assert_eq!(document["limitation"]["max_message_length"], 1_000);
        assert_eq!(document["self"].as_str().map(str::len), Some(64));
        let nips: Vec<u64> = serde_json::from_value(document["supported_nips"].clone()).unwrap();
        assert!(nips.is_sorted() && nips.contains(&42) && !nips.contains(&43), "{nips:?}");
    }
    for (path, status) in
        [("/health", 200), ("/_liveness", 200), ("/_readiness", 200), ("/nothing-here", 404), ("/query", 405)]
    {
        assert_eq!(request(&relay, "GET", path, &[], b"").await.status, status, "{path}");
    }
}

#[async_std::test]
async fn a_name_of_this_host_is_resolved_while_its_profile_claims_it() {
    let relay = TestRelay::start().await;
    let keys = Keys::generate();
    let asked = || async { request(&relay, "GET", "/.well-known/nostr.json?name=alice", &[], b"").await };
    assert_eq!(asked().await.json(), json!({"names": {}, "relays": {}}));
    let profile = |nip05: &str, at| keys.sign(Draft::new(0, json!({"nip05": nip05}).to_string(), at));
    let own = profile("alice@127.0.0.1", now() - 10);
    assert_eq!(post(&relay, &keys, "/events", &json!(own)).await.0, 200);
    let answer = asked().await;
    assert_eq!(answer.json()["names"], json!({"alice": keys.public_key()}));
    assert!(answer.head.contains("access-control-allow-origin: *"), "{}", answer.head);
    let foreign = profile("alice@elsewhere.example", now());
    assert_eq!(post(&relay, &keys, "/events", &json!(foreign)).await.0, 200);
    assert_eq!(asked().await.json()["names"], json!({}));
}
