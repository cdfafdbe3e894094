//! `shell` at its limits: time, output, size of a command.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{json, Value};

use crate::client::{body_of, runs, Stage};

fn artifact(body: &Value, stream: &str) -> String {
    body[format!("{stream}_artifact")].as_str().expect("a file").to_owned()
}

#[test]
fn a_command_past_its_time_returns_what_it_has_printed() {
    let stage = Stage::new();
    let mut server = stage.server();
    let begun = Instant::now();
    let body =
        body_of(&server.call("shell", json!({"command": "echo before; sleep 600", "timeout_ms": 500})));
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(
        (&body["timed_out"], &body["exit_code"], &body["stdout"]),
        (&true.into(), &124.into(), &"before\n".into())
    );
    let body = body_of(&server.call("shell", json!({"command": "sleep 600", "timeout_ms": 0})));
    assert_eq!(body["timed_out"], true, "0 is taken literally");
    for timeout_ms in [json!(10_000_000), json!(u64::MAX), Value::Null] {
        let body = body_of(&server.call("shell", json!({"command": "echo x", "timeout_ms": timeout_ms})));
        assert_eq!(body["stdout"], "x\n", "more than the most is lowered, not refused");
    }
}

#[test]
fn a_command_that_minds_sigterm_may_clean_up() {
    let stage = Stage::new();
    let mut server = stage.server();
    let command = "trap 'echo bye > last; exit 0' TERM; echo ready; sleep 600 & wait";
    let body = body_of(&server.call("shell", json!({"command": command, "timeout_ms": 1000})));
    assert_eq!(body["exit_code"], 124);
    assert_eq!(stage.read("last"), "bye\n");
}

#[test]
fn what_holds_a_stream_open_from_outside_costs_some_seconds_and_no_output() {
    let stage = Stage::new();
    let mut server = stage.server();
    let begun = Instant::now();
    let away = "setsid bash -c 'echo $$ > away; exec sleep 600' 2>/dev/null &";
    let body = server.shell(&format!("echo kept; {away} while [ ! -s away ]; do :; done"));
    let took = begun.elapsed();
    assert!((Duration::from_secs(5)..Duration::from_secs(20)).contains(&took), "{took:?}");
    assert_eq!((&body["stdout"], &body["exit_code"]), (&"kept\n".into(), &0.into()));
    let notes = body["notes"].as_array().expect("notes");
    assert!(
        notes.len() == 1 && notes[0].as_str().expect("text").contains("stdout was still held open"),
        "{body}"
    );
    let pid = stage.wait_for_pid("away");
    assert!(runs(pid));
    server.stdout(&format!("kill -9 {pid}"));
}

#[test]
fn long_output_is_cut_and_kept_in_a_file() {
    let stage = Stage::new();
    let mut server = stage.server();
    let whole = server.shell("head -c 51200 /dev/zero | tr '\\0' x; seq 2000 >&2");
    assert_eq!((&whole["stdout_truncated"], &whole["stderr_truncated"]), (&false.into(), &false.into()));
    let cut = server
        .shell("head -c 43009 /dev/zero | tr '\\0' a; head -c 8192 /dev/zero | tr '\\0' z; seq 2001 >&2");
    let (notice, tail) = cut["stdout"].as_str().and_then(|text| text.split_once('\n')).expect("a notice");
    assert_eq!(tail, "z".repeat(8192));
    let file = artifact(&cut, "stdout");
    assert!(notice.contains(&file) && notice.contains("51201 bytes captured"), "{notice}");
    assert_eq!(fs::read(file).expect("readable").len(), 51_201);
    assert!(cut["stderr"].as_str().expect("text").ends_with("2000\n2001\n"));
    assert!(artifact(&cut, "stderr").ends_with("000002.stderr.txt"));
}

#[test]
fn of_huge_output_the_start_is_kept_and_the_rest_is_counted() {
    let stage = Stage::new();
    let mut server = stage.server();
    let body = server.shell("yes 0123456789abcde | head -c 12582912; echo done >&2");
    assert_eq!((&body["exit_code"], &body["stderr"]), (&0.into(), &"done\n".into()));
    let notice = body["stdout"].as_str().and_then(|text| text.lines().next()).expect("a notice");
    for part in ["10485760 bytes captured", "655360 lines", "12582912 bytes total", "only the first 10485760"]
    {
        assert!(notice.contains(part), "{part}: {notice}");
    }
    assert_eq!(fs::metadata(artifact(&body, "stdout")).expect("there").len(), 10_485_760);
}

#[test]
fn a_command_too_long_for_an_argument_runs_all_the_same() {
    let stage = Stage::new();
    let mut server = stage.server();
    let padding = "x".repeat(200_000);
    let body = server.shell(&format!("echo {padding} | wc -c; echo $0 | grep -c bash; exit 4"));
    assert_eq!((&body["stdout"], &body["exit_code"]), (&"200001\n1\n".into(), &4.into()));
    let message = server.refused(-32602, "shell", json!({"command": "x".repeat(1_000_001)}));
    assert!(message.contains("1000001 bytes, the limit is 1000000"), "{message}");
    assert!(server.failed("shell", json!({"command": "a\0b"})).contains("NUL"));
}
