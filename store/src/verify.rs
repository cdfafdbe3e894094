//! Checks a whole log: every frame, body, index entry and head, in every segment.

use std::path::Path;

use serde::Serialize;

use crate::damage::Problem;
use crate::error::{IoContext as _, LogError, OpenError};
use crate::layout::{self, Layout, Promised};
use crate::lock::Lock;
use crate::options::Options;
use crate::reader::Reader;
use crate::segment::{self, Opened};
use crate::walk::Depth;

/// What a check of a log found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// How many records are sound.
    pub records: u64,
    /// How many segments the log has.
    pub segments: u64,
    /// What is wrong: the first problem of each segment. Empty for a sound log.
    pub problems: Vec<Problem>,
}

/// Checks the log in `dir`. One that a live process holds is read through that process. The files
/// of a damaged log stay as they are.
pub fn verify(dir: &Path) -> Result<Report, OpenError> {
    layout::expect_log(dir)?;
    match Lock::take(dir) {
        Ok(_lock) => verify_files(&layout::inspect(dir)?),
        Err(OpenError::Locked { .. }) => verify_through_holder(dir),
        Err(error) => Err(error),
    }
}

/// Checks a log whose lock the caller holds.
pub(crate) fn verify_files(layout: &Layout) -> Result<Report, OpenError> {
    let mut report =
        Report { records: 0, segments: layout.folders as u64, problems: layout.problems.clone() };
    for promised in layout.segments.iter().chain(&layout.beyond) {
        verify_segment(promised, &mut report)?;
    }
    Ok(report)
}

fn verify_segment(promised: &Promised, report: &mut Report) -> Result<(), OpenError> {
    let Promised { dir, head } = promised;
    let cache_bytes = Options::default().cache_bytes;
    match segment::open(dir, head, cache_bytes, Depth::Bodies).context("open", dir)? {
        Opened::Store(_segment, walked) => {
            report.records += walked.count;
            report.problems.extend(walked.problem);
        }
        Opened::Refused(problem) => report.problems.push(problem),
    }
    Ok(())
}

fn verify_through_holder(dir: &Path) -> Result<Report, OpenError> {
    let reader = Reader::open(dir)?;
    let folders = segment::list(dir).context("list", dir)?;
    let known = reader.damage().map(|damage| damage.problems.clone()).unwrap_or_default();
    let mut report = Report { records: 0, segments: folders.len() as u64, problems: known };
    for record in reader.all(1)? {
        match record {
            Ok(_) => report.records += 1,
            Err(LogError::Damaged(problem)) => report.problems.push(*problem),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(report)
}
