//! What other tools read: JSON shapes, exact bytes, exit codes.

use std::process::Stdio;

use serde_json::{json, Value};
use waxlog_scripted::model_server::Answer;

use crate::answers::{slow_and_fast, Cost, Dialect};
use crate::stage::{Done, Stage};

/// A stage whose one session has had a turn of two rounds with calls and a plain one.
fn after_a_turn(dialect: Dialect) -> (Stage, String) {
    let stage = Stage::new(dialect, dialect.parallel_turn(2).0);
    let mut agent = stage.agent();
    let session = agent.open(&stage.session(&slow_and_fast()));
    assert_eq!(agent.turn(&session, "Go."), "end_turn");
    agent.close();
    (stage, session)
}

fn keys(object: &Value) -> Vec<&str> {
    let mut keys: Vec<_> = object.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn usage_is_an_array_with_one_object_a_turn() {
    let (stage, session) = after_a_turn(Dialect::Chat);
    let turns = stage.run(&["usage", "--json"]).ok().json();
    let turn = &turns.as_array().expect("an array")[0];
    let expected =
        ["answered", "cached", "input", "model", "output", "rounds", "session", "stop", "total", "turn"];
    assert_eq!(keys(turn), expected);
    assert_eq!(turn["session"], session);
    assert_eq!(turn["stop"], "end_turn");
    assert_eq!(
        (&turn["rounds"], &turn["answered"], &turn["model"]),
        (&json!(3), &json!(3), &json!("scripted"))
    );
    let number = |key: &str| turn[key].as_u64().expect("a number");
    assert_eq!(number("total"), number("input") + number("output"));
}

#[test]
fn a_number_that_no_provider_gave_is_null() {
    let (stage, _) = after_a_turn(Dialect::Anthropic);
    let turns = stage.run(&["usage", "--json"]).ok().json();
    assert_eq!(turns[0]["total"], Value::Null, "Anthropic gives no total, and none is made up");
    assert!(turns[0]["cached"].is_u64());
}

#[test]
fn a_turn_that_runs_is_open() {
    let stage = Stage::new(Dialect::Chat, vec![waxlog_scripted::model_server::Answer::hang()]);
    let mut agent = stage.agent();
    let session = agent.open(&stage.session(&slow_and_fast()));
    agent.prompt(&session, "Go.");
    stage.model.wait_for(0, crate::agent::PATIENCE).expect("asked");
    assert_eq!(stage.run(&["usage", "--json"]).ok().json()[0]["stop"], "open");
    assert_eq!(stage.run(&["log", "ls", "--json"]).ok().json()[0]["open"], true);
    let replayed = stage.run(&["replay"]).ok();
    assert!(replayed.out.starts_with("open "), "{}", replayed.out);
    assert_eq!(replayed.last_line(), "1 passed, 0 failed");
    agent.kill();
    assert_eq!(stage.run(&["usage", "--json"]).ok().json()[0]["stop"], "interrupted");
    assert_eq!(stage.run(&["log", "ls", "--json"]).ok().json()[0]["open"], false);
}

#[test]
fn log_ls_is_an_array_with_one_object_a_session() {
    let (stage, session) = after_a_turn(Dialect::Chat);
    let sessions = stage.run(&["log", "ls", "--json"]).ok().json();
    let line = &sessions.as_array().expect("an array")[0];
    assert_eq!(keys(line), ["first", "last", "log", "open", "records", "session", "turns"]);
    assert_eq!(line["session"], session);
    assert_eq!(line["log"], stage.log().to_str().expect("utf-8"));
    assert_eq!((&line["turns"], &line["open"]), (&json!(1), &json!(false)));
    assert_eq!(line["records"], stage.records(&session).len());
    for time in ["first", "last"] {
        let time = line[time].as_str().expect("a text");
        assert!(time.len() == 24 && time.starts_with("20") && time.ends_with('Z'), "{time}");
    }
}

#[test]
fn a_home_that_was_never_used_has_nothing_in_it() {
    let stage = Stage::new(Dialect::Chat, Vec::new());
    assert_eq!(stage.run(&["usage", "--json"]).ok().json(), json!([]));
    assert_eq!(stage.run(&["log", "ls", "--json"]).ok().json(), json!([]));
    assert_eq!(stage.run(&["replay"]).ok().out, "0 passed, 0 failed\n");
}

#[test]
fn the_request_of_a_round_is_what_the_model_received_byte_for_byte() {
    for dialect in [Dialect::Chat, Dialect::Anthropic] {
        let (stage, session) = after_a_turn(dialect);
        let received = stage.model.requests();
        assert_eq!(received.len(), 3);
        for (round, request) in (1..).zip(&received) {
            let round = round.to_string();
            let shown = stage.run(&["log", "show", &session, "--round", &round, "--request"]).ok();
            assert_eq!(shown.bytes, request.body, "{dialect:?}, round {round}");
        }
        stage
            .run(&["log", "show", &session, "--round", "4", "--request"])
            .fails(1, "has no round 4: its log holds rounds 1 to 3");
    }
}

#[test]
fn a_session_and_a_round_are_readable() {
    let (stage, session) = after_a_turn(Dialect::Chat);
    let shown = stage.run(&["log", "show", &session]).ok().out;
    assert_eq!(shown.lines().count(), 1 + stage.records(&session).len());
    assert!(shown.contains("calls_started") && shown.contains("tools__slow slow_0"), "{shown}");
    let round = stage.run(&["log", "show", &session, "--round", "2"]).ok().out;
    for part in ["round 2: ", "\"messages\": [", "status 200", "slow_1", "after 12 ms"] {
        assert!(round.contains(part), "{part} in {round}");
    }
    assert!(!round.contains("slow_2") && !round.contains("Done."), "only this round: {round}");
}

#[test]
fn an_exported_log_comes_back_with_every_byte() {
    let (stage, session) = after_a_turn(Dialect::Chat);
    let exported = stage.run(&["log", "export", "0"]).ok();
    let file = stage.path("log.jsonl");
    std::fs::write(&file, &exported.bytes).expect("written");
    let copy = stage.path("copy");
    let (file, copy) = (file.to_str().expect("utf-8"), copy.to_str().expect("utf-8"));
    stage.run(&["log", "import", file, copy]).ok();
    stage.run(&["log", "verify", copy]).ok();
    assert_eq!(stage.run(&["log", "export", copy]).ok().bytes, exported.bytes);
    assert_eq!(stage.run(&["replay", copy]).ok().last_line(), "1 passed, 0 failed");
    let alone = stage.run(&["log", "export", "--session", &session]).ok();
    assert_eq!(alone.out.lines().count(), stage.records(&session).len());
    stage.run(&["log", "import", file, copy]).fails(2, "already holds a log");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let (stage, session) = after_a_turn(Dialect::Chat);
    let mut child =
        stage.waxlog().args(["log", "show", &session]).stdout(Stdio::piped()).spawn().expect("runs");
    drop(child.stdout.take());
    assert!(child.wait().expect("ends").success());
}

#[test]
fn every_command_helps_with_an_example() {
    let stage = Stage::new(Dialect::Chat, Vec::new());
    let commands = [
        "",
        "agent",
        "log",
        "log ls",
        "log show",
        "log verify",
        "log repair",
        "log export",
        "log import",
        "usage",
        "replay",
        "fixture",
        "fixture record",
        "fixture run",
        "demo",
    ];
    for command in commands {
        let done = Done::of(
            stage
                .waxlog()
                .args(command.split(' ').filter(|word| !word.is_empty()))
                .arg("--help")
                .output()
                .expect("runs"),
        )
        .ok();
        assert!(done.out.contains("EXAMPLE:"), "{command}: {}", done.out);
        assert!(!done.out.contains("option that every"), "{command}: {}", done.out);
    }
    stage.run(&["log"]).fails(2, "USAGE");
    stage.run(&["usage", "--nonsense"]).fails(2, "--nonsense");
}

#[test]
fn under_the_name_of_the_other_agent_it_is_the_agent_and_takes_no_arguments() {
    let stage = Stage::new(Dialect::Chat, Vec::new());
    let link = stage.path("buzz-agent");
    std::os::unix::fs::symlink(crate::stage::WAXLOG, &link).expect("linked");
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new(&link);
        command.env_clear().env("WAXLOG_HOME", stage.home()).envs(Dialect::Chat.settings()).args(arguments);
        Done::of(command.stdin(Stdio::null()).output().expect("runs"))
    };
    assert_eq!(run(&["--whatever", "usage"]).ok().out, "");
    assert!(stage.log().exists(), "an agent was here");
    let refused = run(&["auth"]).fails(1, "Error: ");
    assert!(refused.err.starts_with("Error: "), "{}", refused.err);
}

#[test]
fn c12_an_answer_without_output_is_shown_as_such() {
    let silent = json!({
        "stop_reason": "end_turn", "usage": {"input_tokens": 3, "output_tokens": 2},
        "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}],
    });
    let dialect = Dialect::Anthropic;
    let answers = vec![Answer::json(silent.to_string()), dialect.answer("Yes.", &[], Cost::number(1))];
    let stage = Stage::new(dialect, answers);
    let mut agent = stage.agent();
    let session = agent.open(&stage.session(&slow_and_fast()));
    agent.turn(&session, "Think.");
    agent.turn(&session, "Speak.");
    agent.close();
    let shown = stage.run(&["log", "show", &session]).ok().out;
    let silent: Vec<bool> = shown
        .lines()
        .filter(|line| line.contains("round_answered"))
        .map(|line| line.ends_with("; no output"))
        .collect();
    assert_eq!(silent, [true, false], "{shown}");
}
