//! Records changed, removed or added behind the log's back, in a store that sled finds sound.

use std::path::Path;

use waxlog_store::{repair, verify, Log, OpenError, Options, Problem, ProblemKind, Reader};

use crate::common::{all, fill, folder, open, open_sled, readable, BLOCK_BYTES};

const RECORDS: u64 = 10;
/// The length of what stands before the frame in a stored value.
const PREFIX_BYTES: usize = 13;

fn tamper(dir: &Path, change: impl FnOnce(&sled::Db)) {
    let store = dir.join("segment-00000000000000000001/sled");
    let db = open_sled(&store, BLOCK_BYTES);
    change(&db);
    let _ = db.flush().expect("flush");
}

fn record_key(global: u64) -> Vec<u8> {
    [b"r".as_slice(), &global.to_be_bytes()].concat()
}

fn flip(db: &sled::Db, global: u64, at: impl FnOnce(usize) -> usize) {
    let mut value = db.get(record_key(global)).expect("get").expect("value").to_vec();
    let at = at(value.len());
    value[at] ^= 1;
    let _ = db.insert(record_key(global), value).expect("insert");
}

/// The first problem after `change`; opening must refuse, and reading must stop before it.
fn problem_after(change: impl FnOnce(&sled::Db)) -> Problem {
    let (_folder, dir) = folder();
    let written = fill(&dir, Options::default(), RECORDS, 100);
    tamper(&dir, change);
    assert!(matches!(Log::open(&dir, Options::default()), Err(OpenError::Damaged(_))));
    let reader = Reader::open(&dir).expect("a damaged log opens for reading");
    let sound = reader.damage().expect("damage is told").sound_records as usize;
    assert_eq!(readable(&reader).0, written[..sound]);
    drop(reader);
    verify(&dir).expect("verify").problems.remove(0)
}

#[test]
fn a_changed_byte_of_a_body_is_named() {
    let problem = problem_after(|db| flip(db, 4, |len| len - 1));
    assert_eq!((problem.kind, problem.global), (ProblemKind::Changed, Some(4)));
    assert_eq!(problem.stream.as_deref(), Some("stream/1"));
    assert!(problem.found.contains("hash"), "{problem}");
}

#[test]
fn a_changed_byte_of_a_frame_is_named() {
    // The time's lowest byte: the frame still decodes, and only the chain can tell.
    let time_at = PREFIX_BYTES + 2 + 8 + "stream/1".len() + 8 + 8;
    let problem = problem_after(|db| flip(db, 4, |_| time_at));
    assert_eq!((problem.kind, problem.global), (ProblemKind::Changed, Some(4)));
    let last = problem_after(|db| flip(db, RECORDS, |_| time_at));
    assert_eq!(
        (last.kind, last.global),
        (ProblemKind::Changed, Some(RECORDS)),
        "the head knows the last hash"
    );
}

#[test]
fn a_missing_record_is_named_in_the_middle_and_at_the_end() {
    for lost in [1, 6, RECORDS] {
        let problem = problem_after(|db| {
            let _ = db.remove(record_key(lost)).expect("remove");
        });
        assert_eq!((problem.kind, problem.global), (ProblemKind::Missing, Some(lost)));
    }
}

#[test]
fn a_missing_index_entry_is_named() {
    let problem = problem_after(|db| {
        let key = [b"sstream/1\0".as_slice(), &2u64.to_be_bytes()].concat();
        let _ = db.remove(key).expect("remove").expect("was there");
    });
    assert_eq!((problem.kind, problem.global), (ProblemKind::Missing, Some(4)));
}

#[test]
fn an_extra_record_and_a_stray_key_are_named() {
    let copied = problem_after(|db| {
        let value = db.get(record_key(3)).expect("get").expect("value");
        let _ = db.insert(record_key(RECORDS + 1), value).expect("insert");
    });
    assert_eq!((copied.kind, copied.global), (ProblemKind::Extra, Some(RECORDS + 1)));
    let stray = problem_after(|db| {
        let _ = db.insert("x", "y").expect("insert");
    });
    assert_eq!(stray.kind, ProblemKind::Extra);
}

#[test]
fn repair_keeps_what_comes_before_the_change_and_puts_the_rest_aside() {
    let (_folder, dir) = folder();
    let written = fill(&dir, Options::default(), RECORDS, 100);
    tamper(&dir, |db| {
        let _ = db.remove(record_key(8)).expect("remove");
    });
    let repaired = repair(&dir).expect("repair");
    assert!(repaired.kept >= 7);
    assert_eq!(repaired.kept + repaired.lost, RECORDS);
    assert!(repaired.set_aside.expect("set aside").join("format").exists());
    let records = all(&open(&dir).reader());
    assert_eq!(records, written[..repaired.kept as usize]);
}

#[test]
fn repair_leaves_a_sound_log_alone() {
    let (_folder, dir) = folder();
    fill(&dir, Options::default(), RECORDS, 100);
    let repaired = repair(&dir).expect("repair");
    assert_eq!((repaired.kept, repaired.lost, repaired.set_aside), (RECORDS, 0, None));
}

#[test]
fn records_without_a_head_and_a_format_file_are_no_new_log() {
    let (_folder, dir) = folder();
    let written = fill(&dir, Options::default(), RECORDS, 100);
    for lost in ["format", "segment-00000000000000000001/head"] {
        std::fs::remove_file(dir.join(lost)).expect("remove");
    }
    let opened = Log::open(&dir, Options::default());
    assert!(matches!(opened, Err(OpenError::Damaged(_))));
    assert_eq!(repair(&dir).expect("repair").kept, RECORDS);
    assert_eq!(all(&open(&dir).reader()), written);
}
