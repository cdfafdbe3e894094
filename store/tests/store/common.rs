//! Records and logs to test with.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use waxlog_store::{Log, NewRecord, Options, Reader, Record};

/// The blocks of a new store.
pub(crate) const BLOCK_BYTES: usize = 128 << 10;
const LOCK_WAIT: Duration = Duration::from_secs(10);
const LOCK_POLL: Duration = Duration::from_millis(5);

pub(crate) fn record(stream: &str, n: u64, raw: impl Into<Vec<u8>>) -> NewRecord {
    NewRecord {
        stream: stream.to_owned(),
        kind: "test".to_owned(),
        version: 3,
        time_ms: 1_700_000_000_000 + n,
        head: format!("{{\"n\":{n}}}").into_bytes(),
        raw: raw.into(),
    }
}

/// Bytes that do not compress and differ from record to record.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    std::iter::repeat_with(|| random.u8(..)).take(len).collect()
}

/// A folder for a log. The log's own folder is one below, so that repair can put it aside.
pub(crate) fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("temp dir");
    let dir = folder.path().join("log");
    (folder, dir)
}

/// The same in memory where the system has such a place, for tests that copy many logs.
pub(crate) fn memory_folder() -> (TempDir, PathBuf) {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        return folder();
    };
    let dir = folder.path().join("log");
    (folder, dir)
}

pub(crate) fn open(dir: &Path) -> Log {
    Log::open(dir, Options::default()).expect("open the log")
}

pub(crate) fn small_segments(segment_bytes: u64) -> Options {
    Options { segment_bytes, ..Options::default() }
}

/// Appends `count` records over three streams, flushed one by one, and closes the log.
pub(crate) fn fill(dir: &Path, options: Options, count: u64, raw_bytes: usize) -> Vec<Record> {
    let log = Log::open(dir, options).expect("open the log");
    for n in 1..=count {
        let stream = format!("stream/{}", n % 3);
        log.append(vec![record(&stream, n, noise(n, raw_bytes))]).expect("append");
        log.flush_blocking().expect("flush");
    }
    all(&log.reader())
}

pub(crate) fn all(reader: &Reader) -> Vec<Record> {
    reader.all(1).expect("read").collect::<Result<_, _>>().expect("sound records")
}

/// Opens sled as the store does: a child that another test is starting holds a copy of the lock
/// between its fork and its exec, so a lock that was let go of can be held for a moment more.
pub(crate) fn open_sled(store: &Path, block_bytes: usize) -> sled::Db {
    let config = sled::Config::new().path(store).segment_size(block_bytes).flush_every_ms(None);
    let deadline = Instant::now() + LOCK_WAIT;
    loop {
        match config.open() {
            Ok(db) => return db,
            Err(error) if Instant::now() < deadline && error.to_string().contains("lock") => {
                thread::sleep(LOCK_POLL);
            }
            Err(error) => panic!("open sled: {error}"),
        }
    }
}

/// The records before the first error, and whether there was none.
pub(crate) fn readable(reader: &Reader) -> (Vec<Record>, bool) {
    let mut records = Vec::new();
    let Ok(all) = reader.all(1) else {
        return (records, false);
    };
    for record in all {
        match record {
            Ok(record) => records.push(record),
            Err(_) => return (records, false),
        }
    }
    (records, true)
}

pub(crate) fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("create");
    for entry in fs::read_dir(from).expect("list") {
        let entry = entry.expect("entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("type").is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            let _ = fs::copy(entry.path(), target).expect("copy");
        }
    }
}

pub(crate) fn files_under(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("list") {
        let entry = entry.expect("entry");
        if entry.file_type().expect("type").is_dir() {
            found.extend(files_under(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

/// This test binary again, to run only `test` with `variable` set: the child of a two-process test.
pub(crate) fn child(test: &str, variable: &str, value: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("own path"));
    let _ = command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(variable, value);
    command
}
