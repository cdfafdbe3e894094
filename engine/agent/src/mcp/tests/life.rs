//! The end of servers.

use super::super::*;
use super::stage::*;
use async_std::task;
use serde_json::json;
use std::time::{Duration, Instant};

fn with_child(stage: &Stage) -> Servers {
    let script = json!({ "tools": [{ "name": "t", "calls": [{ "child": true }] }] });
    let servers = stage.start(vec![stage.spec("s", script)]).expect("starts");
    answer(&call(&servers.list[0], "t"));
    servers
}

#[test]
fn c51_closing_leaves_no_process_behind() {
    let stage = Stage::new();
    let servers = with_child(&stage);
    task::block_on(servers.close());
    // The server itself is reaped by now; its child is for init to reap.
    assert!(!std::path::Path::new(&format!("/proc/{}", stage.starts("s")[0])).exists());
    dead(stage.child("s"));
}

#[test]
fn closing_does_not_wait_for_servers_that_do_not_listen() {
    let stage = Stage::new();
    let stubborn = "trap '' TERM; read -r a; echo '{\"id\":0,\"result\":{}}'; read -r b; read -r c; \
                    echo '{\"id\":1,\"result\":{\"tools\":[]}}'; while :; do sleep 1; done";
    let specs = (0..4).map(|n| stage.shell(&format!("s{n}"), stubborn)).collect();
    let servers = stage.start(specs).expect("starts");
    let begun = Instant::now();
    task::block_on(servers.close());
    assert!(begun.elapsed() < Duration::from_millis(900));
}

#[test]
fn c51_dropping_the_servers_kills_their_groups() {
    let stage = Stage::new();
    drop(with_child(&stage));
    gone(stage.starts("s")[0]);
    dead(stage.child("s"));
}

#[test]
fn a_call_to_a_closed_server_is_answered_with_its_end() {
    let stage = Stage::new();
    let script = json!({ "tools": [{ "name": "t", "calls": [{ "hang": true }] }] });
    let servers = stage.start(vec![stage.spec("s", script)]).expect("starts");
    let server = Arc::clone(&servers.list[0]);
    let waiting = task::spawn(async move { call_async(&server).await });
    eventually("the call", || (stage.calls("s") == 1).then_some(()));
    task::block_on(servers.close());
    let report = task::block_on(waiting);
    assert!(matches!(report.outcome, CallOutcome::TransportFailed { .. }), "{report:?}");
}

async fn call_async(server: &Server) -> CallReport {
    let (_source, cancel) = cancel_pair();
    server.call(request("t", &cancel)).await
}
