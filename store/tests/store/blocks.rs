//! Stores whose files grow by blocks of another size than a new store's.

use std::fs;
use std::path::{Path, PathBuf};

use waxlog_store::{verify, Log, OpenError, Options, Record};

use crate::common::{all, files_under, fill, folder, open, open_sled, record, BLOCK_BYTES};

/// What sled takes where it is not told, as the first stores were made.
const FIRST_BLOCK_BYTES: usize = 512 << 10;
/// With their bodies these fill several blocks of either size.
const RECORDS: u64 = 600;
const RAW_BYTES: usize = 2_000;

fn store(dir: &Path) -> PathBuf {
    dir.join("segment-00000000000000000001/sled")
}

fn conf(dir: &Path) -> String {
    String::from_utf8_lossy(&fs::read(store(dir).join("conf")).expect("read")).into_owned()
}

/// Puts the same keys into a store of blocks of `block_bytes`.
fn remake(dir: &Path, block_bytes: usize) {
    let (old, new) = (store(dir), dir.join("new"));
    {
        let (from, to) = (open_sled(&old, BLOCK_BYTES), open_sled(&new, block_bytes));
        for entry in from.iter() {
            let (key, value) = entry.expect("entry");
            let _ = to.insert(key, value).expect("insert");
        }
        let _ = to.flush().expect("flush");
    }
    fs::remove_dir_all(&old).expect("remove");
    fs::rename(&new, &old).expect("rename");
}

fn first_kind(dir: &Path) -> Vec<Record> {
    let written = fill(dir, Options::default(), RECORDS, RAW_BYTES);
    remake(dir, FIRST_BLOCK_BYTES);
    assert!(conf(dir).contains("segment_size: 524288"), "{}", conf(dir));
    written
}

/// The log holds `written`, takes one more record and is whole after that.
fn goes_on(dir: &Path, written: &[Record]) {
    let log = open(dir);
    assert_eq!(all(&log.reader()), written);
    log.append(vec![record("stream/1", 0, "one more")]).expect("append");
    log.flush_blocking().expect("flush");
    drop(log);
    let records = all(&open(dir).reader());
    assert_eq!(records.len(), written.len() + 1);
    assert_eq!(&records[..written.len()], written);
    assert_eq!(verify(dir).expect("verify").problems, []);
}

#[test]
fn a_new_store_has_small_blocks() {
    let (_folder, dir) = folder();
    fill(&dir, Options::default(), 10, 100);
    assert!(conf(&dir).contains("segment_size: 131072"), "{}", conf(&dir));
    let bytes: u64 = files_under(&dir).iter().map(|file| fs::metadata(file).expect("metadata").len()).sum();
    assert!(bytes < 150_000, "a log of ten small records takes {bytes} bytes");
}

#[test]
fn a_store_with_the_first_blocks_opens_and_goes_on() {
    let (_folder, dir) = folder();
    let written = first_kind(&dir);
    goes_on(&dir, &written);
    assert!(conf(&dir).contains("segment_size: 524288"), "a store keeps its blocks: {}", conf(&dir));
}

#[test]
fn a_store_that_lost_the_note_of_its_blocks_opens_and_goes_on() {
    for make in [first_kind, |dir: &Path| fill(dir, Options::default(), RECORDS, RAW_BYTES)] {
        for lose in [|conf: &Path| fs::remove_file(conf), |conf: &Path| fs::write(conf, "")] {
            let (_folder, dir) = folder();
            let written = make(&dir);
            lose(&store(&dir).join("conf")).expect("lose");
            goes_on(&dir, &written);
        }
    }
}

#[test]
fn a_store_whose_note_names_other_blocks_is_refused_and_left_alone() {
    let (_folder, dir) = folder();
    let written = fill(&dir, Options::default(), RECORDS, RAW_BYTES);
    let (note, sound) = (store(&dir).join("conf"), fs::read(store(&dir).join("conf")).expect("read"));
    fs::write(&note, conf(&dir).replace("131072", "131073")).expect("write");
    assert!(matches!(Log::open(&dir, Options::default()), Err(OpenError::Damaged(_))));
    fs::write(&note, sound).expect("write");
    goes_on(&dir, &written);
}
