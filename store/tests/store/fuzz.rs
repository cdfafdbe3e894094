//! Damage to the files themselves, everywhere: never a panic, a hang or silently fewer records.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use waxlog_store::{repair, verify, Log, OpenError, Options, Reader, Record};

use crate::common::{
    all, copy_dir, files_under, fill, memory_folder, noise, open, readable, record, small_segments,
};

/// A sound log: closed segments, an open one, and values that sled keeps in files of their own.
struct Specimen {
    folder: TempDir,
    dir: PathBuf,
    written: Vec<Record>,
}

impl Specimen {
    fn new() -> Specimen {
        let (folder, dir) = memory_folder();
        let mut written = fill(&dir, small_segments(20_000), 30, 1500);
        let log = Log::open(&dir, small_segments(1 << 30)).expect("open");
        for n in 0..2 {
            log.append(vec![record("large", n, noise(n, 600_000))]).expect("append");
            log.flush_blocking().expect("flush");
        }
        written.extend(log.reader().all(31).expect("read").map(|r| r.expect("sound")));
        Specimen { folder, dir, written }
    }

    /// The files, relative to the log, and their lengths. The lock's content is only a hint.
    fn files(&self) -> Vec<(PathBuf, u64)> {
        let files = files_under(&self.dir).into_iter().filter(|file| !file.ends_with("lock"));
        let relative = |file: &Path| file.strip_prefix(&self.dir).expect("inside").to_path_buf();
        files.map(|file| (relative(&file), fs::metadata(&file).expect("metadata").len())).collect()
    }

    /// Damages one file of a copy in each of the cases, and checks what comes of it.
    fn damage_each<T: Sync>(&self, cases: &[(PathBuf, T)], damage: impl Fn(&Path, &T) -> String + Sync) {
        const THREADS: usize = 2;
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let damage = &damage;
                scope.spawn(move || {
                    for (n, (file, case)) in cases.iter().enumerate().skip(thread).step_by(THREADS) {
                        let home = self.folder.path().join(format!("case-{n}"));
                        let copy = home.join("log");
                        copy_dir(&self.dir, &copy);
                        let what = format!("{}: {}", file.display(), damage(&copy.join(file), case));
                        check(&copy, &self.written, file, &what);
                        fs::remove_dir_all(home).expect("remove");
                    }
                });
            }
        });
    }
}

/// What the damage of one file must never lead to.
fn check(dir: &Path, written: &[Record], damaged_file: &Path, damage: &str) {
    let store_before = store_of(damaged_file).map(|store| contents(&dir.join(store)));
    let report = verify(dir).unwrap_or_else(|error| panic!("{damage}: {error}"));
    if !report.problems.is_empty() {
        let store_after = store_of(damaged_file).map(|store| contents(&dir.join(store)));
        assert!(store_after == store_before, "{damage}: verify changed a damaged store");
    }
    let reader = Reader::open(dir).unwrap_or_else(|error| panic!("{damage}: {error}"));
    let (read, is_whole) = readable(&reader);
    assert!(written.starts_with(&read), "{damage}: a reader got other records");
    let is_told = !is_whole || reader.damage().is_some();
    assert!(read == written || is_told, "{damage}: {} of {} in silence", read.len(), written.len());
    assert!(read == written || !report.problems.is_empty(), "{damage}: verify found nothing");
    drop(reader);
    match Log::open(dir, Options::default()) {
        Ok(log) => drop(log),
        Err(OpenError::Damaged(_)) => assert!(!report.problems.is_empty(), "{damage}: verify found nothing"),
        Err(error) => panic!("{damage}: {error}"),
    }
    let repaired = repair(dir).unwrap_or_else(|error| panic!("{damage}: {error}"));
    let log = open(dir);
    let kept = all(&log.reader());
    assert_eq!(kept.len() as u64, repaired.kept, "{damage}");
    assert!(written.starts_with(&kept), "{damage}: repair made other records");
    assert!(kept.len() >= read.len(), "{damage}: repair kept less than a reader saw");
    log.append(vec![record("new", 1, "after the repair")]).expect("append");
    log.flush_blocking().expect("flush");
}

/// The folder of the store that a file belongs to.
fn store_of(file: &Path) -> Option<&Path> {
    file.ancestors().find(|ancestor| ancestor.ends_with("sled"))
}

fn contents(store: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = files_under(store).into_iter();
    files.map(|path| (path.clone(), fs::read(&path).expect("read"))).collect()
}

#[test]
fn a_flipped_byte_anywhere_is_never_lost_records_in_silence() {
    const FLIPS_PER_FILE: u64 = 16;
    let specimen = Specimen::new();
    let mut random = fastrand::Rng::with_seed(11);
    let mut cases = Vec::new();
    for (file, len) in specimen.files() {
        let stride = (len / FLIPS_PER_FILE).max(1);
        for start in (0..len).step_by(stride as usize) {
            let at = start + random.u64(0..stride.min(len - start));
            cases.push((file.clone(), (at as usize, 1 << random.u8(0..8))));
        }
    }
    assert!(cases.len() >= 200, "{} cases", cases.len());
    specimen.damage_each(&cases, |path, (at, bit): &(usize, u8)| {
        let mut bytes = fs::read(path).expect("read");
        bytes[*at] ^= bit;
        fs::write(path, bytes).expect("write");
        format!("byte {at} flipped by {bit}")
    });
}

#[test]
fn a_cut_emptied_or_deleted_file_is_never_lost_records_in_silence() {
    let specimen = Specimen::new();
    let mut cases = Vec::new();
    for (file, len) in specimen.files() {
        cases.extend(
            [len.saturating_sub(1), len.saturating_sub(64 << 10), 0].map(|to| (file.clone(), Some(to))),
        );
        cases.push((file, None));
    }
    specimen.damage_each(&cases, |path, to: &Option<u64>| match to {
        Some(len) => {
            let file = fs::File::options().write(true).open(path).expect("open");
            file.set_len(*len).expect("cut");
            format!("cut to {len} bytes")
        }
        None => {
            fs::remove_file(path).expect("remove");
            "deleted".to_owned()
        }
    });
}
