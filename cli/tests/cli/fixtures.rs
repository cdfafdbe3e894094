//! The recorded turns of the repository stay as they are.

use crate::answers::Dialect;
use crate::stage::{fixtures, Stage};

#[test]
fn every_fixture_replays_to_the_byte() {
    let stage = Stage::new(Dialect::Chat, Vec::new());
    let files = fixtures();
    let mut arguments = vec!["fixture", "run"];
    arguments.extend(files.iter().map(|file| file.to_str().expect("utf-8")));
    let done = stage.run(&arguments).ok();
    assert!(done.last_line().ends_with(" passed, 0 failed"), "{}", done.out);
    assert!(done.out.lines().count() > files.len(), "a turn of each, at least: {}", done.out);
    let replayed = stage.run(&["replay", files[0].to_str().expect("utf-8")]).ok();
    assert_eq!(replayed.out.lines().next(), done.out.lines().next(), "replay takes fixtures too");
}

#[test]
fn a_recorded_session_becomes_a_fixture_that_passes() {
    let (answers, _) = Dialect::Chat.parallel_turn(2);
    let stage = Stage::new(Dialect::Chat, answers);
    let mut agent = stage.agent();
    let session = agent.open(&stage.session(&crate::answers::slow_and_fast()));
    assert_eq!(agent.turn(&session, "Go."), "end_turn");
    agent.close();
    let file = stage.path("turn.jsonl");
    let file = file.to_str().expect("utf-8");
    stage.run(&["fixture", "record", &session, "-o", file]).ok();
    let printed = stage.run(&["fixture", "record", &session]).ok();
    assert_eq!(printed.bytes, std::fs::read(file).expect("written"));
    let done = stage.run(&["fixture", "run", file]).ok();
    assert!(done.out.starts_with(&format!("ok   {session} turn_")), "{}", done.out);
    assert!(done.out.contains(" 3 rounds\n"), "{}", done.out);
    assert_eq!(done.last_line(), "1 passed, 0 failed");
}
