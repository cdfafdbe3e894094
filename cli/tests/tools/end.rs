//! However a server or a call ends, nothing that it started is left, and nothing that it made.

use std::path::PathBuf;
use std::time::Instant;

use rustix::process::{kill_process, kill_process_group, Pid, Signal};
use serde_json::{json, Value};

use crate::client::{body_of, expect_gone, runs, wait_until, Server, Stage, PATIENCE};

/// A command with a child, a grandchild that has lost its parent, and one that minds no SIGTERM.
const FAMILY: &str = "(sleep 600 & echo $! > grandchild) & sleep 600 & echo $! > child
    bash -c 'trap \"\" TERM; echo $$ > stubborn; while :; do sleep 0.05; done' &
    echo $$ > head; sleep 600";

fn family(stage: &Stage) -> [u32; 4] {
    ["head", "child", "grandchild", "stubborn"].map(|name| stage.wait_for_pid(name))
}

/// A server in mid call, with the processes of the call.
fn in_mid_call(stage: &Stage) -> (Server, Value, [u32; 4]) {
    let key = "0000000000000000000000000000000000000000000000000000000000000003";
    let mut server = stage.server_with(&[("NOSTR_PRIVATE_KEY", key)]);
    let id = server.begin("shell", json!({"command": FAMILY}));
    let pids = family(stage);
    assert!(pids.into_iter().all(runs));
    assert_eq!(stage.leftovers().len(), 2, "the shims and the session");
    (server, id, pids)
}

fn send(server: &Server, signal: Signal) {
    let pid = i32::try_from(server.pid()).ok().and_then(Pid::from_raw).expect("a number");
    kill_process(pid, signal).expect("it runs");
}

#[test]
fn c51_a_time_out_ends_all_that_the_command_started() {
    let stage = Stage::new();
    let mut server = stage.server();
    let id = server.begin("shell", json!({"command": FAMILY, "timeout_ms": 2000}));
    let pids = family(&stage);
    let body = body_of(&server.answer(&id));
    assert_eq!((&body["exit_code"], &body["timed_out"]), (&json!(124), &json!(true)));
    expect_gone(&pids);
}

#[test]
fn c51_a_cancel_ends_all_that_the_command_started_and_is_answered() {
    let stage = Stage::new();
    let (mut server, id, pids) = in_mid_call(&stage);
    let begun = Instant::now();
    server.cancel(&id);
    let answer = server.answer(&id);
    assert_eq!(answer["result"]["isError"], true);
    assert_eq!(answer["result"]["content"][0]["text"], "cancelled");
    assert!(begun.elapsed() < PATIENCE / 10);
    expect_gone(&pids);
    // Late and unknown ones do nothing.
    for id in [&id, &json!("nobody")] {
        server.cancel(id);
    }
    assert_eq!(server.stdout("echo on"), "on\n");
}

#[test]
fn c51_what_a_command_leaves_in_its_group_ends_with_it() {
    let stage = Stage::new();
    let mut server = stage.server();
    let command =
        "sleep 600 & echo $! > plain; nohup sleep 600 >/dev/null 2>&1 & echo $! > nohup; echo started";
    assert_eq!(server.shell(command)["stdout"], "started\n");
    expect_gone(&["plain", "nohup"].map(|name| stage.wait_for_pid(name)));
}

#[test]
fn c51_what_a_command_sends_away_on_purpose_runs_on() {
    let stage = Stage::new();
    let mut server = stage.server();
    // It writes its number when it has left the group.
    let away = "setsid bash -c 'echo $$ > away; exec sleep 600' >/dev/null 2>&1 </dev/null &";
    server.stdout(&format!("{away} while [ ! -s away ]; do :; done"));
    let pid = stage.wait_for_pid("away");
    assert_eq!(server.finish().0, Some(0));
    assert!(runs(pid));
    kill_process(Pid::from_raw(pid.try_into().expect("a number")).expect("a number"), Signal::KILL)
        .expect("runs");
    expect_gone(&[pid]);
}

#[test]
fn c51_the_end_of_stdin_lets_calls_finish_and_removes_what_was_made() {
    let stage = Stage::new();
    let mut server = stage.server();
    let id = server.begin("shell", json!({"command": "echo $$ > at; sleep 1; echo late"}));
    stage.wait_for_pid("at");
    server.close();
    assert_eq!(body_of(&server.answer(&id))["stdout"], "late\n");
    assert_eq!(server.wait().code(), Some(0));
    assert_eq!(stage.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn c51_the_end_of_stdin_kills_calls_that_do_not_finish_and_leaves_them_unanswered() {
    let stage = Stage::new();
    let (mut server, _, pids) = in_mid_call(&stage);
    server.close();
    assert_eq!(server.wait().code(), Some(0));
    assert_eq!(server.rest(), Vec::<Value>::new());
    expect_gone(&pids);
    assert_eq!(stage.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn c51_sigterm_takes_everything_down() {
    let stage = Stage::new();
    let (mut server, _, pids) = in_mid_call(&stage);
    send(&server, Signal::TERM);
    assert_eq!(server.wait().code(), None, "ended by the signal");
    expect_gone(&pids);
    assert_eq!(stage.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn c51_after_sigkill_of_its_whole_group_the_guard_takes_everything_down() {
    let stage = Stage::new();
    let (mut server, _, pids) = in_mid_call(&stage);
    let group = i32::try_from(server.pid()).ok().and_then(Pid::from_raw).expect("a number");
    kill_process_group(group, Signal::KILL).expect("it runs");
    server.wait();
    expect_gone(&pids);
    wait_until("the key and all else are removed", || stage.leftovers().is_empty());
}

#[test]
fn c51_a_sigkill_amid_the_starts_of_commands_leaves_none_of_them() {
    for _ in 0..5 {
        let stage = Stage::new();
        let mut server = stage.server();
        for n in 0..20 {
            server.begin("shell", json!({"command": format!("echo $$ > {n}; sleep 600 & sleep 600")}));
        }
        stage.wait_for_pid("0");
        let group = i32::try_from(server.pid()).ok().and_then(Pid::from_raw).expect("a number");
        kill_process_group(group, Signal::KILL).expect("it runs");
        server.wait();
        wait_until("nobody is left", || stage.processes().is_empty());
        wait_until("nothing is left", || stage.leftovers().is_empty());
    }
}
