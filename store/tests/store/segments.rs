//! A log that is longer than one segment.

use std::fs;
use std::path::{Path, PathBuf};

use waxlog_store::{verify, Log, OpenError, ProblemKind, Reader};

use crate::common::{all, fill, folder, record, small_segments};

fn segments(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("list").map(|entry| entry.expect("entry").path());
    let mut found: Vec<_> = entries.filter(|path| path.to_string_lossy().contains("segment-")).collect();
    found.sort();
    found
}

#[test]
fn a_full_segment_is_closed_and_the_chain_goes_on() {
    let (_folder, dir) = folder();
    let written = fill(&dir, small_segments(8_000), 40, 500);
    assert!(segments(&dir).len() >= 3, "{:?}", segments(&dir));
    assert!(written.windows(2).all(|pair| pair[1].previous == pair[0].hash));

    let log = Log::open(&dir, small_segments(8_000)).expect("reopen");
    assert_eq!(all(&log.reader()), written);
    let stream = log.reader().stream("stream/1").expect("read").map(|r| r.expect("sound").position.sequence);
    assert_eq!(stream.collect::<Vec<_>>(), (1..=14).collect::<Vec<_>>());
    assert_eq!(log.append(vec![record("stream/1", 41, "")]).expect("append")[0].sequence, 15);
    drop(log);
    assert_eq!(verify(&dir).expect("verify").problems, []);
}

#[test]
fn listing_streams_opens_no_closed_segment() {
    let (_folder, dir) = folder();
    fill(&dir, small_segments(8_000), 40, 500);
    let first = segments(&dir)[0].join("sled/db");
    fs::write(&first, "not a store").expect("write");
    let streams = Reader::open(&dir).expect("open").streams().expect("streams");
    assert_eq!(streams.iter().map(|s| s.records).sum::<u64>(), 40);
}

#[test]
fn a_lost_list_of_streams_is_made_up_for() {
    let (_folder, dir) = folder();
    let written = fill(&dir, small_segments(8_000), 40, 500);
    fs::remove_file(segments(&dir)[0].join("streams")).expect("remove");
    assert_eq!(all(&Reader::open(&dir).expect("open")), written);
}

#[test]
fn a_missing_segment_is_named() {
    let (_folder, dir) = folder();
    fill(&dir, small_segments(8_000), 40, 500);
    let all = segments(&dir);
    for (n, lost) in all.iter().enumerate() {
        let aside = dir.with_extension("aside");
        fs::rename(lost, &aside).expect("move away");
        let name = lost.file_name().expect("name").to_string_lossy().into_owned();
        let first: u64 = name["segment-".len()..].parse().expect("number");

        let error = Log::open(&dir, small_segments(8_000)).expect_err("damaged");
        let OpenError::Damaged(damage) = &error else { panic!("{error}") };
        assert_eq!(damage.sound_records, first - 1, "segment {n}");
        let problem = &damage.problems[0];
        assert_eq!((problem.kind, problem.global), (ProblemKind::Missing, Some(first)));
        assert!(error.to_string().contains("waxlog log repair"), "{error}");
        assert_ne!(verify(&dir).expect("verify").problems, []);

        fs::rename(&aside, lost).expect("move back");
    }
    assert_eq!(verify(&dir).expect("verify").problems, []);
}

#[test]
fn a_change_of_segment_that_a_kill_cut_short_is_finished() {
    let (_folder, dir) = folder();
    let written = fill(&dir, small_segments(1 << 20), 10, 100);
    // The next segment's store is there, its head is not: nothing was ever acknowledged in it.
    fs::create_dir_all(dir.join("segment-00000000000000000011/sled")).expect("create");
    let log = Log::open(&dir, small_segments(1 << 20)).expect("open");
    assert_eq!(all(&log.reader()), written);
}
