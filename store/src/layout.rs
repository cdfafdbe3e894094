//! What a log's folder promises, read from the small files alone, before sled opens anything.
//!
//! A log is made in this order: the first segment's store, its head, then the format file. A next
//! segment: its store, its head, then the flag that closes the one before. So a kill in between
//! leaves something unfinished that holds no records, and everything else that is missing is
//! damage.

use std::path::{Path, PathBuf};

use crate::damage::{Damage, Problem, ProblemKind};
use crate::error::{IoContext as _, OpenError};
use crate::head::{self, Found, Head};
use crate::lock::{self, Format};
use crate::record::Hash;
use crate::salvage;
use crate::segment;

/// A segment whose head was read.
#[derive(Debug, Clone)]
pub(crate) struct Promised {
    pub(crate) dir: PathBuf,
    pub(crate) head: Head,
}

/// What the folder of a log promises.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) dir: PathBuf,
    /// The segments before the first problem.
    pub(crate) segments: Vec<Promised>,
    /// Segments after it, as far as their heads can be read.
    pub(crate) beyond: Vec<Promised>,
    pub(crate) problems: Vec<Problem>,
    /// Nothing was ever appended: there is no log yet, or its making was cut short.
    pub(crate) is_new: bool,
    /// A next segment whose making was cut short.
    pub(crate) unfinished: Option<PathBuf>,
    /// How many segment folders there are.
    pub(crate) folders: usize,
}

/// Reads the format, the segments' names and their heads.
pub(crate) fn inspect(dir: &Path) -> Result<Layout, OpenError> {
    let mut layout = Layout {
        dir: dir.to_path_buf(),
        segments: Vec::new(),
        beyond: Vec::new(),
        problems: Vec::new(),
        is_new: false,
        unfinished: None,
        folders: 0,
    };
    if !dir.exists() {
        layout.is_new = true;
        return Ok(layout);
    }
    let format = lock::read_format(dir)?;
    let folders = segment::list(dir).context("list", dir)?;
    layout.folders = folders.len();
    for (first, path) in folders {
        let found = head::read(&path).context("read the head of", &path)?;
        layout.segment(first, path, found, &format)?;
    }
    layout.conclude(&format);
    Ok(layout)
}

/// Refuses a folder that nobody has made a log in, before anything is written there.
pub(crate) fn expect_log(dir: &Path) -> Result<(), OpenError> {
    let is_log = dir.is_dir()
        && (lock::read_format(dir)? != Format::Missing
            || !segment::list(dir).context("list", dir)?.is_empty());
    if is_log {
        Ok(())
    } else {
        Err(OpenError::NotALog { path: dir.to_path_buf() })
    }
}

/// Whether no record is in the files of a segment, so that removing it loses nothing.
fn holds_nothing(segment: &Path) -> Result<bool, OpenError> {
    Ok(salvage::scan(segment).context("read", segment)?.is_empty())
}

impl Layout {
    fn segment(&mut self, first: u64, dir: PathBuf, found: Found, format: &Format) -> Result<(), OpenError> {
        let place = segment::place_of(&dir);
        let head = match found {
            Found::Sound(head) => head,
            Found::Missing if self.may_be_unfinished(format) && holds_nothing(&dir)? => {
                self.unfinished = Some(dir);
                return Ok(());
            }
            Found::Missing => {
                self.file_problem(&place, first, "a head file", "none");
                return Ok(());
            }
            Found::Damaged { path, bytes } => {
                let place = format!("{place}/{}", segment::place_of(&path));
                self.file_problem(
                    &place,
                    first,
                    "a sound head",
                    format!("{bytes} bytes, neither slot sound"),
                );
                return Ok(());
            }
        };
        if head.format > crate::FORMAT_VERSION {
            return Err(OpenError::NewerFormat {
                path: self.dir.clone(),
                found: u32::from(head.format),
                known: u32::from(crate::FORMAT_VERSION),
            });
        }
        if self.problems.is_empty() {
            self.problems.extend(self.discontinuity(&place, first, &head));
        }
        let promised = Promised { dir, head };
        let list = if self.problems.is_empty() { &mut self.segments } else { &mut self.beyond };
        list.push(promised);
        Ok(())
    }

    /// Without a head a segment may be one whose making was cut short, unless something that is
    /// written later is there already.
    fn may_be_unfinished(&self, format: &Format) -> bool {
        match self.segments.last() {
            Some(previous) => !previous.head.closed,
            None => *format == Format::Missing && self.problems.is_empty(),
        }
    }

    fn discontinuity(&self, place: &str, first: u64, head: &Head) -> Option<Problem> {
        let (next, before) = match self.segments.last() {
            Some(previous) => (previous.head.next_global(), Hash(previous.head.last)),
            None => (1, Hash::ZERO),
        };
        if head.first != first {
            let expected = format!("a head that starts at record {first}");
            let found = format!("one that starts at {}", head.first);
            return Some(Problem::new(ProblemKind::Changed, place, Some(first), expected, found));
        }
        if first > next {
            let expected = format!("a segment that starts with record {next}");
            let found = format!("{place} as the next one");
            return Some(Problem::new(ProblemKind::Missing, place, Some(next), expected, found));
        }
        if first < next || head.before != before.0 {
            let expected = format!("a segment after record {} with the hash {before}", next - 1);
            let found = format!("one after the hash {}", Hash(head.before));
            return Some(Problem::new(ProblemKind::Changed, place, Some(first), expected, found));
        }
        let previous_open = self.segments.last().is_some_and(|previous| !previous.head.closed);
        if previous_open && head.count > 0 {
            let expected = "the segment before it closed";
            return Some(Problem::new(ProblemKind::Changed, place, Some(first), expected, "it open"));
        }
        None
    }

    fn conclude(&mut self, format: &Format) {
        let is_empty = self.segments.iter().all(|segment| segment.head.count == 0);
        if *format == Format::Missing && is_empty && self.folders <= 1 && self.problems.is_empty() {
            self.is_new = true;
            return;
        }
        if !self.problems.is_empty() {
            return;
        }
        if *format != Format::Known {
            let found = if *format == Format::Missing { "no such file" } else { "a damaged one" };
            self.problems.push(Problem::new(ProblemKind::File, "format", None, "a format file", found));
        }
        let next = self.segments.last().map_or(1, |last| last.head.next_global());
        if self.segments.last().is_none_or(|last| last.head.closed) {
            let expected = format!("a segment that starts with record {next}");
            let place = segment::place_of(&segment::dir_of(&self.dir, next));
            self.problems.push(Problem::new(ProblemKind::Missing, &place, Some(next), expected, "none"));
        }
    }

    fn file_problem(&mut self, place: &str, first: u64, expected: &str, found: impl Into<String>) {
        self.problems.push(Problem::new(ProblemKind::File, place, Some(first), expected, found));
    }

    /// How many records the heads that can be read promise.
    pub(crate) fn promised_records(&self) -> Option<u64> {
        let last = self.segments.iter().chain(&self.beyond).next_back()?;
        let end_is_known = !self.problems.iter().any(|problem| problem.kind == ProblemKind::File);
        (end_is_known || !self.beyond.is_empty()).then(|| last.head.next_global() - 1)
    }

    /// The damage with `sound_records` before it.
    pub(crate) fn damage(&self, sound_records: u64, problems: Vec<Problem>) -> Damage {
        Damage { path: self.dir.clone(), sound_records, promised_records: self.promised_records(), problems }
    }
}
