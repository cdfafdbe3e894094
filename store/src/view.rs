//! What can be read of a log at this moment: its segments, and which of their records are flushed.
//!
//! The writer, the readers in its process and the socket share one view. Closed segments are
//! opened when a page of them is asked for, and few are kept open.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use serde::{Deserialize, Serialize};

use crate::damage::{Damage, Problem, ProblemKind};
use crate::error::{IoContext as _, LogError, OpenError};
use crate::head::Head;
use crate::layout::{Layout, Promised};
use crate::record::{Hash, StreamInfo};
use crate::segment::{self, Opened, Segment};
use crate::tree::Budget;
use crate::walk::{self, Depth, Spans};

/// How many closed segments stay open for reading.
const MAX_OPEN_CLOSED_SEGMENTS: usize = 2;
/// What one page of an iteration holds at most; a single larger record is a page of its own.
pub(crate) const PAGE: Budget = Budget { records: 1024, bytes: 1 << 20 };

/// Where a page starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Query {
    All { from_global: u64 },
    Stream { stream: String, from_sequence: u64 },
}

/// A segment as far as it can be read.
pub(crate) struct Part {
    pub(crate) dir: PathBuf,
    pub(crate) head: Head,
    /// How many of its records may be read.
    pub(crate) count: u64,
    pub(crate) spans: Spans,
    /// Open for as long as the view is; None for a closed one.
    pub(crate) segment: Option<Arc<Segment>>,
}

impl Part {
    fn last_global(&self) -> u64 {
        (self.head.first + self.count).saturating_sub(1)
    }
}

/// The readable part of an open log.
pub(crate) struct View {
    dir: PathBuf,
    cache_bytes: u64,
    parts: RwLock<Option<Vec<Part>>>,
    opened: Mutex<Vec<(u64, Arc<Segment>)>>,
}

/// The last segment as opening found it.
pub(crate) struct Tail {
    pub(crate) head: Head,
    pub(crate) last: Hash,
    pub(crate) count: u64,
    pub(crate) stored_bytes: u64,
}

/// A view with what opening it found out.
pub(crate) struct Outlook {
    pub(crate) view: View,
    pub(crate) damage: Option<Damage>,
    pub(crate) tail: Option<Tail>,
}

/// Opens the last segment and learns the streams of the others. Damage ends the view where the
/// sound records end.
pub(crate) fn open(layout: &Layout, cache_bytes: u64) -> Result<Outlook, OpenError> {
    let mut parts: Vec<Part> = Vec::new();
    let mut problems = Vec::new();
    let mut tail = None;
    for (n, promised) in layout.segments.iter().enumerate() {
        let is_last = n + 1 == layout.segments.len();
        let (part, found, problem) = open_part(promised, is_last, cache_bytes)?;
        problems.extend(problem.or_else(|| sequence_gap(&parts, &part)));
        tail = found;
        parts.push(part);
        if !problems.is_empty() {
            break;
        }
    }
    let sound_records = parts.last().map_or(0, Part::last_global);
    problems.extend(layout.problems.iter().cloned());
    let damage = (!problems.is_empty()).then(|| layout.damage(sound_records, problems));
    let view = View {
        dir: layout.dir.clone(),
        cache_bytes,
        parts: RwLock::new(Some(parts)),
        opened: Mutex::new(Vec::new()),
    };
    Ok(Outlook { view, damage, tail })
}

type OpenedPart = (Part, Option<Tail>, Option<Problem>);

fn open_part(promised: &Promised, is_last: bool, cache_bytes: u64) -> Result<OpenedPart, OpenError> {
    let Promised { dir, head } = promised;
    let part = |count, spans, segment| Part { dir: dir.clone(), head: head.clone(), count, spans, segment };
    if !is_last {
        if let Some(spans) = segment::read_streams(dir) {
            return Ok((part(head.count, spans, None), None, None));
        }
    }
    let opened = segment::open(dir, head, cache_bytes, Depth::Bodies).context("open", dir)?;
    let (segment, walked) = match opened {
        Opened::Store(segment, walked) => (segment, walked),
        Opened::Refused(problem) => return Ok((part(0, Spans::new(), None), None, Some(problem))),
    };
    let tail = Tail {
        head: head.clone(),
        last: walked.last,
        count: walked.count,
        stored_bytes: walked.stored_bytes,
    };
    // A damaged store stays open: it is put back as it was when it is closed.
    let kept = (is_last || segment.is_damaged()).then(|| Arc::new(segment));
    Ok((part(walked.count, walked.spans, kept), Some(tail), walked.problem))
}

/// A stream that does not go on in `part` where the parts before it left it.
fn sequence_gap(parts: &[Part], part: &Part) -> Option<Problem> {
    part.spans.iter().find_map(|(stream, span)| {
        let before = parts.iter().rev().find_map(|earlier| earlier.spans.get(stream));
        let next = before.map_or(1, |span| span.last_sequence + 1);
        (span.first_sequence != next).then(|| {
            let place = segment::place_of(&part.dir);
            let expected = format!("sequence {next}");
            let found = span.first_sequence.to_string();
            Problem::new(ProblemKind::Changed, &place, Some(span.first_global), expected, found)
                .in_stream(stream)
        })
    })
}

