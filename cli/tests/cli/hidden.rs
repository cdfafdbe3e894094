//! What other processes of the same user see of an agent.

use std::os::unix::fs::{chown, MetadataExt};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use crate::agent::Agent;
use crate::answers::Dialect;
use crate::stage::Stage;

/// A user that is not root, who sees everything.
const NOBODY: u32 = 65_534;

/// Who the processes of the test are.
fn user(stage: &Stage) -> u32 {
    let home = stage.path("");
    let owner = std::fs::metadata(&home).expect("there").uid();
    if owner != 0 {
        return owner;
    }
    chown(&home, Some(NOBODY), None).expect("root may");
    NOBODY
}

/// Whether `user` can read the environment of a process.
fn is_readable(pid: u32, user: u32) -> bool {
    let mut reader = Command::new("cat");
    reader.arg(format!("/proc/{pid}/environ")).uid(user).stdout(Stdio::null()).stderr(Stdio::null());
    reader.status().expect("runs").success()
}

fn sleeper(user: u32) -> Child {
    Command::new("sleep").arg("600").uid(user).spawn().expect("sleeps")
}

#[test]
fn the_keys_of_an_agent_are_not_in_reach_of_its_users_other_processes() {
    let stage = Stage::new(Dialect::Chat, Vec::new());
    let user = user(&stage);
    let mut other = sleeper(user);
    assert!(is_readable(other.id(), user), "an ordinary process can be read");
    other.kill().expect("it runs");
    other.wait().expect("waited");
    let mut command = stage.agent_command();
    command.uid(user);
    let mut agent = Agent::start(command);
    agent.ask("initialize", &serde_json::json!({"protocolVersion": 1, "clientCapabilities": {}}));
    assert!(!is_readable(agent.pid(), user));
    agent.close();
}
