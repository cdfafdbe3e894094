//! The client against a scripted relay: what is sent, what comes back, and what is sent again.

use std::collections::HashSet;

use async_std::task::block_on;
use serde_json::json;
use waxlog_scripted::model_server::{Answer as Scripted, ModelServer, Request};

use super::*;
use crate::auth::check_authorization;
use crate::event::Draft;

const PATIENCE: Duration = Duration::from_secs(10);

fn serve(answers: Vec<Scripted>) -> ModelServer {
    ModelServer::start(answers).expect("a port on loopback")
}

fn settings(relay: &str) -> Settings {
    Settings {
        relay: relay.to_owned(),
        keys: Keys::generate(),
        owner_tag: None,
        timeout: PATIENCE,
        connect_timeout: PATIENCE,
        watcher: None,
    }
}

fn client(relay: &str) -> RelayHttp {
    RelayHttp::new(settings(relay)).expect("a client")
}

fn no_wait(status: u16) -> Scripted {
    Scripted::status(status, r#"{"error":"rate-limited: quota; retry in 0s"}"#)
}

fn note(kind: u16) -> Event {
    Keys::generate().sign(Draft::new(kind, "x", 1))
}

fn status(result: Result<impl std::fmt::Debug, HttpError>) -> (u16, String) {
    match result {
        Err(HttpError::Status { status, message }) => (status, message),
        other => panic!("no status: {other:?}"),
    }
}

/// Whether a request proves the key for this URL, method and body.
fn is_proven(request: &Request, client: &RelayHttp) -> bool {
    let url = format!("{}{}", client.base(), request.path);
    let header = request.header("authorization").unwrap_or_default();
    let proof = check_authorization(header, &request.method, &url, &request.body, now());
    proof.is_ok_and(|event| event.pubkey == client.settings.keys.public_key())
}

#[test]
fn a_query_sends_its_filters_with_a_proof_and_gives_the_events_in_order() {
    let events = [note(1), note(9)];
    let server = serve(vec![Scripted::json(json!(events).to_string())]);
    let client = client(&format!("{}//", server.url().replace("http://", "ws://")));
    let found = block_on(client.query(&[Filter::new().kinds([1]), Filter::new().limit(2)])).unwrap();
    assert_eq!(found, Found { events: events.to_vec(), left_out: 0 });
    let request = &server.requests()[0];
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/query"));
    assert_eq!(request.body, br#"[{"kinds":[1]},{"limit":2}]"#);
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("x-auth-tag"), None);
    assert!(is_proven(request, &client));
}

#[test]
fn an_event_that_its_author_did_not_sign_is_left_out() {
    let (good, other) = (note(1), note(1));
    let forged = Event { content: "y".into(), ..other };
    let server = serve(vec![Scripted::json(json!([forged, good, {"id": "x"}]).to_string())]);
    let found = block_on(client(&server.url()).query(&[])).unwrap();
    assert_eq!(found, Found { events: vec![good], left_out: 2 });
}

#[test]
fn each_attempt_has_a_proof_of_its_own_and_the_same_bytes() {
    let cut = Scripted::json(r#"{"event_id":""#).truncate(5);
    let server = serve(vec![cut, no_wait(503), Scripted::json(r#"{"accepted":true}"#)]);
    let client = client(&server.url());
    let event = note(1);
    assert_eq!(block_on(client.publish(&event)).unwrap(), json!({"accepted": true}));
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|request| is_proven(request, &client)));
    assert!(requests.iter().all(|request| request.body == event.to_json().into_bytes()));
    let proofs: HashSet<_> = requests.iter().map(|request| request.header("authorization")).collect();
    assert_eq!(proofs.len(), 3);
    // A connection that is used again may be closed in that moment, and the write would be unknown.
    let connections: HashSet<_> = requests.iter().map(|request| request.connection).collect();
    assert_eq!(connections.len(), 3);
}

#[test]
fn a_status_that_stays_is_told_with_the_relays_words() {
    for (body, words) in [
        (r#"{"error":"relay_membership_required","message":"m"}"#, "relay_membership_required"),
        (r#"{"message":"m"}"#, "m"),
        (r#"{"error":7}"#, r#"{"error":7}"#),
        ("gone", "gone"),
    ] {
        let server = serve(vec![Scripted::status(404, body)]);
        assert_eq!(status(block_on(client(&server.url()).query(&[]))), (404, words.to_owned()));
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn a_rate_limit_that_stays_is_told_after_three_attempts() {
    let server = serve(vec![no_wait(429)]);
    let error = block_on(client(&server.url()).publish(&note(1))).unwrap_err();
    assert!(error.is_retryable(), "{error}");
    assert_eq!(status(Err::<(), _>(error)).0, 429);
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn a_write_whose_answers_are_lost_is_unknown() {
    let server = serve(vec![Scripted::status(502, "bad gateway")]);
    let error = block_on(client(&server.url()).publish(&note(1))).unwrap_err();
    assert!(matches!(error, HttpError::DeliveryUnknown(_)) && !error.is_retryable(), "{error}");
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn a_moderation_command_whose_answer_is_lost_is_sent_once() {
    let server = serve(vec![Scripted::status(502, "bad gateway")]);
    let error = block_on(client(&server.url()).publish(&note(9040))).unwrap_err();
    assert!(matches!(error, HttpError::DeliveryUnknown(_)), "{error}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn nobody_at_the_address_is_a_network_error_that_may_pass() {
    let closed = serve(Vec::new()).url();
    let error = block_on(client(&closed).publish(&note(1))).unwrap_err();
    assert!(matches!(error, HttpError::Network { retryable: true, .. }), "{error}");
}

#[test]
fn an_address_that_is_none_is_a_network_error_that_stays() {
    for relay in ["nonsense", "", "ftp://relay.example"] {
        let error = block_on(client(relay).query(&[])).unwrap_err();
        assert!(matches!(error, HttpError::Network { retryable: false, .. }), "{error}");
    }
}

#[test]
fn an_answer_of_another_form_is_an_error_that_shows_it() {
    for body in [r#"{"not":"a list"}"#, "<html>"] {
        let server = serve(vec![Scripted::json(body)]);
        let error = block_on(client(&server.url()).query(&[])).unwrap_err();
        assert!(matches!(error, HttpError::Answer { .. }) && error.to_string().contains(body), "{error}");
    }
}

#[test]
fn the_owners_tag_goes_along_but_not_to_the_information_document() {
    let server = serve(vec![Scripted::json(r#"{"count":3}"#), Scripted::json("[]"), Scripted::json("{}")]);
    let tag = Some(Secret::new(r#"["auth"]"#.to_owned()));
    let client = RelayHttp::new(Settings { owner_tag: tag, ..settings(&server.url()) }).unwrap();
    assert_eq!(block_on(client.count(&[])), Ok(3));
    assert_eq!(block_on(client.get("/moderation/reports?limit=50")), Ok(json!([])));
    assert_eq!(block_on(client.information()), Ok(json!({})));
    let requests = server.requests();
    assert_eq!(requests[1].path, "/moderation/reports?limit=50");
    for request in &requests[..2] {
        assert_eq!(request.header("x-auth-tag"), Some(r#"["auth"]"#));
        assert!(is_proven(request, &client));
    }
    assert_eq!(requests[2].header("accept"), Some("application/nostr+json"));
    assert_eq!((requests[2].header("x-auth-tag"), requests[2].header("authorization")), (None, None));
}

#[test]
fn urls_are_mapped_by_their_text() {
    assert_eq!(http_url("wss://relay.example/a///"), "https://relay.example/a");
    assert_eq!(http_url("ws://127.0.0.1:3000"), "http://127.0.0.1:3000");
    assert_eq!(socket_url("https://relay.example"), "wss://relay.example");
}
