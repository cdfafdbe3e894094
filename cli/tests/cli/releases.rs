//! Logs of other releases: what this one does not know is kept, shown and passed over; what is broken is
//! named.

use waxlog_store::{Log, NewRecord, Options};

use crate::answers::{slow_and_fast, Dialect};
use crate::stage::Stage;

/// A recorded turn with one more record at the end of the session, and the session's id.
fn with_record(kind: &str, head: &str) -> (Stage, String) {
    let stage = Stage::new(Dialect::Chat, Dialect::Chat.parallel_turn(1).0);
    let mut agent = stage.agent();
    let session = agent.open(&stage.session(&slow_and_fast()));
    assert_eq!(agent.turn(&session, "Go."), "end_turn");
    agent.close();
    let log = Log::open(&stage.log(), Options::default()).expect("opens");
    let (stream, kind, head) = (session.clone(), kind.to_owned(), head.as_bytes().to_vec());
    let raw = b"raw".to_vec();
    log.append(vec![NewRecord { stream, kind, version: 1, time_ms: 0, head, raw }]).expect("appended");
    log.flush_blocking().expect("flushed");
    (stage, session)
}

#[test]
fn c72_a_kind_of_a_later_release_is_shown_and_passed_over() {
    let (stage, session) = with_record("dream_had", "{\"about\":\"sheep\"}");
    let shown = stage.run(&["log", "show", &session]).ok().out;
    assert!(shown.contains("dream_had") && shown.contains("another release"), "{shown}");
    assert_eq!(stage.run(&["replay"]).ok().last_line(), "1 passed, 0 failed");
    assert_eq!(stage.run(&["usage", "--json"]).ok().json()[0]["stop"], "end_turn");
    let file = stage.path("turn.jsonl");
    let file = file.to_str().expect("utf-8");
    stage.run(&["fixture", "record", &session, "-o", file]).ok();
    assert!(std::fs::read_to_string(file).expect("read").contains("dream_had"), "kept");
    stage.run(&["fixture", "run", file]).ok();
    stage.agent().close();
}

#[test]
fn c70_a_record_that_cannot_be_read_fails_for_good() {
    let (stage, session) = with_record("call_finished", "{\"asked\":\"never\"}");
    let shown = stage.run(&["log", "show", &session]).ok().out;
    assert!(shown.contains("(unreadable: "), "the rest is still shown: {shown}");
    let replayed = stage.run(&["replay", &session]).fails(1, "call_finished");
    assert_eq!(replayed.last_line(), "1 passed, 1 failed");
    stage.run(&["usage", "--json"]).fails(1, &session);
    stage.run(&["fixture", "record", &session]).fails(1, "call_finished");
}
