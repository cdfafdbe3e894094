//! Calls to a server that lives.

use super::super::*;
use super::stage::*;
use async_std::task;
use serde_json::json;
use std::time::{Duration, Instant};
use waxlog_core::content::Part;
use waxlog_core::mcp::{shape_result, ResultLimits};

#[test]
fn an_answer_comes_back_byte_for_byte() {
    let stage = Stage::new();
    let line = r#"{ "result" : {"content":[]},  "id":2, "x":"\ud99c" }"#;
    let server = stage.server(json!([{ "name": "raw", "calls": [{ "raw": line }] }]));
    let report = call(&server, "raw");
    let raw_line = line.as_bytes().to_vec();
    assert_eq!(report.outcome, CallOutcome::Returned { raw_line });
    assert_eq!(report.events, []);
}

#[test]
fn arguments_arrive_as_they_are_and_null_is_left_out() {
    let stage = Stage::new();
    let server = stage.server(json!([{ "name": "echo", "calls": [{ "echo": true }] }]));
    let (_source, cancel) = cancel_pair();
    let ask = |arguments| {
        let request = CallRequest { arguments, ..request("echo", &cancel) };
        task::block_on(server.call(request))
    };
    assert_eq!(answer(&ask(json!({ "b": [1.0, "x"], "a": null }))), r#"{"a":null,"b":[1.0,"x"]}"#);
    answer(&ask(json!(null)));
    let last = stage.received("s").pop().expect("a call");
    assert_eq!(last["params"].get("arguments"), None);
    for wrong in [json!([1]), json!("{}")] {
        let report = ask(wrong);
        assert!(unavailable(&report).contains("arguments must be a JSON object"));
    }
    assert_eq!(stage.calls("s"), 2);
}

#[test]
fn c20_a_protocol_error_is_an_answer_and_the_server_lives_on() {
    let stage = Stage::new();
    let error = json!({ "code": -32602, "message": "bad", "data": { "a": 1 } });
    let server = stage.server(json!([{ "name": "t", "calls": [{ "error": error }, {}] }]));
    let CallOutcome::Returned { raw_line } = call(&server, "t").outcome else {
        panic!("no answer");
    };
    let result = shape_result("s__t", &raw_line, ResultLimits::default());
    let text = r#"Tool call rejected: Mcp error: -32602: bad({"a":1})"#;
    assert_eq!(result.parts, [Part::Text(text.to_owned())]);
    assert_eq!(answer(&call(&server, "t")), "ok");
    assert_eq!(stage.starts("s").len(), 1);
}

#[test]
fn c43_noise_on_stdout_costs_no_call() {
    let stage = Stage::new();
    let script = json!({
        "tools": [{ "name": "t", "calls": [{ "raw": "garbage" }, {}] }],
        "noise": ["", "starting up...", "{\"method\":\"note\"}", "\u{feff}{\"method\":\"x\"}"],
    });
    let servers = stage.start(vec![stage.spec("s", script)]).expect("starts");
    let late = call_within(&servers.list[0], "t", Duration::from_millis(300));
    assert!(matches!(late.outcome, CallOutcome::TimedOut { .. }));
    let objections = stage.received("s").iter().filter(|m| m["error"]["code"] == -32700).count();
    assert_eq!(objections, 2);
}

#[test]
fn requests_of_the_server_are_answered() {
    let stage = Stage::new();
    let asks = |id: &str, method: &str| json!({ "id": id, "method": method }).to_string();
    let script = json!({
        "tools": [{ "name": "t" }],
        "noise": [
            asks("p", "ping"),
            asks("r", "roots/list"),
            asks("e", "elicitation/create"),
            asks("m", "sampling/createMessage"),
        ],
    });
    let servers = stage.start(vec![stage.spec("s", script)]).expect("starts");
    assert_eq!(answer(&call(&servers.list[0], "t")), "ok");
    let reply = |id: &str| {
        let received = stage.received("s");
        received.into_iter().find(|message| message["id"] == id).expect("a reply")
    };
    assert_eq!(reply("p")["result"], json!({}));
    assert_eq!(reply("r")["result"], json!({ "roots": [] }));
    assert_eq!(reply("e")["result"], json!({ "action": "decline" }));
    assert_eq!(reply("m")["error"]["code"], -32601);
}

#[test]
fn calls_to_one_server_run_side_by_side() {
    let stage = Stage::new();
    let slow = |name: &str| json!({ "name": name, "calls": [{ "delay_ms": 400, "text": name }] });
    let server = stage.server(json!([slow("a"), slow("b"), slow("c")]));
    let (_source, cancel) = cancel_pair();
    let begun = Instant::now();
    let calls: Vec<_> = ["a", "b", "c"]
        .into_iter()
        .map(|tool| {
            let (server, request) = (Arc::clone(&server), request(tool, &cancel));
            task::spawn(async move { server.call(request).await })
        })
        .collect();
    let answers: Vec<_> = calls.into_iter().map(|c| answer(&task::block_on(c))).collect();
    assert_eq!(answers, ["a", "b", "c"]);
    assert!(begun.elapsed() < Duration::from_millis(1000));
}

#[test]
fn a_long_line_passes_in_both_directions() {
    let stage = Stage::new();
    let server = stage.server(json!([{ "name": "echo", "calls": [{ "echo": true }] }]));
    let (_source, cancel) = cancel_pair();
    let long = "x".repeat(3_000_000);
    let request = CallRequest { arguments: json!({ "long": long }), ..request("echo", &cancel) };
    let report = task::block_on(server.call(request));
    assert_eq!(answer(&report).len(), long.len() + r#"{"long":""}"#.len());
}

#[test]
fn a_server_that_reads_nothing_costs_only_the_time_of_the_call() {
    let stage = Stage::new();
    let deaf = "read -r a; echo '{\"id\":0,\"result\":{}}'; read -r b; read -r c; \
                echo '{\"id\":1,\"result\":{\"tools\":[{\"name\":\"t\"}]}}'; exec sleep 600";
    let servers = stage.start(vec![stage.shell("deaf", deaf)]).expect("starts");
    let (_source, cancel) = cancel_pair();
    let request = CallRequest {
        arguments: json!({ "long": "x".repeat(1_000_000) }),
        timeout: Duration::from_millis(300),
        ..request("t", &cancel)
    };
    let report = task::block_on(servers.list[0].call(request));
    assert_eq!(report.outcome, CallOutcome::TimedOut { after_secs: 0 });
}

#[test]
fn a_cancelled_call_ends_at_once_and_the_server_is_told_and_lives() {
    let stage = Stage::new();
    let server = stage.server(json!([
        { "name": "slow", "calls": [{ "delay_ms": 600, "text": "late" }, { "text": "next" }] },
    ]));
    let (source, cancel) = cancel_pair();
    let (other, request) = (Arc::clone(&server), request("slow", &cancel));
    let waiting = task::spawn(async move { other.call(request).await });
    eventually("the call", || (stage.calls("s") == 1).then_some(()));
    let begun = Instant::now();
    source.cancel();
    let report = task::block_on(waiting);
    assert!(begun.elapsed() < Duration::from_millis(300));
    assert_eq!((report.outcome, report.events), (CallOutcome::Cancelled, vec![]));
    let told = eventually("the notification", || {
        let received = stage.received("s");
        received.into_iter().find(|message| message["method"] == "notifications/cancelled")
    });
    assert_eq!(told["params"], json!({ "requestId": 2, "reason": "session cancelled" }));
    // The late answer to the first call comes now, and must not be taken for the second's.
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(answer(&call(&server, "slow")), "next");
    assert_eq!(stage.starts("s").len(), 1);
}

#[test]
fn a_call_that_is_cancelled_before_it_starts_is_not_sent() {
    let stage = Stage::new();
    let server = stage.server(json!([{ "name": "t" }]));
    let (source, cancel) = cancel_pair();
    source.cancel();
    let report = task::block_on(server.call(request("t", &cancel)));
    assert_eq!(report.outcome, CallOutcome::Cancelled);
    assert_eq!(answer(&call(&server, "t")), "ok");
    assert_eq!(stage.calls("s"), 1);
}
