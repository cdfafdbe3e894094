//! A process that is killed while it appends: all that it acknowledged is there.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use waxlog_store::{verify, Log, Options};

use crate::common::{all, child, folder, noise, record, small_segments};

const DIR_VARIABLE: &str = "WAXLOG_TEST_KILL_DIR";
const KILLS: u64 = 30;
/// Small, so that kills also fall into the change of a segment.
const SEGMENT_BYTES: u64 = 150_000;

/// The process that gets killed: appends, flushes, says how far it is. Does nothing as a test.
#[test]
fn kill_child() {
    let Some(dir) = std::env::var_os(DIR_VARIABLE) else {
        return;
    };
    let log = Log::open(&PathBuf::from(dir), small_segments(SEGMENT_BYTES)).expect("open");
    let mut out = std::io::stdout();
    for n in 0.. {
        let batch = vec![record("a", n, noise(n, 700)), record("b", n, noise(n, (n % 7) as usize * 300))];
        let positions = log.append(batch).expect("append");
        log.flush_blocking().expect("flush");
        writeln!(out, "flushed {}", positions[1].global).expect("stdout");
        out.flush().expect("stdout");
    }
}

/// Lets the child run for a number of flushes and kills it. Returns the last record it acknowledged.
fn run_and_kill(dir: &Path, flushes: usize) -> u64 {
    let mut child =
        child("kill::kill_child", DIR_VARIABLE, dir).stdout(Stdio::piped()).spawn().expect("start the child");
    let lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
    let mut flushed = lines
        .map_while(Result::ok)
        .filter_map(|line| line.split("flushed ").nth(1).and_then(|global| global.parse::<u64>().ok()));
    let mut last = flushed.by_ref().take(flushes).last().expect("the child flushes");
    child.kill().expect("kill");
    child.wait().expect("wait");
    // What it said between the last line read and the kill counts as well.
    last = flushed.last().unwrap_or(last);
    last
}

#[test]
fn a_killed_process_loses_nothing_it_acknowledged() {
    let (_folder, dir) = folder();
    let mut random = fastrand::Rng::with_seed(7);
    for kill in 0..KILLS {
        let acknowledged = run_and_kill(&dir, random.usize(1..60));
        let log = Log::open(&dir, small_segments(SEGMENT_BYTES)).expect("open after a kill");
        let records = all(&log.reader());
        assert!(records.len() as u64 >= acknowledged, "kill {kill}: {} of {acknowledged}", records.len());
        assert!(records.len().is_multiple_of(2), "kill {kill}: half a batch");
    }
    assert_eq!(verify(&dir).expect("verify").problems, []);
}

#[test]
fn a_kill_in_the_first_moments_leaves_a_log_that_opens() {
    for _ in 0..10 {
        let (_folder, dir) = folder();
        let mut child = child("kill::kill_child", DIR_VARIABLE, &dir)
            .stdout(Stdio::null())
            .spawn()
            .expect("start the child");
        while !dir.join("lock").exists() {
            std::thread::yield_now();
        }
        child.kill().expect("kill");
        child.wait().expect("wait");
        let log = Log::open(&dir, Options::default()).expect("open after a kill");
        assert_eq!(all(&log.reader()).len() % 2, 0);
    }
}
