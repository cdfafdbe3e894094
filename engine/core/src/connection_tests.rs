use super::*;

fn connection(max_sessions: u64) -> Connection {
    let mut connection = Connection::default();
    let head = Head::ConnectionOpened { version: "1.2.3".into(), max_sessions };
    assert_eq!(connection.fold(&head, b""), Follows::default());
    connection
}

fn send(connection: &mut Connection, line: &str) -> Follows {
    connection.fold(&Head::LineReceived {}, line.as_bytes())
}

fn request(connection: &mut Connection, method: &str, params: Value) -> Value {
    let line = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string();
    let follows = send(connection, &line);
    assert_eq!(follows.lines.len(), 1, "{follows:?}");
    serde_json::from_slice(&follows.lines[0]).expect("a line is JSON")
}

#[test]
fn the_version_is_the_newest_that_both_know() {
    let mut c = connection(1);
    for (asked, told) in [(99, 2), (2, 2), (1, 1), (0, 0)] {
        let answer = request(&mut c, "initialize", json!({"protocolVersion": asked}));
        assert_eq!(answer["result"]["protocolVersion"], told);
    }
    assert_eq!(c.profile(), Profile::Harness);
}

#[test]
fn a_client_with_a_name_of_its_own_speaks_the_public_standard() {
    let mut c = connection(1);
    let params = json!({"protocolVersion": 2, "clientInfo": {"name": "zed", "version": "1"}});
    assert_eq!(request(&mut c, "initialize", params)["result"]["protocolVersion"], 1);
    assert_eq!(c.profile(), Profile::Standard);
    let params = json!({"protocolVersion": 2, "clientInfo": {"name": "buzz-acp", "version": "1"}});
    assert_eq!(request(&mut c, "initialize", params)["result"]["protocolVersion"], 2);
    assert_eq!(c.profile(), Profile::Harness);
}

#[test]
fn unknown_sessions_and_methods_are_named() {
    let mut c = connection(1);
    let prompt = request(&mut c, "session/prompt", json!({"sessionId": "x", "prompt": []}));
    assert_eq!(prompt["error"]["message"], "session/prompt: unknown session");
    let model = request(&mut c, "session/set_model", json!({"sessionId": "x", "modelId": "m"}));
    assert_eq!(model["error"]["code"], code::INVALID_PARAMS);
    let other = request(&mut c, "session/fork", json!({}));
    assert_eq!(other["error"]["message"], "jsonrpc: method not found: session/fork");
    assert_eq!(request(&mut c, "session/cancel", json!(3))["result"], Value::Null);
}

#[test]
fn clients_of_the_standard_are_told_its_own_code_for_an_unknown_session() {
    let mut c = connection(1);
    request(
        &mut c,
        "initialize",
        json!({"protocolVersion": 1, "clientInfo": {"name": "zed", "version": "1"}}),
    );
    let close = request(&mut c, "session/close", json!({"sessionId": "x"}));
    assert_eq!(close["error"]["code"], code::RESOURCE_NOT_FOUND);
    let odd = request(&mut c, "session/close", json!({}));
    assert_eq!(odd["error"]["code"], code::INVALID_PARAMS);
}

#[test]
fn a_session_is_opened_within_the_cap() {
    let mut c = connection(1);
    let line =
        |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"session/new","params":{{"cwd":"/x"}}}}"#);
    assert!(send(&mut c, &line(1)).work.is_some());
    let refused = String::from_utf8(send(&mut c, &line(2)).lines.remove(0)).expect("utf-8");
    assert!(refused.contains("max sessions reached (1)"), "{refused}");
    c.fold(&Head::SessionBegun { session: "ses_1".into() }, b"");
    assert!(send(&mut c, &line(3)).work.is_none());
    let frame =
        classify(br#"{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"ses_1"}}"#);
    assert_eq!(c.route(&frame), Route::Session("ses_1"));
}

#[test]
fn a_failed_session_frees_its_place() {
    let mut c = connection(1);
    let line = r#"{"jsonrpc":"2.0","id":"s","method":"session/new","params":{"cwd":"/x"}}"#;
    let Some(Work::Open { id, .. }) = send(&mut c, line).work else { panic!("opens nothing") };
    let head = Head::SessionFailed { id, code: code::FAILED, message: "mcp: no".into() };
    assert_eq!(c.fold(&head, b"").lines.len(), 1);
    assert!(send(&mut c, line).work.is_some());
}

#[test]
fn what_a_new_session_lacks_is_named() {
    let mut c = connection(9);
    for (params, needle) in [
        (json!({}), "missing field `cwd`"),
        (json!({"cwd": ""}), "absolute path"),
        (json!({"cwd": "relative"}), "absolute path"),
        (json!({"cwd": "/x", "systemPrompt": "p".repeat(600 * 1024)}), "512KB limit"),
    ] {
        let answer = request(&mut c, "session/new", params);
        let message = answer["error"]["message"].as_str().expect("text").to_owned();
        assert!(message.contains(needle), "{message}");
    }
}

#[test]
fn a_kept_line_masks_what_servers_are_given() {
    let line = br#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/x","mcpServers":[{"name":"s","command":"c","env":[{"name":"K","value":"sesame"}]}]}}"#;
    let kept = kept_line(&classify(line), line);
    let text = String::from_utf8(kept.clone()).expect("utf-8");
    assert!(!text.contains("sesame") && text.contains("\"K\""), "{text}");
    let mut c = connection(1);
    assert!(c.fold(&Head::LineReceived {}, &kept).work.is_some());
}

#[test]
fn a_session_that_is_being_loaded_is_not_loaded_twice_nor_deleted_meanwhile() {
    let mut connection = connection(9);
    let load = r#"{"jsonrpc":"2.0","id":1,"method":"session/load","params":{"sessionId":"ses_1","cwd":"/w","mcpServers":[]}}"#;
    assert!(matches!(send(&mut connection, load).work, Some(Work::Load { .. })));
    let params = json!({"sessionId": "ses_1", "cwd": "/w", "mcpServers": []});
    for method in ["session/load", "session/resume", "session/delete"] {
        let refused = request(&mut connection, method, params.clone());
        let text = refused["error"]["message"].as_str().expect("a refusal");
        assert!(text.contains("is being loaded or deleted"), "{text}");
    }
    let failed = Head::SessionFailed {
        id: serde_json::from_value(json!("1")).expect("an id"),
        code: -1,
        message: "no".into(),
    };
    connection.fold(&failed, b"");
    assert!(matches!(send(&mut connection, load).work, Some(Work::Load { .. })));
    connection.fold(&Head::SessionBegun { session: "ses_1".into() }, b"");
    connection.fold(&Head::SessionLeft { session: "ses_1".into() }, b"");
    assert!(
        matches!(send(&mut connection, load).work, Some(Work::Load { .. })),
        "and once it is at rest again"
    );
}

#[test]
fn a_deletion_is_answered_once_it_is_done() {
    let mut connection = connection(9);
    let delete = r#"{"jsonrpc":"2.0","id":"d","method":"session/delete","params":{"sessionId":"ses_1"}}"#;
    let follows = send(&mut connection, delete);
    let Some(Work::Delete { id, session }) = follows.work else { panic!("{follows:?}") };
    assert!(follows.lines.is_empty());
    let done = connection.fold(&Head::DeletionDone { id, session }, b"");
    assert_eq!(done.lines, [br#"{"id":"d","jsonrpc":"2.0","result":{}}"#.to_vec()]);
    assert!(matches!(send(&mut connection, delete).work, Some(Work::Delete { .. })));
}
