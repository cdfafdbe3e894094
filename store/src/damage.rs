//! How lost and changed records are named.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What is wrong at one place of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ProblemKind {
    /// Acknowledged records are not there.
    Missing,
    /// A record is there, but is not what was acknowledged.
    Changed,
    /// Something is there that was never appended.
    Extra,
    /// A file that the log needs is missing or cannot be read.
    File,
}

impl fmt::Display for ProblemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProblemKind::Missing => "missing",
            ProblemKind::Changed => "changed",
            ProblemKind::Extra => "extra",
            ProblemKind::File => "file damaged",
        })
    }
}

/// The first thing that is wrong in one segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// What kind of problem it is.
    pub kind: ProblemKind,
    /// The segment's folder, or the file beside the segments.
    pub place: String,
    /// The global number of the first record concerned.
    pub global: Option<u64>,
    /// The stream of that record, when it is known.
    pub stream: Option<String>,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

impl Problem {
    /// What to do about it.
    pub fn advice(&self) -> &'static str {
        "keep a copy of the folder, then run `waxlog log repair`"
    }

    pub(crate) fn new(
        kind: ProblemKind,
        place: &str,
        global: Option<u64>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Problem {
        Problem {
            kind,
            place: place.to_owned(),
            global,
            stream: None,
            expected: expected.into(),
            found: found.into(),
        }
    }

    pub(crate) fn in_stream(mut self, stream: &str) -> Problem {
        self.stream = Some(stream.to_owned());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(global) = self.global {
            write!(f, ": record {global}")?;
        }
        if let Some(stream) = &self.stream {
            write!(f, " (stream {stream:?})")?;
        }
        write!(f, " in {}: expected {}, found {}; {}", self.place, self.expected, self.found, self.advice())
    }
}

/// What a damaged log still has and what it lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// The log's folder.
    pub path: PathBuf,
    /// The records from the first one on that are there and chain.
    pub sound_records: u64,
    /// How many records were acknowledged, as far as that can still be told.
    pub promised_records: Option<u64>,
    /// What is wrong, in the order of the log.
    pub problems: Vec<Problem>,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the log {} is damaged: its first {} records are sound",
            self.path.display(),
            self.sound_records
        )?;
        match self.promised_records {
            Some(promised) => {
                let lost = promised.saturating_sub(self.sound_records);
                write!(f, ", {lost} of {promised} are lost or out of reach")?;
            }
            None => write!(f, ", how many are lost is unknown")?,
        }
        for problem in &self.problems {
            write!(f, "; {problem}")?;
        }
        Ok(())
    }
}
