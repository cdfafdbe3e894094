use serde_json::json;

use super::*;
use crate::session::tests::rig::{say_call, text, text_result, Rig};

/// Two turns: one with a call, one plain.
fn recorded() -> (Vec<Record>, Rig) {
    let mut rig = Rig::new();
    rig.prompt("one");
    rig.answer(&say_call("a"));
    rig.finish(0, text_result("result"));
    rig.answer(&text("first"));
    rig.prompt("two");
    rig.answer(&text("second"));
    (rig.log.clone(), rig)
}

fn verdicts(records: &[Record]) -> Vec<TurnVerdict> {
    let mut replay = Replay::with_lines(lines_of(recorded().0.iter()).into_iter().collect());
    records.iter().for_each(|record| replay.step(record));
    replay.turns().to_vec()
}

/// What differs in each turn.
fn differences(records: &[Record]) -> Vec<Option<String>> {
    verdicts(records).into_iter().map(|turn| turn.difference.map(|d| d.what)).collect()
}

fn position(records: &[Record], nth: usize, is: impl Fn(&Head) -> bool) -> usize {
    let found = records.iter().enumerate().filter(|(_, r)| is(&r.head)).nth(nth);
    found.expect("such a record").0
}

fn is_answer(head: &Head) -> bool {
    matches!(head, Head::RoundAnswered { .. })
}

fn is_request(head: &Head) -> bool {
    matches!(head, Head::RoundAsked { .. })
}

#[test]
fn an_untouched_log_replays_turn_by_turn() {
    let turn =
        |n: u32, rounds| TurnVerdict { turn: format!("turn_{n}"), ended: true, rounds, difference: None };
    assert_eq!(verdicts(&recorded().0), [turn(1, 2), turn(2, 1)]);
}

#[test]
fn c70_a_changed_answer_shows_as_the_line_that_it_changes_with_both_sides() {
    let (mut records, _) = recorded();
    let at = position(&records, 1, is_answer);
    records[at].raw = text("other").to_string().into_bytes();
    let turns = verdicts(&records);
    let difference = turns[0].difference.clone().expect("a difference");
    assert_eq!(difference.what, "a line to the client");
    let (recorded, rebuilt) =
        (String::from_utf8_lossy(&difference.recorded), String::from_utf8_lossy(&difference.rebuilt));
    assert!(recorded.contains("\"first\""), "{recorded}");
    assert!(rebuilt.contains("\"other\""), "{rebuilt}");
    assert!(turns[1].difference.is_some(), "the next request holds the other text");
}

#[test]
fn a_changed_result_shows_as_the_request_that_it_changes() {
    let (mut records, _) = recorded();
    let at = position(&records, 0, |h| matches!(h, Head::CallFinished { .. }));
    let line = String::from_utf8(records[at].raw.clone()).expect("text");
    records[at].raw = line.replace("\"text\":\"result\"", "\"text\":\"RESULT\"").into_bytes();
    let first = verdicts(&records)[0].difference.clone().expect("a difference");
    assert!(first.what.contains("request 2"), "{}", first.what);
}

#[test]
fn a_changed_byte_of_the_evidence_is_found() {
    let (mut records, _) = recorded();
    let at = position(&records, 1, is_request);
    let last = records[at].raw.len() - 1;
    records[at].raw[last] ^= 1;
    let difference = verdicts(&records)[0].difference.clone().expect("a difference");
    assert_eq!(difference.what, "the request 2 (round 2 of its turn)");
    assert!(String::from_utf8_lossy(&difference.recorded).contains("sha256"));
    assert!(serde_json::from_slice::<serde_json::Value>(&difference.rebuilt).is_ok());
}

