//! Requests and answers, whatever the tool.

use serde_json::{json, Value};

use crate::client::Stage;

#[test]
fn seven_tools_are_listed_by_name() {
    let stage = Stage::new();
    let mut server = stage.server();
    let id = server.ask("tools/list", &json!({}));
    let answer = server.answer(&id);
    let tools = answer["result"]["tools"].as_array().expect("a list");
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["_PostCompact", "_Stop", "read_file", "shell", "str_replace", "todo", "view_image"]);
    for method in ["prompts/list", "resources/list"] {
        let id = server.ask(method, &json!({}));
        let kind = method.split('/').next().expect("a kind");
        assert_eq!(server.answer(&id)["result"], json!({kind: []}));
    }
}

#[test]
fn a_version_that_is_known_is_echoed_and_any_other_is_answered_with_one_that_is() {
    let stage = Stage::new();
    let mut server = stage.silent_server_with(&[]);
    let id = server.ask("ping", &json!({}));
    assert_eq!(server.answer(&id)["result"], json!({}), "before anything else");
    for (asked, expected) in [("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-11-25")] {
        let id = server.ask("initialize", &json!({"protocolVersion": asked}));
        let result = server.answer(&id)["result"].clone();
        assert_eq!(result["protocolVersion"], expected);
        assert_eq!(result["serverInfo"]["name"], "buzz-dev-mcp");
        let work = stage.path("");
        let work = work.to_string_lossy();
        assert!(
            result["instructions"].as_str().expect("text").contains(work.trim_end_matches('/')),
            "{result}"
        );
    }
}

#[test]
fn wrong_arguments_are_a_failed_result_and_an_unknown_tool_an_error() {
    let stage = Stage::new();
    let mut server = stage.server();
    for (tool, arguments) in [
        ("shell", json!({})),
        ("shell", json!({"command": 5})),
        ("shell", json!({"command": "x", "timeout_ms": -1})),
        ("read_file", json!({"path": "a", "offset": -1})),
        ("str_replace", json!({"path": "a", "old_str": "a", "new_str": "b", "replace_all": "yes"})),
        ("todo", json!({"todos": [{"text": "a", "id": 1}]})),
        ("todo", json!({"items": []})),
        ("_Stop", json!({"x": 1})),
        ("view_image", json!({"source": "a", "max_dim": -1})),
    ] {
        assert!(server.failed(tool, arguments).contains("failed to deserialize parameters"));
    }
    assert!(server.refused(-32602, "Shell", json!({"command": "true"})).contains("tool not found"));
    for params in [json!({"name": "_Stop", "arguments": [1]}), json!({"arguments": {}})] {
        let id = server.ask("tools/call", &params);
        assert_eq!(server.answer(&id)["error"], json!({"code": -32601, "message": "tools/call"}));
    }
    let id = server.ask("tools/forget", &json!({}));
    assert_eq!(server.answer(&id)["error"]["code"], -32601);
    let id = server.ask("tools/call", &json!({"name": "_Stop", "arguments": null}));
    assert_eq!(server.answer(&id)["result"]["isError"], false, "null is nothing");
}

#[test]
fn a_line_that_is_no_message_is_answered_without_an_id_and_the_server_goes_on() {
    let stage = Stage::new();
    let mut server = stage.server();
    for line in ["{not json", "[1]", r#"{"id":1,"method":"ping"}"#] {
        server.write(line);
        let answer = server.next();
        assert_eq!(answer["error"]["code"], -32700);
        assert!(answer.get("id").is_none(), "{answer}");
    }
    server.write("");
    server.write("\r");
    server.write(r#"{"jsonrpc":"2.0","method":"notifications/unheard_of"}"#);
    server.write(r#"{"jsonrpc":"2.0","id":99,"result":{}}"#);
    for id in [json!("one"), json!(4_294_967_296_123_u64), json!(0), json!("")] {
        server.write(&format!("{}\r", json!({"jsonrpc": "2.0", "id": id, "method": "ping"})));
        assert_eq!(server.next(), json!({"jsonrpc": "2.0", "id": id, "result": {}}));
    }
}

#[test]
fn of_many_large_requests_at_once_each_is_answered_once() {
    let stage = Stage::new();
    let mut server = stage.server();
    let padding = "x".repeat(100_000);
    let ids: Vec<Value> = (0..100)
        .map(|n| match n % 4 {
            0 => server.begin("shell", json!({"command": format!("echo {n} # {padding}")})),
            1 => server.begin("read_file", json!({"path": padding})),
            2 => server.begin("_Stop", json!({"padding": padding})),
            _ => server.ask("ping", &json!({"padding": padding})),
        })
        .collect();
    for (n, id) in ids.iter().enumerate() {
        let answer = server.answer(id);
        if n % 4 == 0 {
            let text = answer["result"]["content"][0]["text"].as_str().expect("text");
            assert!(text.contains(&format!("\"stdout\": \"{n}\\n\"")), "{text}");
        }
    }
    assert_eq!(server.finish().0, Some(0));
}

#[test]
fn before_it_is_introduced_a_client_gets_nothing_done() {
    let stage = Stage::new();
    let mut server = stage.silent_server_with(&[]);
    server.begin("shell", json!({"command": "touch done"}));
    assert_eq!(server.wait().code(), Some(1));
    assert_eq!(server.rest(), Vec::<Value>::new());
    assert!(!stage.path("done").exists());
    assert_eq!(stage.silent_server_with(&[]).finish().0, Some(1));
    assert_eq!(stage.leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn the_todo_list_holds_a_turn_and_survives_a_new_context() {
    let stage = Stage::new();
    let mut server = stage.server();
    // One after the other without waiting: each sees those before it.
    let set = server.begin("todo", json!({"todos": [{"text": "a"}, {"text": "b", "done": true}]}));
    let stop = server.begin("_Stop", json!({}));
    let compact = server.begin("_PostCompact", json!({}));
    let text = |answer: Value| answer["result"]["content"][0]["text"].as_str().expect("text").to_owned();
    assert!(text(server.answer(&set)).starts_with("[ ] 1. a"));
    assert!(text(server.answer(&stop)).contains("open todo items"));
    assert!(text(server.answer(&compact)).starts_with("# Todo List\n[ ] 1. a"));
    assert!(server.failed("todo", json!({"todos": [{"text": "a\tb"}]})).starts_with("Error: "));
}
