//! Servers that die, and what becomes of the calls to them.

use super::super::*;
use super::stage::*;
use async_std::task;
use serde_json::json;
use std::time::Duration;
use waxlog_core::mcp::ServerEvent;

const SHORT: Duration = Duration::from_millis(300);

fn died(report: &CallReport, wanted_attempt: u32) {
    match report.events.as_slice() {
        [ServerEvent::Died { attempt, retry_in_ms, .. }] => {
            assert_eq!(*attempt, wanted_attempt);
            assert!((BASE_MS * 8 / 10..=BASE_MS * 12 / 10).contains(retry_in_ms), "{report:?}");
        }
        other => panic!("{other:?}"),
    }
}

fn restarted(tools: &[&str]) -> ServerEvent {
    let tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
    ServerEvent::Restarted { tools }
}

#[test]
fn a_server_that_dies_in_a_call_is_started_again_after_a_pause() {
    let stage = Stage::new();
    let server = stage.server(json!([{ "name": "t", "calls": [{ "exit": 3 }] }]));
    stage.write("s", json!({ "tools": [{ "name": "t" }] }));
    let report = call(&server, "t");
    assert!(matches!(report.outcome, CallOutcome::TransportFailed { .. }), "{report:?}");
    died(&report, 1);
    let report = call(&server, "t");
    assert!(unavailable(&report).contains("is recovering"), "{report:?}");
    assert_eq!(report.events, []);
    sit_out_backoff();
    let report = call(&server, "t");
    assert_eq!(report.events, [restarted(&["t"])]);
    assert_eq!(answer(&report), "ok");
}

#[test]
fn a_server_that_died_between_calls_is_started_again_at_once() {
    let stage = Stage::new();
    let calls = json!([{ "text": "one", "exit_after": 0 }]);
    let server = stage.server(json!([{ "name": "t", "calls": calls }]));
    for _ in 0..4 {
        assert_eq!(answer(&call(&server, "t")), "one");
        let pid = stage.starts("s").pop().expect("a start");
        eventually("its death", || (stat(pid)[0] == "Z").then_some(()));
    }
    let report = call(&server, "t");
    let [ServerEvent::Died { attempt: 0, retry_in_ms: 0, .. }, restart] = report.events.as_slice() else {
        panic!("{report:?}");
    };
    assert_eq!(*restart, restarted(&["t"]));
    assert_eq!(stage.calls("s"), 5);
}

#[test]
fn a_request_that_cannot_be_written_goes_out_again_once() {
    let stage = Stage::new();
    let closes_stdin = "echo $$ >>starts; read -r a; echo '{\"id\":0,\"result\":{}}'; \
                        read -r b; read -r c; exec 0<&-; \
                        echo '{\"id\":1,\"result\":{\"tools\":[{\"name\":\"t\"}]}}'; exec sleep 600";
    let servers = stage.start(vec![stage.shell("s", closes_stdin)]).expect("starts");
    let report = call(&servers.list[0], "t");
    assert!(matches!(report.outcome, CallOutcome::TransportFailed { .. }), "{report:?}");
    use ServerEvent::{Died, Restarted};
    let [Died { attempt: 0, .. }, Restarted { .. }, Died { attempt: 1, .. }] = report.events.as_slice()
    else {
        panic!("{report:?}");
    };
    let starts = std::fs::read_to_string(stage.folder().join("starts")).expect("written");
    assert_eq!(starts.lines().count(), 2);
}

#[test]
fn c53_a_call_that_times_out_costs_the_whole_group_and_is_not_run_again() {
    let stage = Stage::new();
    let server = stage.server(json!([{ "name": "t", "calls": [{ "child": true, "hang": true }] }]));
    stage.write("s", json!({ "tools": [{ "name": "t" }] }));
    let report = call_within(&server, "t", SHORT);
    assert_eq!(report.outcome, CallOutcome::TimedOut { after_secs: 0 });
    died(&report, 1);
    assert!(unavailable(&call(&server, "t")).contains("is recovering"));
    gone(stage.starts("s")[0]);
    dead(stage.child("s"));
    sit_out_backoff();
    assert_eq!(answer(&call(&server, "t")), "ok");
    assert_eq!((stage.calls("s"), stage.starts("s").len()), (2, 2));
}

#[test]
fn a_timeout_takes_the_other_calls_of_that_server_along_and_no_other_server() {
    let stage = Stage::new();
    let hangs = json!({ "tools": [{ "name": "t", "calls": [{ "hang": true }] }] });
    let slow = json!({ "tools": [{ "name": "t", "calls": [{ "delay_ms": 600 }] }] });
    let servers = stage.start(vec![stage.spec("a", hangs), stage.spec("b", slow)]).expect("starts");
    let (_source, cancel) = cancel_pair();
    let spawn = |index: usize, timeout| {
        let (server, mut request) = (Arc::clone(&servers.list[index]), request("t", &cancel));
        request.timeout = timeout;
        task::spawn(async move { server.call(request).await })
    };
    let (short, long, other) = (spawn(0, SHORT), spawn(0, PATIENCE), spawn(1, PATIENCE));
    died(&task::block_on(short), 1);
    let long = task::block_on(long);
    assert!(matches!(long.outcome, CallOutcome::TransportFailed { .. }), "{long:?}");
    assert_eq!(long.events, []);
    assert_eq!(answer(&task::block_on(other)), "ok");
}

