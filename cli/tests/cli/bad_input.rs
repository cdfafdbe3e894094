//! Bad input gets a clear text that names the value and what to do, and loses nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use waxlog_store::{Log, Options, Reader};

use crate::answers::{slow_and_fast, Dialect};
use crate::stage::{fixtures, Done, Stage};

/// Starts an agent that must not start; its one line on stderr.
#[track_caller]
fn refused(mut command: Command, saying: &[&str]) {
    let done = Done::of(command.stdin(Stdio::null()).output().expect("runs"));
    assert_eq!(done.code, 2, "{}", done.err);
    assert_eq!(done.out, "");
    assert_eq!(done.err.lines().count(), 1, "{}", done.err);
    assert!(done.err.contains("ERROR"), "{}", done.err);
    for part in saying {
        assert!(done.err.contains(part), "{part} in {}", done.err);
    }
}

#[test]
fn an_unknown_provider_is_named() {
    let stage = Stage::new(Dialect::Chat, Vec::new());
    let mut command = stage.agent_command();
    command.env("BUZZ_AGENT_PROVIDER", "nobody");
    refused(command, &["BUZZ_AGENT_PROVIDER=nobody", "openai"]);
}

#[test]
fn a_missing_key_is_named_by_its_variable() {
    let stage = Stage::new(Dialect::Chat, Vec::new());
    let mut command = stage.agent_command();
    command.env_remove("OPENAI_COMPAT_API_KEY");
    refused(command, &["OPENAI_COMPAT_API_KEY"]);
}

#[test]
fn a_home_that_cannot_be_written_is_named() {
    let stage = Stage::new(Dialect::Chat, Vec::new());
    // Where nobody can make a folder, not even root: below a file.
    fs::write(stage.path("file"), "").expect("written");
    let home = stage.path("file").join("home");
    let mut command = stage.agent_command();
    command.env("WAXLOG_HOME", &home);
    refused(command, &[home.to_str().expect("utf-8"), "WAXLOG_HOME"]);
}

#[test]
fn a_home_without_the_right_to_write_is_named() {
    let stage = Stage::new(Dialect::Chat, Vec::new());
    fs::create_dir(stage.home()).expect("made");
    fs::set_permissions(stage.home(), fs::Permissions::from_mode(0o500)).expect("set");
    // For root no folder is closed; there is nothing to see then.
    if fs::create_dir(stage.home().join("probe")).is_err() {
        refused(stage.agent_command(), &[stage.home().to_str().expect("utf-8"), "WAXLOG_HOME"]);
    }
}

#[test]
fn a_log_of_a_newer_format_is_left_alone() {
    let stage = Stage::new(Dialect::Chat, Vec::new());
    drop(Log::open(&stage.log(), Options::default()).expect("a log"));
    // The line with its SHA-256, as a later version would write it.
    let newer = concat!(
        "waxlog log format 7 ",
        "d83f68cea63a137df0f581af19c0a541bd9827aa8bc73b11e95c9ff479c1e397",
        "\n"
    );
    fs::write(stage.log().join("format"), newer).expect("written");
    refused(stage.agent_command(), &["format version 7", "newer waxlog"]);
    stage.run(&["usage"]).fails(2, "format version 7");
    stage.run(&["log", "verify"]).fails(2, "format version 7");
    assert_eq!(fs::read_to_string(stage.log().join("format")).expect("read"), newer);
}

#[test]
fn a_held_log_is_read_through_its_holder_and_the_next_agent_takes_the_next_slot() {
    let stage = Stage::new(Dialect::Chat, Dialect::Chat.parallel_turn(1).0);
    let mut first = stage.agent();
    let session = first.open(&stage.session(&slow_and_fast()));
    assert_eq!(first.turn(&session, "Go."), "end_turn");
    let second = stage.agent();
    assert!(stage.home().join("agent/1").is_dir());
    let verified = stage.run(&["log", "verify"]).ok().out;
    assert_eq!(verified.matches("read through the process that holds it").count(), 2, "{verified}");
    stage.run(&["log", "repair", "0"]).fails(2, "is locked by process");
    assert_eq!(stage.run(&["usage", "--json"]).ok().json()[0]["session"], session);
    second.close();
    first.close();
    assert!(Reader::open(&stage.log()).expect("opens").damage().is_none());
}

#[test]
fn a_torn_fixture_is_named_with_its_line_and_the_others_still_run() {
    let stage = Stage::new(Dialect::Chat, Vec::new());
    let whole = fixtures().swap_remove(0);
    let bytes = fs::read(&whole).expect("read");
    let torn = stage.path("torn.jsonl");
    fs::write(&torn, &bytes[..bytes.len() - 20]).expect("written");
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
    let (torn, whole) = (torn.to_str().expect("utf-8"), whole.to_str().expect("utf-8"));
    let done = stage.run(&["fixture", "run", torn, whole]);
    let done = done.fails(1, &format!("{torn}: line {lines} is the last and is torn"));
    assert!(done.last_line().ends_with("passed, 1 failed"), "{}", done.out);
    assert!(done.out.contains("\nok   "), "{}", done.out);
}

#[test]
fn a_fixture_without_its_last_lines_is_no_whole_one() {
    let stage = Stage::new(Dialect::Chat, Vec::new());
    let text = fs::read_to_string(fixtures().swap_remove(0)).expect("read");
    let lines: Vec<&str> = text.lines().collect();
    let file = stage.path("cut.jsonl");
    for kept in 0..lines.len() {
        fs::write(&file, lines[..kept].iter().map(|line| format!("{line}\n")).collect::<String>())
            .expect("written");
        stage.run(&["fixture", "run", file.to_str().expect("utf-8")]).fails(1, "FAIL ");
    }
}

#[test]
fn what_is_not_there_is_named() {
    let stage = Stage::new(Dialect::Chat, Vec::new());
    stage.run(&["log", "show", "ses_nobody"]).fails(1, "\"ses_nobody\"");
    stage.run(&["replay", "ses_nobody"]).fails(1, "\"ses_nobody\"");
    stage.run(&["fixture", "run", "/nowhere/x.jsonl"]).fails(1, "/nowhere/x.jsonl");
    stage.run(&["log", "verify", "/nowhere"]).fails(1, "/nowhere");
    stage.run(&["usage", "--home", "/nowhere"]).fails(1, "/nowhere");
    stage.run(&["log", "import", "/nowhere/x.jsonl", "/nowhere/log"]).fails(1, "/nowhere/x.jsonl");
    stage.run(&["log", "export"]).fails(1, "there is no log below");
}
