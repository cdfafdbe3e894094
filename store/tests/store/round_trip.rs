//! What goes in comes out, in order, byte for byte.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use futures_lite::future::block_on;
use waxlog_store::{Hash, Log, LogError, NewRecord, Options, Position, MAX_STREAM_BYTES};

use crate::common::{all, files_under, fill, folder, noise, open, record};

#[test]
fn records_come_back_by_stream_and_by_global_number() {
    let (_folder, dir) = folder();
    let log = open(&dir);
    let positions = log
        .append(vec![record("a", 1, "one"), record("b", 2, vec![0, 159, 146, 150]), record("a", 3, "")])
        .expect("append");
    log.flush_blocking().expect("flush");
    let position = |global, sequence| Position { global, sequence };
    assert_eq!(positions, [position(1, 1), position(2, 1), position(3, 2)]);

    let stream: Vec<_> = log.reader().stream("a").expect("read").map(|r| r.expect("sound")).collect();
    assert_eq!(stream.iter().map(|r| r.position.global).collect::<Vec<_>>(), [1, 3]);
    let records = all(&log.reader());
    assert_eq!(records[1].raw, [0, 159, 146, 150]);
    assert_eq!(records[1].head, b"{\"n\":2}");
    assert_eq!(
        (records[1].kind.as_str(), records[1].version, records[1].time_ms),
        ("test", 3, 1_700_000_000_002)
    );
    assert_eq!(log.reader().all(3).expect("read").count(), 1);
    assert_eq!(log.reader().stream("none").expect("read").count(), 0);
}

#[test]
fn the_chain_runs_over_the_whole_log() {
    let (_folder, dir) = folder();
    let records = fill(&dir, Options::default(), 20, 100);
    assert_eq!(records[0].previous, Hash::ZERO);
    assert!(records.windows(2).all(|pair| pair[1].previous == pair[0].hash));
}

#[test]
fn sequences_and_the_chain_go_on_after_reopening() {
    let (_folder, dir) = folder();
    let before = fill(&dir, Options::default(), 4, 10);
    let log = open(&dir);
    let positions = log.append(vec![record("stream/1", 5, "x"), record("new", 6, "y")]).expect("append");
    assert_eq!(positions, [Position { global: 5, sequence: 3 }, Position { global: 6, sequence: 1 }]);
    log.flush_blocking().expect("flush");
    assert_eq!(all(&log.reader())[4].previous, before[3].hash);
}

#[test]
fn what_is_not_flushed_is_not_read() {
    let (_folder, dir) = folder();
    let log = open(&dir);
    log.append(vec![record("a", 1, "x")]).expect("append");
    let seen = all(&log.reader()).len();
    log.flush_blocking().expect("flush");
    assert_eq!((seen, all(&log.reader()).len()), (0, 1));
}

#[test]
fn closing_the_log_flushes_what_was_appended() {
    let (_folder, dir) = folder();
    let log = open(&dir);
    log.append(vec![record("a", 1, "x")]).expect("append");
    drop(log);
    assert_eq!(all(&open(&dir).reader()).len(), 1);
}

#[test]
fn streams_are_listed_with_their_counts_and_times() {
    let (_folder, dir) = folder();
    fill(&dir, Options::default(), 10, 10);
    let streams = open(&dir).reader().streams().expect("streams");
    let counts: Vec<_> = streams.iter().map(|s| (s.stream.as_str(), s.records, s.first_global)).collect();
    assert_eq!(counts, [("stream/0", 3, 3), ("stream/1", 4, 1), ("stream/2", 3, 2)]);
    assert_eq!((streams[1].last_global, streams[1].last_ms), (10, 1_700_000_000_010));
}

#[test]
fn large_and_empty_bodies_round_trip() {
    let (_folder, dir) = folder();
    let bodies = [Vec::new(), noise(1, 3 << 20), b"abc ".repeat(1 << 18)];
    let log = open(&dir);
    for (n, raw) in (0..).zip(bodies.clone()) {
        log.append(vec![NewRecord { head: Vec::new(), ..record("a", n, raw) }]).expect("append");
    }
    log.flush_blocking().expect("flush");
    drop(log);
    let back: Vec<_> = all(&open(&dir).reader()).into_iter().map(|r| r.raw).collect();
    assert!(back == bodies);
}

#[test]
fn many_that_flush_at_once_share_few_writes() {
    const THREADS: u64 = 32;
    let (_folder, dir) = folder();
    let log = open(&dir);
    let start = Arc::new(std::sync::Barrier::new(THREADS as usize));
    std::thread::scope(|scope| {
        for n in 0..THREADS {
            let (log, start) = (log.clone(), Arc::clone(&start));
            scope.spawn(move || {
                start.wait();
                for k in 0..10 {
                    log.append(vec![record(&format!("s{n}"), k, noise(k, 500))]).expect("append");
                    block_on(log.flush()).expect("flush");
                }
            });
        }
    });
    let stats = log.stats();
    assert_eq!((stats.appended_records, stats.flush_requests), (320, 320));
    assert!(stats.flushes <= 160, "{} writes for 320 flushes", stats.flushes);
    assert_eq!(all(&log.reader()).len(), 320);
}

#[test]
fn sync_and_the_power_level_work_on_any_executor() {
    let (_folder, dir) = folder();
    let log = Log::open(&dir, Options { durability: waxlog_store::Durability::Power, ..Options::default() })
        .expect("open");
    log.append(vec![record("a", 1, noise(1, 1 << 20))]).expect("append");
    block_on(async {
        log.flush().await.expect("flush");
        log.sync().await.expect("sync");
    });
    assert_eq!(all(&log.reader()).len(), 1);
}

#[test]
fn files_are_private_to_their_owner() {
    let (_folder, dir) = folder();
    fill(&dir, Options::default(), 3, 1 << 20);
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).expect("metadata").permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    let _log = open(&dir);
    for file in files_under(&dir) {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[test]
fn names_the_log_cannot_keep_are_refused_with_their_limit() {
    let (_folder, dir) = folder();
    let log = open(&dir);
    for name in [String::new(), "a\0b".to_owned(), "s".repeat(MAX_STREAM_BYTES + 1)] {
        let error = log.append(vec![record("ok", 1, ""), record(&name, 2, "")]).expect_err("refused");
        assert!(matches!(error, LogError::BadName { .. }), "{error}");
    }
    log.flush_blocking().expect("flush");
    assert_eq!(all(&log.reader()).len(), 0, "a refused batch leaves nothing");
}

#[test]
fn a_reader_that_outlives_the_log_is_told() {
    let (_folder, dir) = folder();
    let log = open(&dir);
    let reader = log.reader();
    drop(log);
    assert!(matches!(reader.streams(), Err(LogError::Closed { .. })));
}

#[test]
fn a_log_and_its_readers_can_be_used_from_any_thread() {
    fn shared<T: Send + Sync + Clone>() {}
    shared::<Log>();
    shared::<waxlog_store::Reader>();
}
