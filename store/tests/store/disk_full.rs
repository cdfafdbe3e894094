//! A disk that is full: the write fails with words, and all that was acknowledged is there.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::{setrlimit, Resource, Rlimit};
use waxlog_store::{Log, LogError, Options};

use crate::common::{all, child, folder, noise, record};

const DIR_VARIABLE: &str = "WAXLOG_TEST_FULL_DIR";
/// No file may grow over this size, which stands in for the disk's.
const FILE_LIMIT_BYTES: u64 = 3 << 20;

/// The process whose disk is full: appends until it cannot. Does nothing as a test.
#[test]
fn full_child() {
    let Some(dir) = std::env::var_os(DIR_VARIABLE) else {
        return;
    };
    let log = Log::open(&PathBuf::from(dir), Options::default()).expect("open");
    let limit = Rlimit { current: Some(FILE_LIMIT_BYTES), maximum: None };
    setrlimit(Resource::Fsize, limit).expect("limit");
    for n in 0..20_000 {
        let positions = log.append(vec![record("a", n, noise(n, 2000))]).expect("append");
        if let Err(error) = log.flush_blocking() {
            assert!(matches!(error, LogError::Stopped { .. }), "{error}");
            assert!(error.to_string().contains("free space"), "{error}");
            assert!(log.append(vec![record("a", n, "x")]).is_err(), "a stopped log takes nothing more");
            assert!(log.flush_blocking().is_err());
            println!("\nstopped");
            return;
        }
        println!("flushed {}", positions[0].global);
        std::io::stdout().flush().expect("stdout");
    }
}

/// The same command under a shell that ignores SIGXFSZ, so that writes fail instead of killing.
fn deaf_to_the_limit(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    let _ = shell.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]);
    let _ = shell.arg(command.get_program()).args(command.get_args());
    shell
}

#[test]
fn a_full_disk_stops_the_log_and_loses_nothing_acknowledged() {
    let (_folder, dir) = folder();
    let output = deaf_to_the_limit(&child("disk_full::full_child", DIR_VARIABLE, &dir))
        .env(DIR_VARIABLE, &dir)
        .output()
        .expect("run the child");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("stopped"), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    let acknowledged = text.lines().filter_map(|line| line.split("flushed ").nth(1)?.parse().ok()).max();
    let log = Log::open(&dir, Options::default()).expect("open with space again");
    assert!(all(&log.reader()).len() as u64 >= acknowledged.expect("some were flushed"));
    log.append(vec![record("a", 1, "goes on")]).expect("append");
    log.flush_blocking().expect("flush");
}
