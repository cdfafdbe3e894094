//! The client against a scripted server: what comes back, and in what ways it fails.

use std::time::Instant;

use async_std::task;
use waxlog_scripted::model_server::{Answer as Scripted, ModelServer};

use super::*;

const PATIENCE: Duration = Duration::from_secs(10);
const SILENCE_MAX: Duration = Duration::from_millis(400);

fn serve(answers: Vec<Scripted>) -> ModelServer {
    ModelServer::start(answers).expect("a port on loopback")
}

fn client(silence_max: Duration) -> Client {
    Client::new(silence_max).expect("a client")
}

fn post(client: &Client, url: &str, body: &[&[u8]]) -> Outcome {
    let headers = [
        ("content-type", Secret::new("application/json".to_owned())),
        ("authorization", Secret::new("Bearer sk-canary".to_owned())),
    ];
    let body: Rope = body.iter().map(|chunk| Arc::from(*chunk)).collect();
    task::block_on(client.post(url, &headers, &body))
}

/// Posts once to a server that has this one answer.
fn outcome(answer: Scripted) -> Outcome {
    let server = serve(vec![answer]);
    post(&client(SILENCE_MAX), &server.url(), &[b"{}"])
}

fn answered(outcome: Outcome) -> Answer {
    match outcome {
        Outcome::Answered(answer) => answer,
        Outcome::Failed(failure) => panic!("failed: {failure:?}"),
    }
}

fn failed(outcome: Outcome) -> Failure {
    match outcome {
        Outcome::Failed(failure) => {
            assert!(!failure.text.contains("canary"), "{failure:?}");
            failure
        }
        Outcome::Answered(answer) => panic!("answered: {}", answer.status),
    }
}

