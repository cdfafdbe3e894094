//! Builds a new log from what a damaged one still has. The damaged folder is kept aside.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{RenameFlags, CWD};

use crate::damage::Problem;
use crate::error::{IoContext as _, LogError, OpenError};
use crate::files;
use crate::head::{self, Found};
use crate::layout::{self, Layout};
use crate::lock::Lock;
use crate::record::Hash;
use crate::refill::Refill;
use crate::salvage;
use crate::segment;
use crate::verify::verify_files;

/// How many damaged folders of one log may lie beside it.
const MAX_SET_ASIDE: u32 = 10_000;

/// What a repair did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    /// How many records the log has now.
    pub kept: u64,
    /// How many acknowledged records are lost, as far as the damaged log can still tell: at least.
    pub lost: u64,
    /// What was wrong. Empty when nothing was, and then nothing was done.
    pub problems: Vec<Problem>,
    /// Where the damaged folder lies now.
    pub set_aside: Option<PathBuf>,
}

/// Repairs the log in `dir`. The records are taken from the raw files by their hashes, so it keeps
/// what sled itself no longer finds. The longest sound chain from the first record on is kept.
pub fn repair(dir: &Path) -> Result<Repaired, OpenError> {
    layout::expect_log(dir)?;
    let _lock = Lock::take(dir)?;
    let layout = layout::inspect(dir)?;
    let report = verify_files(&layout)?;
    if report.problems.is_empty() {
        return Ok(Repaired { kept: report.records, lost: 0, problems: Vec::new(), set_aside: None });
    }
    let building = beside(dir, "repairing");
    files::remove(&building).context("remove", &building)?;
    let (kept, highest) = rebuild(&layout, &building)?;
    let promised = layout.promised_records().unwrap_or(0).max(highest);
    let set_aside = swap(dir, &building)?;
    Ok(Repaired {
        kept,
        lost: promised.saturating_sub(kept),
        problems: report.problems,
        set_aside: Some(set_aside),
    })
}

/// Fills the new log segment by segment. Returns how many records it has, and the highest number
/// of any record that was found.
fn rebuild(layout: &Layout, building: &Path) -> Result<(u64, u64), OpenError> {
    let mut refill = Refill::start(building)?;
    let mut highest = 0;
    for (_, dir) in segment::list(&layout.dir).context("list", &layout.dir)? {
        let found = salvage::scan(&dir).context("read", &dir)?;
        highest = found.iter().map(|record| record.position.global).fold(highest, u64::max);
        let head = match head::read(&dir).context("read the head of", &dir)? {
            Found::Sound(head) => Some(head),
            Found::Missing | Found::Damaged { .. } => None,
        };
        for record in salvage::chain(found, refill.last_hash(), head.as_ref()) {
            let expected = record.hash;
            let made = refill.add(record)?;
            check_same(building, expected, made)?;
        }
    }
    Ok((refill.finish()?, highest))
}

fn check_same(building: &Path, expected: Hash, made: Hash) -> Result<(), OpenError> {
    if expected == made {
        return Ok(());
    }
    let reason = format!("a record with the hash {expected} became one with the hash {made}");
    Err(OpenError::Log(LogError::Unreadable { path: building.to_path_buf(), reason }))
}

/// Puts the new log in the damaged one's place, in one step where the file system can.
fn swap(dir: &Path, building: &Path) -> Result<PathBuf, OpenError> {
    let aside = free_name(dir)?;
    match rustix::fs::renameat_with(CWD, dir, CWD, building, RenameFlags::EXCHANGE) {
        Ok(()) => fs::rename(building, &aside).context("move aside", building)?,
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            fs::rename(dir, &aside).context("move aside", dir)?;
            fs::rename(building, dir).context("move into place", building)?;
        }
        Err(error) => return Err(io::Error::from(error)).context("move aside", dir),
    }
    let parent = files::parent_of(dir);
    files::fsync_dir(parent).context("sync", parent)?;
    Ok(aside)
}

fn free_name(dir: &Path) -> Result<PathBuf, OpenError> {
    let names = (1..=MAX_SET_ASIDE).map(|n| beside(dir, &format!("damaged-{n}")));
    let free = names.into_iter().find(|path| !path.exists());
    free.ok_or_else(|| io::Error::other(format!("{MAX_SET_ASIDE} damaged folders lie there; remove some")))
        .context("move aside", dir)
}

/// The path next to `dir` with `suffix` after its name.
pub(crate) fn beside(dir: &Path, suffix: &str) -> PathBuf {
    let mut name = dir.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(suffix);
    dir.with_file_name(name)
}
