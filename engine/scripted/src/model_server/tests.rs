//! The endpoint seen from a plain socket.

use super::*;

const PATIENCE: Duration = Duration::from_secs(10);

/// Posts `body` on a connection of its own; returns all that comes back.
fn post(server: &ModelServer, body: &str) -> String {
    let mut stream = TcpStream::connect(server.address).expect("connects");
    let length = body.len();
    let head = format!("POST /v1/x HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("sent");
    stream.write_all(body.as_bytes()).expect("sent");
    stream.shutdown(Shutdown::Write).expect("half closed");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    answer
}

#[test]
fn answers_come_in_order_and_the_last_one_stays() {
    let server =
        ModelServer::start(vec![Answer::status(503, "busy").header("retry-after", "1"), Answer::json("{}")])
            .expect("a port");
    let first = "HTTP/1.1 503 Scripted\r\nretry-after: 1\r\ncontent-length: 4\r\n\r\nbusy";
    assert_eq!(post(&server, "a"), first);
    assert!(post(&server, "b").ends_with("{}") && post(&server, "c").ends_with("{}"));
    let bodies: Vec<_> = server.requests().into_iter().map(|r| r.body).collect();
    assert_eq!(bodies, [b"a", b"b", b"c"]);
}

#[test]
fn requests_are_kept_whole_and_can_be_waited_for() {
    let server = ModelServer::start(vec![Answer::json("{}")]).expect("a port");
    assert_eq!(server.wait_for(0, Duration::from_millis(10)), None);
    post(&server, "{\"a\":1}");
    let request = server.wait_for(0, PATIENCE).expect("a request");
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/x"));
    assert_eq!(request.header("content-length"), Some("7"));
    assert_eq!(request.header("absent"), None);
    assert_eq!(request.body, b"{\"a\":1}");
}

#[test]
fn an_answer_may_break_off_or_never_come() {
    let server = ModelServer::start(vec![
        Answer::json("0123456789").truncate(3),
        Answer::drop_connection(),
        Answer::json("0123456789").chunked(),
    ])
    .expect("a port");
    assert!(post(&server, "").ends_with("\r\n\r\n012"));
    assert_eq!(post(&server, ""), "");
    assert!(post(&server, "").ends_with("\r\n\r\na\r\n0123456789\r\n0\r\n\r\n"));
}

#[test]
fn a_dropped_server_closes_its_port_and_connections() {
    let server = ModelServer::start(vec![Answer::hang()]).expect("a port");
    let address = server.address;
    let mut stream = TcpStream::connect(address).expect("connects");
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("sent");
    server.wait_for(0, PATIENCE).expect("a request");
    drop(server);
    let mut rest = Vec::new();
    // Closed one way or the other: what matters is that it does not last.
    let _ = stream.read_to_end(&mut rest);
    assert!(rest.is_empty());
}

#[test]
fn a_recording_answers_what_is_asked_and_says_why_it_cannot() {
    let answer = r#"{"choices":[{"message":{"content":"hello"}}]}"#;
    let server = ModelServer::start_recorded(Recording::parse(answer).expect("a recording")).expect("a port");
    assert!(post(&server, r#"{"messages":[{"role":"user","content":"x"}]}"#).ends_with(answer));
    let refused = post(&server, "{}");
    assert!(refused.starts_with("HTTP/1.1 400") && refused.contains("no chat completion"), "{refused}");
}
