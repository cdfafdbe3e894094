//! `waxlog up` on a machine with nothing.

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use rustix::process::{kill_process, Pid, Signal};
use serde_json::Value;
use tempfile::TempDir;

use crate::stage::BINARY;

const RECORDING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/demo/hello.jsonl");

/// A process of it, read line by line.
struct Up {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

fn waxlog(home: &Path) -> Command {
    let mut command = Command::new(BINARY);
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .current_dir(home);
    command
}

impl Up {
    fn start(home: &Path) -> Self {
        let mut child = waxlog(home)
            .args(["up", "--json", "--listen", "127.0.0.1:0", "--model", RECORDING])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next object that is wanted.
    fn next(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.lines.next().expect("goes on").unwrap();
            let object: Value = serde_json::from_str(&line).unwrap();
            if is_wanted(&object) {
                return object;
            }
        }
    }

    fn ready(&mut self) -> Value {
        let first = self.next(|_| true);
        assert_eq!(first["type"], "ready");
        first
    }

    fn stop(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // A test that fails leaves it running: its agent ends when its input does.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn send(home: &Path, ready: &Value, text: &str) -> Value {
    let output = waxlog(home)
        .env("BUZZ_RELAY_URL", ready["relay"].as_str().unwrap())
        .args(["messages", "send", "--channel", ready["channel"].as_str().unwrap(), "--content", text])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn fails(output: &Output, code: i32, words: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(words), "{said}");
}

#[test]
fn on_a_machine_with_nothing_a_mention_is_answered() {
    let home = TempDir::new().unwrap();
    let mut up = Up::start(home.path());
    let ready = up.ready();
    let sent = send(home.path(), &ready, "@Waxlog hello");
    assert_eq!(sent["mention_pubkeys"][0], ready["agent"]);
    let is_answer = |object: &Value| {
        let tags = object["event"]["tags"].as_array().into_iter().flatten();
        object["event"]["kind"] == 9
            && object["event"]["pubkey"] == ready["agent"]
            && tags.into_iter().any(|tag| tag[0] == "e" && tag[1] == sent["event_id"])
    };
    let answer = up.next(is_answer);
    assert!(answer["event"]["content"].as_str().unwrap().starts_with("Hello!"), "{answer}");
    let metric = up.next(|object| object["type"] == "metric");
    assert_eq!(metric["metric"]["turn"]["inputTokens"], 2_398 + 2_466 + 2_580);
    up.stop();
}

#[test]
fn a_second_start_finds_what_the_first_has_made() {
    let home = TempDir::new().unwrap();
    let mut seen = Vec::new();
    for _ in 0..2 {
        let mut up = Up::start(home.path());
        let mut ready = up.ready();
        ready.as_object_mut().unwrap().remove("relay");
        seen.push(ready);
        up.stop();
    }
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn without_a_provider_it_says_what_to_do_and_makes_nothing() {
    let home = TempDir::new().unwrap();
    let output = waxlog(home.path()).args(["up", "--listen", "127.0.0.1:0"]).output().unwrap();
    fails(&output, 2, "--model");
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
    let no_recording = home.path().join("none.jsonl");
    fs::write(&no_recording, "\n{}\n").unwrap();
    let up = ["up", "--listen", "127.0.0.1:0", "--model"];
    fails(&waxlog(home.path()).args(up).arg(&no_recording).output().unwrap(), 1, "line 2");
}