#[test]
fn a_request_arrives_as_it_was_given() {
    let server = serve(vec![Scripted::json("{\"ok\":1}")]);
    let url = format!("{}/v1/messages?x=1", server.url());
    let answer = answered(post(&client(PATIENCE), &url, &[b"{\"a\":", b"", b"1}"]));
    assert_eq!((answer.status, answer.reason), (200, "OK"));
    assert_eq!(answer.body, b"{\"ok\":1}");
    let request = server.wait_for(0, PATIENCE).expect("one request");
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/messages?x=1"));
    assert_eq!(request.body, b"{\"a\":1}");
    let mut headers = request.headers;
    headers.sort();
    let host = server.url().replace("http://", "");
    let user_agent = concat!("waxlog/", env!("CARGO_PKG_VERSION"));
    let wanted = [
        ("accept", "*/*"),
        ("authorization", "Bearer sk-canary"),
        ("content-length", "7"),
        ("content-type", "application/json"),
        ("host", &host),
        ("user-agent", user_agent),
    ];
    assert_eq!(headers, wanted.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[test]
fn the_headers_that_matter_are_kept() {
    let answer = answered(outcome(
        Scripted::status(429, "slow down")
            .header("Retry-After", "7")
            .header("x-request-id", "r-1")
            .header("set-cookie", "a=b"),
    ));
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(answer.headers, [header("retry-after", "7"), header("x-request-id", "r-1")]);
    assert_eq!((answer.status, answer.body.as_slice()), (429, b"slow down".as_slice()));
}

#[test]
fn c34_a_status_that_is_not_registered_is_kept() {
    for (status, reason) in [(529, "<unknown status code>"), (499, "<unknown status code>")] {
        let answer = answered(outcome(Scripted::status(status, "busy")));
        assert_eq!((answer.status, answer.reason), (status, reason));
    }
    assert_eq!(answered(outcome(Scripted::status(503, ""))).reason, "Service Unavailable");
}

#[test]
fn a_header_that_is_not_ascii_does_no_harm() {
    let answer = answered(outcome(Scripted::status(200, "x").header("x-request-id", "r\u{e9}")));
    assert_eq!(answer.headers, [("x-request-id".to_owned(), "r?".to_owned())]);
}

#[test]
fn a_redirect_is_an_answer() {
    let server = serve(vec![Scripted::status(307, "").header("location", "/elsewhere")]);
    let answer = answered(post(&client(PATIENCE), &server.url(), &[b"{}"]));
    assert_eq!(answer.status, 307);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn an_answer_without_a_body_is_empty() {
    let answer = answered(outcome(Scripted::status(204, "")));
    assert_eq!((answer.status, answer.body.len()), (204, 0));
}

#[test]
fn a_chunked_body_is_joined() {
    let body = "x".repeat(5000);
    assert_eq!(answered(outcome(Scripted::json(body.clone()).chunked())).body, body.as_bytes());
}

#[test]
fn a_connection_is_used_again() {
    let server = serve(vec![Scripted::json("{}")]);
    let client = client(PATIENCE);
    for _ in 0..3 {
        answered(post(&client, &server.url(), &[b"{}"]));
    }
    let connections: Vec<_> = server.requests().iter().map(|r| r.connection).collect();
    assert_eq!(connections, [0, 0, 0]);
}

#[test]
fn a_large_body_arrives_whole_from_many_chunks() {
    let server = serve(vec![Scripted::json("{}")]);
    let chunk = vec![b'x'; 100_000];
    let chunks: Vec<&[u8]> = (0..30).map(|_| chunk.as_slice()).collect();
    answered(post(&client(PATIENCE), &server.url(), &chunks));
    let request = server.wait_for(0, PATIENCE).expect("one request");
    assert!(request.body.len() == 3_000_000 && request.body.iter().all(|byte| *byte == b'x'));
}

#[test]
fn a_large_body_goes_out_without_asking_for_leave() {
    let server = serve(vec![Scripted::json("1")]);
    let large = vec![b'x'; ASKED_FOR_ABOVE_BYTES + 1];
    assert_eq!(answered(post(&client(PATIENCE), &server.url(), &[&large])).status, 200);
    let request = server.wait_for(0, PATIENCE).expect("one request");
    assert_eq!(request.header("expect").unwrap_or(""), "");
    assert_eq!(request.body.len(), large.len());
}

#[test]
fn a_server_that_refuses_that_is_asked_from_then_on() {
    let server = serve(vec![Scripted::status(417, ""), Scripted::json("1"), Scripted::json("2")]);
    let client = client(PATIENCE);
    let large = vec![b'x'; ASKED_FOR_ABOVE_BYTES + 1];
    for _ in 0..2 {
        assert_eq!(answered(post(&client, &server.url(), &[&large])).status, 200);
    }
    let requests = server.requests();
    let asked: Vec<_> = requests.iter().map(|r| r.header("expect").unwrap_or("nothing")).collect();
    assert_eq!(asked[1..], ["100-continue"; 2]);
}

#[test]
fn an_error_body_is_cut_and_may_break_off() {
    let long = answered(outcome(Scripted::status(400, "e".repeat(100_000))));
    assert_eq!(long.body.len(), ERROR_BODY_MAX_BYTES);
    let broken = answered(outcome(Scripted::status(500, "e".repeat(3000)).truncate(1000)));
    assert_eq!((broken.status, broken.body.len()), (500, 1000));
    let silent = answered(outcome(Scripted::status(500, "e".repeat(3000)).hang_after(10)));
    assert_eq!((silent.status, silent.body.len()), (500, 10));
}

#[test]
fn nobody_listening_is_a_connect_failure() {
    let server = serve(Vec::new());
    let url = server.url();
    drop(server);
    let failure = failed(post(&client(PATIENCE), &url, &[b"{}"]));
    assert_eq!(failure.kind, FailureKind::Connect);
    assert!(failure.text.contains(&url), "{failure:?}");
}

#[test]
fn a_dropped_connection_is_a_transport_failure() {
    assert_eq!(failed(outcome(Scripted::drop_connection())).kind, FailureKind::Transport);
}

#[test]
fn silence_before_the_headers_is_a_timeout() {
    let begun = Instant::now();
    let failure = failed(outcome(Scripted::hang()));
    assert_eq!(failure.kind, FailureKind::Timeout);
    assert!(failure.text.contains("within 0.4s"), "{failure:?}");
    assert!(begun.elapsed() >= SILENCE_MAX && begun.elapsed() < PATIENCE);
}

#[test]
fn an_answer_just_within_the_silence_is_read() {
    let answer = Scripted::json("{}").delay(SILENCE_MAX / 2);
    assert_eq!(answered(outcome(answer)).status, 200);
}

#[test]
fn a_body_that_breaks_off_or_falls_silent_is_a_read_failure() {
    for answer in [
        Scripted::json("x".repeat(3000)).truncate(1000),
        Scripted::json("x".repeat(3000)).hang_after(1000),
        Scripted::json("x".repeat(3000)).chunked().truncate(2000),
    ] {
        assert_eq!(failed(outcome(answer)).kind, FailureKind::BodyRead);
    }
}

#[test]
fn a_body_of_exactly_the_limit_is_read() {
    let body = vec![b'x'; SUCCESS_BODY_MAX_BYTES];
    assert_eq!(answered(outcome(Scripted::json(body))).body.len(), SUCCESS_BODY_MAX_BYTES);
}

#[test]
fn a_body_beyond_the_limit_is_refused_by_its_announcement_or_its_length() {
    let announced = Scripted::json("x").header("content-length", "16777217").hang_after(1);
    let failure = failed(outcome(announced));
    assert_eq!(failure, Failure::new(FailureKind::TooLarge, "response too large: 16777217 > 16777216"));
    let sent = Scripted::json(vec![b'x'; SUCCESS_BODY_MAX_BYTES + 1]).chunked();
    assert_eq!(
        failed(outcome(sent)),
        Failure::new(FailureKind::TooLarge, "response exceeded 16777216 bytes")
    );
}

#[test]
fn what_cannot_be_sent_is_refused_without_showing_it() {
    let client = client(PATIENCE);
    for url in ["not-a-url", "file:///etc/passwd", ""] {
        assert_eq!(failed(post(&client, url, &[b"{}"])).kind, FailureKind::Request, "{url}");
    }
    for (name, value) in [("x-key", "canary\n"), ("x-key", "canary\u{e9}"), ("x key", "canary")] {
        let (headers, empty) = ([(name, Secret::new(value.to_owned()))], Rope::default());
        let sent = client.post("http://127.0.0.1:9", &headers, &empty);
        assert_eq!(failed(task::block_on(sent)).kind, FailureKind::Request);
    }
}

#[test]
fn dropping_the_request_ends_it_at_the_server() {
    let server = serve(vec![Scripted::hang()]);
    let client = client(PATIENCE);
    let (url, sending) = (server.url(), client.clone());
    let sent = task::spawn(async move { sending.post(&url, &[], &Rope::default()).await });
    server.wait_for(0, PATIENCE).expect("one request");
    task::block_on(sent.cancel());
    assert!(server.wait_abandoned(0, PATIENCE), "and not only when the client goes");
    drop(client);
}

#[test]
fn a_timeout_ends_the_request_at_the_server() {
    let server = serve(vec![Scripted::hang()]);
    let client = client(SILENCE_MAX);
    assert_eq!(failed(post(&client, &server.url(), &[b"{}"])).kind, FailureKind::Timeout);
    assert!(server.wait_abandoned(0, PATIENCE));
    drop(client);
}

#[test]
fn an_address_is_shown_without_its_user() {
    assert_eq!(without_user("https://u:p@host/v1"), "https://host/v1");
    assert_eq!(without_user("http://host:1/a@b"), "http://host:1/a@b");
    assert_eq!(without_user("odd"), "odd");
    let url = "http://user:canary@127.0.0.1:1/x";
    let text = failed(post(&client(PATIENCE), url, &[b"{}"])).text;
    assert!(text.starts_with("request to http://127.0.0.1:1/x: "), "{text}");
}

#[test]
fn a_document_is_asked_for_without_a_body_and_a_form_is_encoded() {
    let server = serve(vec![Scripted::json("{}")]);
    let client = client(PATIENCE);
    let url = format!("{}/d?x=1", server.url());
    let bearer = [("authorization", Secret::new("Bearer t".to_owned()))];
    answered(task::block_on(client.get(&url, &bearer, PATIENCE)));
    let form = [("a", Secret::new("1 &=".to_owned())), ("b", Secret::new("\u{e9}".to_owned()))];
    answered(task::block_on(client.post_form(&url, &form, PATIENCE)));
    let requests = server.requests();
    assert_eq!((requests[0].method.as_str(), requests[0].path.as_str()), ("GET", "/d?x=1"));
    assert_eq!(requests[0].header("authorization"), Some("Bearer t"));
    assert_eq!((requests[0].header("content-length"), requests[0].header("content-type")), (None, None));
    assert_eq!(
        (requests[1].method.as_str(), requests[1].body.as_slice()),
        ("POST", b"a=1+%26%3D&b=%C3%A9".as_slice())
    );
}

#[test]
fn a_document_that_does_not_come_in_time_is_let_go_at_the_server() {
    let server = serve(vec![Scripted::hang()]);
    let client = client(PATIENCE);
    let failure = failed(task::block_on(client.get(&server.url(), &[], SILENCE_MAX)));
    assert_eq!(failure.kind, FailureKind::Timeout);
    assert_eq!(failure.text, format!("no answer from {} within 0.4s", server.url()));
    assert!(server.wait_abandoned(0, PATIENCE));
}