impl View {
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// All streams, in the order of their names.
    pub(crate) fn streams(&self) -> Result<Vec<StreamInfo>, LogError> {
        self.with_parts(|parts| {
            let mut streams: BTreeMap<&str, Option<StreamInfo>> = BTreeMap::new();
            for part in parts {
                for (stream, span) in &part.spans {
                    walk::merge(streams.entry(stream).or_default(), stream, span);
                }
            }
            streams.into_values().flatten().collect()
        })
    }

    /// The last sequence of each stream.
    pub(crate) fn last_sequences(&self) -> Result<BTreeMap<String, u64>, LogError> {
        self.with_parts(|parts| {
            let spans = parts.iter().flat_map(|part| &part.spans);
            spans.map(|(stream, span)| (stream.clone(), span.last_sequence)).collect()
        })
    }

    /// The next stored values of a query; none at its end.
    pub(crate) fn page(&self, query: &Query) -> Result<Vec<Vec<u8>>, LogError> {
        let Some((segment, last_global)) = self.segment_for(query)? else {
            return Ok(Vec::new());
        };
        let page = match query {
            Query::All { from_global } => segment.tree.page((*from_global).max(1), last_global, PAGE),
            Query::Stream { stream, from_sequence } => {
                segment.tree.stream_page(stream, *from_sequence, last_global, PAGE)
            }
        };
        page.map_err(|reason| self.unreadable(reason))
    }

    /// The segment in which a query goes on, and the last record there that may be read.
    fn segment_for(&self, query: &Query) -> Result<Option<(Arc<Segment>, u64)>, LogError> {
        let found = self.with_parts(|parts| {
            let part = parts.iter().find(|part| match query {
                Query::All { from_global } => part.count > 0 && part.last_global() >= *from_global,
                Query::Stream { stream, from_sequence } => {
                    part.spans.get(stream).is_some_and(|span| span.last_sequence >= *from_sequence)
                }
            })?;
            Some((part.segment.clone(), part.dir.clone(), part.head.clone(), part.last_global()))
        })?;
        let Some((segment, dir, head, last_global)) = found else {
            return Ok(None);
        };
        let segment = match segment {
            Some(segment) => segment,
            None => self.closed_segment(&dir, &head)?,
        };
        Ok(Some((segment, last_global)))
    }

    /// A closed segment, opened unless it is one of those last used.
    fn closed_segment(&self, dir: &Path, head: &Head) -> Result<Arc<Segment>, LogError> {
        let mut opened = lock(&self.opened);
        if let Some(at) = opened.iter().position(|(first, _)| *first == head.first) {
            let entry = opened.remove(at);
            opened.push(entry);
        } else {
            let segment = self.open_closed(dir, head)?;
            if opened.len() == MAX_OPEN_CLOSED_SEGMENTS {
                let _ = opened.remove(0);
            }
            opened.push((head.first, Arc::new(segment)));
        }
        let last = opened.last().map(|(_, segment)| Arc::clone(segment));
        last.ok_or_else(|| self.unreadable("no segment is open".to_owned()))
    }

    fn open_closed(&self, dir: &Path, head: &Head) -> Result<Segment, LogError> {
        match segment::open(dir, head, self.cache_bytes, Depth::Frames) {
            Ok(Opened::Store(segment, walked)) => match walked.problem {
                None => Ok(segment),
                Some(problem) => Err(LogError::Damaged(Box::new(problem))),
            },
            Ok(Opened::Refused(problem)) => Err(LogError::Damaged(Box::new(problem))),
            Err(error) => Err(self.unreadable(format!("cannot open {}: {error}", dir.display()))),
        }
    }

    /// Makes records that were flushed to the last segment readable.
    pub(crate) fn publish(&self, head: &Head, extend: impl FnOnce(&mut Spans)) {
        let mut parts = self.parts.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(part) = parts.as_mut().and_then(|parts| parts.last_mut()) {
            part.head = head.clone();
            part.count = head.count;
            extend(&mut part.spans);
        }
    }

    /// Adds the segment that takes the place of the last one, which is closed now.
    pub(crate) fn roll(&self, closed: &Head, next: Part) {
        let mut parts = self.parts.write().unwrap_or_else(PoisonError::into_inner);
        let Some(parts) = parts.as_mut() else { return };
        if let Some(last) = parts.last_mut() {
            last.head = closed.clone();
            last.segment = None;
        }
        parts.push(next);
    }

    /// The store of the last segment.
    pub(crate) fn last_segment(&self) -> Option<Arc<Segment>> {
        self.with_parts(|parts| parts.last().and_then(|part| part.segment.clone())).ok().flatten()
    }

    /// The streams of the last segment.
    pub(crate) fn last_spans(&self) -> Result<Spans, LogError> {
        self.with_parts(|parts| parts.last().map(|part| part.spans.clone()).unwrap_or_default())
    }

    /// Closes all stores. What is read afterwards gets [`LogError::Closed`].
    pub(crate) fn close(&self) {
        *self.parts.write().unwrap_or_else(PoisonError::into_inner) = None;
        lock(&self.opened).clear();
    }

    fn with_parts<T>(&self, look: impl FnOnce(&[Part]) -> T) -> Result<T, LogError> {
        let parts = self.parts.read().unwrap_or_else(PoisonError::into_inner);
        parts.as_deref().map(look).ok_or_else(|| LogError::Closed { path: self.dir.clone() })
    }

    fn unreadable(&self, reason: String) -> LogError {
        LogError::Unreadable { path: self.dir.clone(), reason }
    }
}

/// The lock, also after a panic of another holder: what these guard is never left half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
