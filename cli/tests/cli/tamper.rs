//! One byte changed anywhere is found: by `verify` where hashes stand, by `replay` where none does.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use waxlog_store::{Log, Options, Reader};

use crate::answers::{slow_and_fast, Dialect};
use crate::stage::{fixtures, renewed, Stage};

/// What a stored record starts with; see the log's format.
const MAGIC: &[u8] = b"WXR1";
/// Magic, the way it is kept, and two lengths.
const PREFIX_BYTES: usize = 13;

/// A stage whose log holds a turn of two rounds with calls and a plain one.
fn recorded() -> (Stage, String) {
    let stage = Stage::new(Dialect::Chat, Dialect::Chat.parallel_turn(2).0);
    let mut agent = stage.agent();
    let session = agent.open(&stage.session(&slow_and_fast()));
    assert_eq!(agent.turn(&session, "Go."), "end_turn");
    agent.close();
    (stage, session)
}

/// Which part of a stored record is changed.
#[derive(Clone, Copy, Debug)]
enum Part {
    Frame,
    Body,
}

#[test]
fn a_byte_changed_in_a_stored_body_in_evidence_or_in_a_frame_is_found() {
    let (stage, _) = recorded();
    for kind in ["turn_prompted", "round_asked", "round_answered", "call_finished", "turn_ended"] {
        for part in [Part::Frame, Part::Body] {
            let copy = stage.path(&format!("{kind}-{part:?}"));
            copy_folder(&stage.log(), &copy);
            assert!(change(&copy, kind, part) > 0, "no {kind} in the log's files");
            let copy = copy.to_str().expect("utf-8");
            let verified = stage.run(&["log", "verify", copy]).fails(1, "record ");
            assert!(verified.out.contains("BAD "), "{kind} {part:?}: {}", verified.out);
            let replayed = stage.run(&["replay", copy]).fails(1, "FAIL ");
            assert!(!replayed.last_line().ends_with(" 0 failed"), "{kind} {part:?}: {}", replayed.out);
            stage.run(&["log", "repair", copy]).ok();
            stage.run(&["log", "verify", copy]).ok();
        }
    }
}

/// Flips a bit in the middle of a part of every stored form of the first record of `kind`; how many.
fn change(log: &Path, kind: &str, part: Part) -> usize {
    let mut wanted: Option<Vec<u8>> = None;
    let mut changed = 0;
    for file in files(log) {
        let mut bytes = fs::read(&file).expect("read");
        let before = changed;
        for at in positions(&bytes, MAGIC) {
            let Some((frame, body)) = parts(&bytes, at) else { continue };
            let name = [&(kind.len() as u64).to_le_bytes()[..], kind.as_bytes()].concat();
            if positions(&bytes[frame.clone()], &name).is_empty() {
                continue;
            }
            let value = bytes[at..body.end].to_vec();
            if *wanted.get_or_insert_with(|| value.clone()) == value {
                let range = match part {
                    Part::Frame => frame,
                    Part::Body => body,
                };
                bytes[range.start + range.len() / 2] ^= 1;
                changed += 1;
            }
        }
        if changed > before {
            fs::write(&file, bytes).expect("written");
        }
    }
    changed
}

/// Where the frame and the stored body of the record at `at` lie.
fn parts(bytes: &[u8], at: usize) -> Option<(Range<usize>, Range<usize>)> {
    let number = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize);
    let frame = at + PREFIX_BYTES..at + PREFIX_BYTES + number(at + 5)?;
    let body = frame.end..frame.end + number(at + 9)?;
    bytes.get(at..body.end)?;
    Some((frame, body))
}

fn positions(bytes: &[u8], part: &[u8]) -> Vec<usize> {
    (0..bytes.len().saturating_sub(part.len() - 1)).filter(|at| bytes[*at..].starts_with(part)).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("listed") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

fn copy_folder(from: &Path, to: &Path) {
    for file in files(from) {
        let target = to.join(file.strip_prefix(from).expect("below"));
        fs::create_dir_all(target.parent().expect("a parent")).expect("made");
        fs::copy(file, target).expect("copied");
    }
}

#[test]
fn a_past_that_was_rewritten_with_sound_hashes_is_found_by_replay_with_both_sides() {
    let (stage, session) = recorded();
    let expected = [
        // (kind of the record, its occurrence, what is said to differ)
        ("turn_prompted", 0, "the request 1"),
        ("round_asked", 1, "the request 2"),
        ("round_answered", 0, "a line to the client"),
        ("call_finished", 0, "the request 2"),
    ];
    for (kind, occurrence, differs) in expected {
        let copy = stage.path(&format!("rewritten-{kind}"));
        rewrite(&stage.log(), &copy, kind, occurrence);
        let copy = copy.to_str().expect("utf-8");
        stage.run(&["log", "verify", copy]).ok();
        let replayed = stage.run(&["replay", copy]).fails(1, &format!("FAIL {session} turn_"));
        assert_eq!(replayed.last_line(), "0 passed, 1 failed");
        for part in [differs, "recorded, ", "rebuilt, ", ">>"] {
            assert!(replayed.out.contains(part), "{kind}: {part} in {}", replayed.out);
        }
        stage
            .run(&["fixture", "record", &session, "--home", &home_of(&stage, copy)])
            .fails(1, "does not replay");
    }
}

/// A home whose one slot is the log in `copy`.
fn home_of(stage: &Stage, copy: &str) -> String {
    let name = Path::new(copy).file_name().expect("a name").to_string_lossy().into_owned();
    let home = stage.path(&format!("home-of-{name}"));
    copy_folder(Path::new(copy), &home.join("agent/0"));
    home.to_str().expect("utf-8").to_owned()
}

/// Writes the log anew with one letter changed in the raw part of a record.
fn rewrite(from: &Path, to: &Path, kind: &str, occurrence: usize) {
    let log = Log::open(to, Options::default()).expect("a new log");
    let mut seen = 0;
    for stored in Reader::open(from).expect("opens").all(1).expect("reads") {
        let mut stored = stored.expect("sound");
        if stored.kind == kind {
            if seen == occurrence {
                change_a_letter(&mut stored.raw);
            }
            seen += 1;
        }
        log.append(vec![renewed(stored)]).expect("appended");
    }
    log.flush_blocking().expect("flushed");
}

/// Changes a letter of what was said: the JSON around it stays sound.
fn change_a_letter(raw: &mut [u8]) {
    let words: [&[u8]; 3] = [b"Go.", b"Round", b"after"];
    let at = words.iter().find_map(|word| positions(raw, word).first().copied()).expect("a known word");
    raw[at + 1] ^= 2;
}

#[test]
fn a_byte_changed_in_any_line_of_a_fixture_is_found() {
    let stage = Stage::new(Dialect::Chat, Vec::new());
    let fixture =
        fixtures().into_iter().find(|file| file.ends_with("parallel-calls.jsonl")).expect("recorded");
    let bytes = fs::read(fixture).expect("read");
    let file = stage.path("changed.jsonl");
    let mut start = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        // A header is short and every byte of it counts; of the others one in the middle is changed.
        let places: Vec<usize> =
            if start == 0 { (0..line.len() - 1).collect() } else { vec![line.len() / 2] };
        for place in places {
            let mut changed = bytes.clone();
            changed[start + place] ^= 1;
            fs::write(&file, changed).expect("written");
            stage.run(&["fixture", "run", file.to_str().expect("utf-8")]).fails(1, "FAIL ");
        }
        start += line.len();
    }
}
