//! Whatever ends an agent, nothing that it started is left.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{json, Value};
use waxlog_scripted::mcp_server::CallScript;

use crate::agent::{Agent, PATIENCE};
use crate::answers::{script, tool, Cost, Dialect, ModelCall};
use crate::stage::Stage;

/// An agent in mid call of a tool that has started a process of its own; with the numbers of both.
fn in_mid_call(stage: &Stage) -> (Agent, Vec<u64>) {
    let hang = CallScript { hang: true, child: true, ..CallScript::default() };
    let mut agent = stage.agent();
    let session = agent.open(&stage.session(&script(vec![tool("hang", vec![hang])])));
    agent.prompt(&session, "Go.");
    agent.until_running("h");
    let log = stage.path("script.log");
    let begun = Instant::now();
    loop {
        let text = fs::read_to_string(&log).unwrap_or_default();
        let entries: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let number = |key: &str| entries.iter().find_map(|entry| entry[key].as_u64());
        if let (Some(server), Some(child)) = (number("start"), number("child")) {
            return (agent, vec![server, child]);
        }
        assert!(begun.elapsed() < PATIENCE, "the tool never ran: {text}");
        thread::sleep(Duration::from_millis(1));
    }
}

fn stage() -> Stage {
    let dialect = Dialect::Chat;
    Stage::new(dialect, vec![dialect.answer("", &[ModelCall::new("h", "tools__hang")], Cost::number(1))])
}

/// Whether a process runs: one that has ended and waits for its parent does not.
fn runs(pid: u64) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

#[track_caller]
fn expect_gone(pids: &[u64]) {
    let begun = Instant::now();
    while pids.iter().any(|pid| runs(*pid)) {
        assert!(begun.elapsed() < PATIENCE, "still running: {pids:?}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn c51_the_end_of_stdin_takes_everything_down() {
    let stage = stage();
    let (agent, pids) = in_mid_call(&stage);
    agent.close();
    expect_gone(&pids);
}

#[test]
fn c51_sigterm_takes_everything_down_and_the_turn_is_recorded() {
    let stage = stage();
    let (agent, pids) = in_mid_call(&stage);
    agent.terminate();
    expect_gone(&pids);
    let usage = stage.run(&["usage", "--json"]).ok().json();
    assert_eq!(usage[0]["stop"], json!("cancelled"));
}

#[test]
fn c51_after_sigkill_the_next_agent_takes_everything_down() {
    let stage = stage();
    let (agent, pids) = in_mid_call(&stage);
    agent.kill_alone();
    assert!(runs(pids[1]), "nobody ends it but the next agent");
    let next = stage.agent();
    expect_gone(&pids);
    next.close();
}