#[test]
fn a_late_timeout_does_not_hit_the_server_that_took_the_place() {
    let stage = Stage::new();
    let calls = json!([{ "hang": true }, { "exit": 1 }]);
    let server = stage.server(json!([{ "name": "t", "calls": calls }]));
    stage.write("s", json!({ "tools": [{ "name": "t" }] }));
    let (_source, cancel) = cancel_pair();
    let (other, first) = (Arc::clone(&server), request("t", &cancel));
    let hanging = task::spawn(async move { other.call(first).await });
    eventually("the first call", || (stage.calls("s") == 1).then_some(()));
    call(&server, "t");
    task::block_on(hanging);
    sit_out_backoff();
    assert_eq!(answer(&call(&server, "t")), "ok");
    assert_eq!(stage.starts("s").len(), 2);
}

#[test]
fn a_server_that_does_not_come_back_is_given_up() {
    let stage = Stage::new();
    let server = stage.server(json!([{ "name": "t", "calls": [{ "exit": 1 }] }]));
    stage.write("s", json!("no script"));
    call(&server, "t");
    sit_out_backoff();
    let report = call(&server, "t");
    assert!(unavailable(&report).contains("restart failed"), "{report:?}");
    assert!(matches!(report.events.as_slice(), [ServerEvent::RestartFailed { attempt: 2, .. }]));
    sit_out_backoff();
    sit_out_backoff();
    let report = call(&server, "t");
    assert!(matches!(
        report.events.as_slice(),
        [ServerEvent::RestartFailed { attempt: 3, .. }, ServerEvent::Exhausted]
    ));
    let report = call(&server, "t");
    assert!(unavailable(&report).contains("exhausted"), "{report:?}");
    assert_eq!(report.events, []);
}

#[test]
fn c50_a_server_that_came_back_too_late_gets_another_chance_and_its_tools_appear() {
    let mut stage = Stage::new();
    stage.settings.init_timeout = SHORT;
    let server = stage.server(json!([{ "name": "t", "calls": [{ "exit": 1 }] }]));
    stage.write("s", json!({ "hang_initialize": true }));
    call(&server, "t");
    sit_out_backoff();
    let report = call(&server, "t");
    assert!(unavailable(&report).contains("timeout"), "{report:?}");
    assert!(matches!(report.events.as_slice(), [ServerEvent::RestartFailed { attempt: 2, .. }]));
    gone(stage.starts("s")[1]);
    stage.write("s", json!({ "tools": [{ "name": "t" }, { "name": "new" }] }));
    sit_out_backoff();
    sit_out_backoff();
    let report = call(&server, "new");
    assert_eq!(report.events, [restarted(&["t", "new"])]);
    assert_eq!(answer(&report), "ok");
}

#[test]
fn with_one_attempt_a_single_death_is_the_end() {
    let mut stage = Stage::new();
    stage.settings.restart.max_attempts = 1;
    let server = stage.server(json!([{ "name": "t", "calls": [{ "exit": 1 }] }]));
    let report = call(&server, "t");
    assert_eq!(report.events.last(), Some(&ServerEvent::Exhausted));
    sit_out_backoff();
    assert!(unavailable(&call(&server, "t")).contains("exhausted"));
    assert_eq!(stage.starts("s").len(), 1);
}

#[test]
fn a_tool_that_did_not_come_back_is_no_longer_available() {
    let stage = Stage::new();
    let calls = json!([{ "exit_after": 0 }]);
    let server = stage.server(json!([{ "name": "a", "calls": calls }, { "name": "b" }]));
    stage.write("s", json!({ "tools": [{ "name": "a" }, { "name": "new" }] }));
    answer(&call(&server, "a"));
    let pid = stage.starts("s")[0];
    eventually("its death", || (stat(pid)[0] == "Z").then_some(()));
    let report = call(&server, "b");
    assert!(unavailable(&report).contains("no longer available"), "{report:?}");
    assert_eq!(report.events.last(), Some(&restarted(&["a", "new"])));
    assert_eq!(answer(&call(&server, "a")), "ok");
}

#[test]
fn calls_at_the_same_time_share_one_restart() {
    let stage = Stage::new();
    let server = stage.server(json!([{ "name": "t", "calls": [{ "exit": 1 }] }]));
    stage.write("s", json!({ "tools": [{ "name": "t" }] }));
    call(&server, "t");
    sit_out_backoff();
    let (_source, cancel) = cancel_pair();
    let calls: Vec<_> = (0..4)
        .map(|_| {
            let (server, request) = (Arc::clone(&server), request("t", &cancel));
            task::spawn(async move { server.call(request).await })
        })
        .collect();
    let reports: Vec<_> = calls.into_iter().map(task::block_on).collect();
    assert!(reports.iter().all(|report| answer(report) == "ok"));
    let restarts = reports.iter().flat_map(|report| &report.events).count();
    assert_eq!((restarts, stage.starts("s").len()), (1, 2));
}

#[test]
fn a_call_that_ends_during_a_restart_leaves_no_process_and_counts_no_attempt() {
    let stage = Stage::new();
    let server = stage.server(json!([{ "name": "t", "calls": [{ "exit": 1 }] }]));
    stage.write("s", json!({ "hang_initialize": true }));
    call(&server, "t");
    sit_out_backoff();
    let report = call_within(&server, "t", SHORT);
    assert_eq!(report.outcome, CallOutcome::TimedOut { after_secs: 0 });
    assert_eq!(report.events, []);
    gone(stage.starts("s")[1]);
    stage.write("s", json!({ "tools": [{ "name": "t" }] }));
    assert_eq!(answer(&call(&server, "t")), "ok");
}