#[test]
fn requests_of_another_release_are_told_apart_one_by_one() {
    let (records, _) = recorded();
    let mut changed = records.clone();
    let Head::SessionOpened(opened) = &mut changed[0].head else { panic!("the first record") };
    opened.settings.max_output_tokens += 1;
    let turns = verdicts(&changed);
    for turn in &turns {
        let difference = turn.difference.clone().expect("a difference");
        let side =
            |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).expect("a whole request");
        let (recorded, rebuilt) = (side(&difference.recorded), side(&difference.rebuilt));
        assert_eq!(recorded["max_completion_tokens"], 1000, "{}", difference.what);
        assert_eq!(rebuilt["max_completion_tokens"], 1001);
        assert_eq!(recorded["messages"], rebuilt["messages"]);
    }
    let rounds: Vec<u64> = turns.iter().map(|turn| turn.rounds).collect();
    assert_eq!(rounds, [2, 1]);
}

#[test]
fn a_missing_or_extra_decision_is_named() {
    let (records, _) = recorded();
    let mut missing = records.clone();
    missing.remove(position(&records, 0, |h| matches!(h, Head::CallsStarted { .. })));
    assert_eq!(differences(&missing)[0].as_deref(), Some("a decision"));
    let mut extra = records.clone();
    let at = position(&records, 0, |h| matches!(h, Head::CallsStarted { .. }));
    extra.insert(at + 1, records[at].clone());
    let difference = verdicts(&extra)[0].difference.clone().expect("a difference");
    assert_eq!(difference.what, "a decision");
    assert_eq!(difference.rebuilt, b"nothing to decide");
}

#[test]
fn an_end_that_the_fold_does_not_make_is_named() {
    let (mut records, _) = recorded();
    let at = records.len() - 1;
    let Head::TurnEnded { outcome, .. } = &mut records[at].head else { panic!("the end") };
    *outcome = crate::record::Outcome::Stopped(crate::record::StopReason::Refusal);
    let difference = verdicts(&records)[1].difference.clone().expect("a difference");
    assert_eq!(difference.what, "a decision");
    assert!(String::from_utf8_lossy(&difference.recorded).contains("refusal"));
    assert!(String::from_utf8_lossy(&difference.rebuilt).contains("end_turn"));
    assert_eq!(differences(&records)[0], None, "the turn before is not blamed");
}

#[test]
fn a_log_that_opens_no_session_is_said_so() {
    let (records, _) = recorded();
    let turns = verdicts(&records[1..2]);
    assert_eq!(turns[0].turn, "before the first turn");
    assert_eq!(turns[0].difference.as_ref().expect("a difference").what, "the first record");
    assert!(verdicts(&[]).is_empty());
}

#[test]
fn the_lines_of_a_log_are_the_lines_that_were_said() {
    let (records, rig) = recorded();
    let lines: Vec<serde_json::Value> = lines_of(records.iter())
        .iter()
        .map(|(_, line)| serde_json::from_slice(line).expect("JSON"))
        .collect();
    assert_eq!(lines, rig.lines);
}

#[test]
fn a_line_whose_text_is_not_known_is_named_by_its_digest() {
    let (mut records, _) = recorded();
    let at = records.len() - 1;
    let Head::TurnEnded { said, .. } = &mut records[at].head else { panic!("the end") };
    *said.last_mut().expect("a line") = "00000000".into();
    let mut replay = Replay::default();
    records.iter().for_each(|record| replay.step(record));
    let difference = replay.turns()[1].difference.clone().expect("a difference");
    assert_eq!(difference.recorded, b"a line with digest 00000000");
    let answer: serde_json::Value = serde_json::from_slice(&difference.rebuilt).expect("JSON");
    assert_eq!(answer["result"], json!({"stopReason": "end_turn"}));
}

#[test]
fn one_line_too_few_or_too_many_is_found() {
    let (records, _) = recorded();
    let at = records.len() - 1;
    for more in [false, true] {
        let mut changed = records.clone();
        let Head::TurnEnded { said, .. } = &mut changed[at].head else { panic!("the end") };
        if more {
            said.push("11111111".into());
        } else {
            said.pop();
        }
        let difference = verdicts(&changed)[1].difference.clone().expect("a difference");
        assert_eq!(difference.what, "a line to the client");
        let side = if more { &difference.rebuilt } else { &difference.recorded };
        assert_eq!(side, b"no line");
    }
}
