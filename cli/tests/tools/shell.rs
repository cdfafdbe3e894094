//! `shell`: how a command runs and what is told of it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{json, Value};

use crate::client::{body_of, Stage};

#[test]
fn a_command_is_told_whole() {
    let stage = Stage::new();
    let mut body = stage.server().shell("echo hello; echo err >&2");
    assert!(body["duration_ms"].take().is_u64());
    assert_eq!(
        body,
        json!({
            "duration_ms": null,
            "exit_code": 0,
            "notes": [],
            "stderr": "err\n",
            "stderr_artifact": null,
            "stderr_truncated": false,
            "stdout": "hello\n",
            "stdout_artifact": null,
            "stdout_truncated": false,
            "timed_out": false,
        })
    );
}

#[test]
fn an_exit_code_is_no_error_and_a_signal_is_minus_one() {
    let stage = Stage::new();
    let mut server = stage.server();
    for (command, code) in
        [("exit 3", 3), ("kill -9 $$", -1), ("false | true", 0), ("no-such-program", 127), ("", 0)]
    {
        assert_eq!(server.shell(command)["exit_code"], code, "{command}");
    }
}

#[test]
fn a_command_without_leftovers_does_not_wait_for_any() {
    let stage = Stage::new();
    let mut server = stage.server();
    let fastest = (0..5).filter_map(|_| server.shell("true")["duration_ms"].as_u64()).min();
    assert!(fastest.is_some_and(|ms| ms < 200), "{fastest:?} ms");
}

#[test]
fn each_call_is_a_fresh_process_in_the_folder_that_is_named() {
    let stage = Stage::new();
    fs::create_dir(stage.path("sub")).expect("a folder");
    stage.write("a.txt", "");
    let mut server = stage.server();
    server.stdout("cd sub; export X=1");
    let work = stage.path("").display().to_string();
    let work = work.trim_end_matches('/');
    assert_eq!(server.stdout("pwd; echo \"[$X]\""), format!("{work}\n[]\n"));
    let body = body_of(&server.call("shell", json!({"command": "pwd", "workdir": "sub"})));
    assert_eq!(body["stdout"], format!("{work}/sub\n"));
    for workdir in ["nope", "a.txt", ""] {
        let message = server.refused(-32602, "shell", json!({"command": "pwd", "workdir": workdir}));
        assert!(message.contains("workdir") && message.contains(workdir), "{message}");
    }
}

#[test]
fn stdin_is_empty_and_not_the_servers() {
    let stage = Stage::new();
    let mut server = stage.server();
    assert_eq!(server.stdout("cat; wc -c; read x; echo $?"), "0\n1\n");
    assert_eq!(server.stdout("echo on"), "on\n");
}

#[test]
fn calls_run_beside_each_other() {
    let stage = Stage::new();
    let mut server = stage.server();
    let wait =
        |own: &str, other: &str| format!("> {own}; while [ ! -e {other} ]; do sleep 0.01; done; echo {own}");
    let one = server.begin("shell", json!({"command": wait("a", "b")}));
    let two = server.begin("shell", json!({"command": wait("b", "a")}));
    assert_eq!(body_of(&server.answer(&one))["stdout"], "a\n");
    assert_eq!(body_of(&server.answer(&two))["stdout"], "b\n");
}

#[test]
fn a_cancelled_call_does_not_disturb_its_neighbour() {
    let stage = Stage::new();
    let mut server = stage.server();
    let one = server.begin("shell", json!({"command": "echo $$ > one; sleep 600"}));
    let two = server.begin("shell", json!({"command": "while [ ! -e go ]; do sleep 0.01; done; echo two"}));
    stage.wait_for_pid("one");
    server.cancel(&one);
    assert_eq!(server.answer(&one)["result"]["content"][0]["text"], "cancelled");
    stage.write("go", "");
    assert_eq!(body_of(&server.answer(&two))["stdout"], "two\n");
}

#[test]
fn bytes_that_are_no_text_are_replaced() {
    let stage = Stage::new();
    let mut server = stage.server();
    for (command, expected) in [
        (r"printf 'a\377b'", "a\u{fffd}b"),
        (r"printf 'a\000b'", "a\0b"),
        (r"printf '\342\202'", "\u{fffd}"),
        (r"printf 'a\tb\r\n\033[0m'", "a\tb\r\n\u{1b}[0m"),
    ] {
        assert_eq!(server.stdout(command), expected);
    }
}

#[test]
fn another_shell_can_be_chosen() {
    let stage = Stage::new();
    stage.write("odd", "#!/bin/sh\necho \"odd: $# [$1] [$2]\"\n");
    fs::set_permissions(stage.path("odd"), fs::Permissions::from_mode(0o755)).expect("a mode");
    let path = stage.path("odd").display().to_string();
    let mut server = stage.silent_server_with(&[("BUZZ_SHELL", &path)]);
    assert!(server.greet()["instructions"].as_str().expect("text").contains("odd"));
    assert_eq!(server.stdout("a b"), "odd: 2 [-c] [a b]\n");
    let mut server = stage.server_with(&[("BUZZ_SHELL", "/no/such/shell")]);
    assert_eq!(server.stdout("[ -n \"$BASH_VERSION\" ] && echo bash"), "bash\n");
}

#[test]
fn without_a_shell_each_call_says_what_to_install() {
    let stage = Stage::new();
    let programs = stage.programs(&["ls"]);
    let mut server = stage.server_with(&[("PATH", &programs.to_string_lossy())]);
    let text = server.failed("shell", json!({"command": "true"}));
    assert!(text.contains("install it, or set BUZZ_SHELL"), "{text}");
    assert_eq!(server.call("_Stop", Value::Null)["result"]["isError"], false);
}
