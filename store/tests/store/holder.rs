//! A log that somebody else holds.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::Stdio;

use waxlog_store::{verify, Log, LogError, OpenError, Options, Reader};

use crate::common::{all, child, fill, folder, noise, open, record, small_segments};

const DIR_VARIABLE: &str = "WAXLOG_TEST_HOLDER_DIR";

/// The other process: holds the log until its stdin closes. Does nothing as a test.
#[test]
fn holder_child() {
    let Some(dir) = std::env::var_os(DIR_VARIABLE) else {
        return;
    };
    let log = open(&PathBuf::from(dir));
    log.append(vec![record("held", 1, vec![255; 3000])]).expect("append");
    log.flush_blocking().expect("flush");
    println!("\nready");
    std::io::stdout().flush().expect("stdout");
    let _ = std::io::stdin().read(&mut [0]).expect("stdin");
}

#[test]
fn a_log_held_by_another_process_is_refused_at_once_and_read_through_it() {
    let (_folder, dir) = folder();
    let mut holder = child("holder::holder_child", DIR_VARIABLE, &dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("start the holder");
    let stdout = BufReader::new(holder.stdout.take().expect("stdout"));
    assert!(stdout.lines().any(|line| line.expect("line") == "ready"));

    let error = Log::open(&dir, Options::default()).expect_err("locked");
    assert!(matches!(error, OpenError::Locked { pid: Some(pid), .. } if pid == holder.id()), "{error}");
    let reader = Reader::open(&dir).expect("open");
    assert!(reader.has_writer().expect("answered"));
    assert_eq!(all(&reader)[0].raw, [255; 3000]);
    assert_eq!(reader.streams().expect("streams")[0].stream, "held");
    assert_eq!(verify(&dir).expect("verify").records, 1);

    holder.kill().expect("kill");
    holder.wait().expect("wait");
    assert!(matches!(reader.streams(), Err(LogError::Holder { .. })));
    assert_eq!(all(&Reader::open(&dir).expect("a stale socket is no obstacle")).len(), 1);
}

#[test]
fn readers_share_a_log_that_nobody_writes() {
    let (_folder, dir) = folder();
    let written = fill(&dir, Options::default(), 3000, 10);
    let first = Reader::open(&dir).expect("first");
    let second = Reader::open(&dir).expect("second, through the first");
    assert!(!second.has_writer().expect("answered"), "another reader is no writer");
    assert_eq!(all(&second), written);
    assert_eq!(all(&first), written);
}

#[test]
fn a_reader_follows_a_log_that_is_written_meanwhile() {
    let (_folder, dir) = folder();
    let log = Log::open(&dir, small_segments(20_000)).expect("open");
    let reader = Reader::open(&dir).expect("through the holder");
    for n in 1..=60 {
        log.append(vec![record("a", n, noise(n, 1000))]).expect("append");
        log.flush_blocking().expect("flush");
        let newest = reader.all(n).expect("read").next().expect("visible once flushed").expect("sound");
        assert_eq!(newest.position.global, n);
    }
    assert!(log.stats().closed_segments >= 2);
    assert_eq!(all(&reader), all(&log.reader()));
}

#[test]
fn damage_is_told_through_the_socket_as_well() {
    let (_folder, dir) = folder();
    fill(&dir, Options::default(), 5, 100);
    fs::write(dir.join("segment-00000000000000000001/head"), "").expect("empty the head");
    let holder = Reader::open(&dir).expect("first");
    let second = Reader::open(&dir).expect("through the first");
    assert!(holder.damage().is_some());
    assert_eq!(second.damage(), holder.damage());
}

#[test]
fn a_log_with_a_path_too_long_for_a_socket_is_served_from_elsewhere() {
    let (_folder, dir) = folder();
    let dir = dir.join("deep".repeat(30));
    let log = open(&dir);
    log.append(vec![record("a", 1, "x")]).expect("append");
    log.flush_blocking().expect("flush");
    assert_eq!(all(&Reader::open(&dir).expect("open")).len(), 1);
    let socket = PathBuf::from(fs::read_to_string(dir.join("reader")).expect("path of the socket"));
    assert!(!socket.starts_with(&dir));
    drop(log);
    assert!(!socket.exists() && !dir.join("reader").exists(), "the log cleans up behind itself");
}

#[test]
fn an_empty_folder_is_not_a_log() {
    let (folder, dir) = folder();
    assert!(matches!(Reader::open(&dir), Err(OpenError::NotALog { .. })));
    assert!(matches!(verify(folder.path()), Err(OpenError::NotALog { .. })));
    assert_eq!(fs::read_dir(folder.path()).expect("list").count(), 0, "nothing was written there");
}

#[test]
fn a_log_of_a_newer_format_is_refused() {
    let (_folder, dir) = folder();
    drop(open(&dir));
    let line = "waxlog log format 7";
    fs::write(dir.join("format"), format!("{line} {}\n", sha256_hex(line))).expect("write");
    let error = Log::open(&dir, Options::default()).expect_err("refused");
    assert!(matches!(error, OpenError::NewerFormat { found: 7, known: 1, .. }), "{error}");
    assert!(matches!(Reader::open(&dir), Err(OpenError::NewerFormat { .. })));
}

fn sha256_hex(text: &str) -> String {
    use sha2::Digest as _;
    hex::encode(sha2::Sha256::digest(text))
}
