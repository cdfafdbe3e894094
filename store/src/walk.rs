//! One pass over a segment's records, which finds the first that is missing, changed or extra.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::damage::{Problem, ProblemKind};
use crate::frame::Frame;
use crate::head::Head;
use crate::record::{Hash, StreamInfo};
use crate::tree::{Census, Tree};
use crate::value::Value;

/// What a segment holds of one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Span {
    pub(crate) first_sequence: u64,
    pub(crate) last_sequence: u64,
    pub(crate) first_global: u64,
    pub(crate) last_global: u64,
    pub(crate) first_ms: u64,
    pub(crate) last_ms: u64,
}

/// The streams of a segment.
pub(crate) type Spans = BTreeMap<String, Span>;

/// Takes a record into the spans.
pub(crate) fn extend(spans: &mut Spans, stream: &str, sequence: u64, global: u64, time_ms: u64) {
    match spans.get_mut(stream) {
        Some(span) => {
            span.last_sequence = sequence;
            span.last_global = global;
            span.last_ms = time_ms;
        }
        None => {
            let span = Span {
                first_sequence: sequence,
                last_sequence: sequence,
                first_global: global,
                last_global: global,
                first_ms: time_ms,
                last_ms: time_ms,
            };
            let _ = spans.insert(stream.to_owned(), span);
        }
    }
}

/// Adds a later segment's span of a stream to what is known of that stream.
pub(crate) fn merge(info: &mut Option<StreamInfo>, stream: &str, span: &Span) {
    let records = span.last_sequence - span.first_sequence + 1;
    let info = info.get_or_insert_with(|| StreamInfo {
        stream: stream.to_owned(),
        records: 0,
        first_ms: span.first_ms,
        last_ms: span.last_ms,
        first_global: span.first_global,
        last_global: span.last_global,
    });
    info.records += records;
    info.last_ms = span.last_ms;
    info.last_global = span.last_global;
}

/// How deep a walk looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Frames, chain and index. A body that changed is found when it is read.
    Frames,
    /// Bodies as well.
    Bodies,
}

/// What a walk found: the sound records, and the first problem if there is one.
pub(crate) struct Walked {
    pub(crate) count: u64,
    pub(crate) last: Hash,
    pub(crate) stored_bytes: u64,
    pub(crate) spans: Spans,
    pub(crate) problem: Option<Problem>,
}

struct Walk<'a> {
    tree: &'a Tree,
    head: &'a Head,
    place: &'a str,
    depth: Depth,
    walked: Walked,
    /// The record before the next one, whose frame that one must confirm.
    held: Option<Held>,
}

/// A record that is sound in itself.
struct Held {
    frame: Frame,
    hash: Hash,
    value_bytes: u64,
}

/// Why a walk stopped: the problem, or what sled said.
enum Stop {
    Problem(Box<Problem>),
    Sled(String),
}

/// Walks over the whole segment. Records beyond the head's count that chain were flushed but not
/// acknowledged; they count as sound, unless the segment is closed.
pub(crate) fn walk(tree: &Tree, head: &Head, place: &str, depth: Depth) -> Walked {
    let walked =
        Walked { count: 0, last: Hash(head.before), stored_bytes: 0, spans: Spans::new(), problem: None };
    let mut walk = Walk { tree, head, place, depth, walked, held: None };
    let census = tree.census(|global, value| walk.record(global, value));
    walk.take_held();
    let problem = match census {
        Ok(Ok(census)) => walk.counts(&census),
        Ok(Err(Stop::Problem(problem))) => Some(*problem),
        Ok(Err(Stop::Sled(reason))) | Err(reason) => Some(walk.unreadable(reason)),
    };
    walk.walked.problem = problem;
    walk.walked
}

impl Walk<'_> {
    fn record(&mut self, global: u64, bytes: &[u8]) -> Result<(), Stop> {
        let expected = self.next_global();
        if global != expected {
            return Err(self.wrong_number(expected, global, bytes));
        }
        let value = Value::parse_whole(bytes).map_err(|found| self.changed(global, "a record", found))?;
        self.chain(global, &value)?;
        self.index(&value.frame)?;
        if self.depth == Depth::Bodies {
            let checked = value.body();
            let _ = checked.map_err(|found| {
                let stop =
                    self.problem(ProblemKind::Changed, Some(global), "the body that was appended", found);
                Stop::Problem(Box::new(stop.in_stream(&value.frame.stream)))
            })?;
        }
        self.take_held();
        let Value { frame, hash, .. } = value;
        self.held = Some(Held { frame, hash, value_bytes: bytes.len() as u64 });
        Ok(())
    }

    fn next_global(&self) -> u64 {
        self.head.first + self.walked.count + u64::from(self.held.is_some())
    }

    fn chain(&mut self, global: u64, value: &Value<'_>) -> Result<(), Stop> {
        let frame = &value.frame;
        if frame.global != global {
            return Err(self.changed(global, "its own number in the frame", frame.global.to_string()));
        }
        let (previous, last) = (Hash(frame.previous), self.last_hash());
        if previous != last {
            return Err(self.broken_chain(global, value.hash, previous, last)?);
        }
        let is_last_promised = global + 1 == self.head.next_global();
        if is_last_promised && value.hash.0 != self.head.last {
            let expected = format!("the frame {}", Hash(self.head.last));
            return Err(self.changed(global, &expected, format!("the frame {}", value.hash)));
        }
        match self.last_sequence(&frame.stream) {
            Some(last) if frame.sequence != last + 1 => {
                Err(self.changed(global, &format!("sequence {}", last + 1), frame.sequence.to_string()))
            }
            _ => Ok(()),
        }
    }

    fn last_hash(&self) -> Hash {
        self.held.as_ref().map_or(self.walked.last, |held| held.hash)
    }

    fn last_sequence(&self, stream: &str) -> Option<u64> {
        match &self.held {
            Some(held) if held.frame.stream == stream => Some(held.frame.sequence),
            _ => self.walked.spans.get(stream).map(|span| span.last_sequence),
        }
    }

    /// Two frames do not fit together. When the later one is confirmed by what follows it, the
    /// earlier one was changed; otherwise the later one.
    fn broken_chain(&mut self, global: u64, hash: Hash, previous: Hash, last: Hash) -> Result<Stop, Stop> {
        let confirmed = if global + 1 == self.head.next_global() {
            Some(Hash(self.head.last))
        } else {
            let next = self.tree.value(global + 1).map_err(Stop::Sled)?;
            next.and_then(|bytes| Value::parse(&bytes).ok().map(|next| Hash(next.frame.previous)))
        };
        if confirmed == Some(hash) {
            if let Some(held) = self.held.take() {
                let expected = format!("the frame {previous}");
                let problem =
                    self.problem(ProblemKind::Changed, Some(global - 1), expected, last.to_string());
                return Ok(Stop::Problem(Box::new(problem.in_stream(&held.frame.stream))));
            }
        }
        Ok(self.changed(
            global,
            &format!("a frame that follows {last}"),
            format!("one that follows {previous}"),
        ))
    }

    fn index(&self, frame: &Frame) -> Result<(), Stop> {
        let found = self.tree.global_of(&frame.stream, frame.sequence).map_err(Stop::Sled)?;
        if found == Some(frame.global) {
            return Ok(());
        }
        let found = found.map_or_else(|| "no entry".to_owned(), |global| format!("an entry for {global}"));
        let expected = format!("its entry in the index (sequence {})", frame.sequence);
        let problem = self.problem(ProblemKind::Missing, Some(frame.global), expected, found);
        Err(Stop::Problem(Box::new(problem.in_stream(&frame.stream))))
    }

    /// Counts the held record as sound.
    fn take_held(&mut self) {
        let Some(Held { frame, hash, value_bytes }) = self.held.take() else {
            return;
        };
        extend(&mut self.walked.spans, &frame.stream, frame.sequence, frame.global, frame.time_ms);
        self.walked.count += 1;
        self.walked.last = hash;
        self.walked.stored_bytes += value_bytes;
    }

    fn counts(&self, census: &Census) -> Option<Problem> {
        let count = self.walked.count;
        let promised = self.head.count;
        if count < promised {
            let expected = format!("{promised} records in the segment");
            let next = Some(self.head.first + count);
            return Some(self.problem(ProblemKind::Missing, next, expected, format!("{count}")));
        }
        if self.head.closed && count > promised {
            let extra = Some(self.head.first + promised);
            let expected = format!("{promised} records in a closed segment");
            return Some(self.problem(ProblemKind::Extra, extra, expected, format!("{count}")));
        }
        if census.stream_keys != count {
            let found = format!("{} index entries", census.stream_keys);
            return Some(self.problem(ProblemKind::Extra, None, format!("{count} index entries"), found));
        }
        let stray = census.stray_key.as_ref()?;
        Some(self.problem(ProblemKind::Extra, None, "only keys of the log", format!("the key {stray}")))
    }

    fn wrong_number(&self, expected: u64, found: u64, bytes: &[u8]) -> Stop {
        let promised_until = self.head.next_global();
        let is_extra = found < expected || found >= promised_until && expected >= promised_until;
        let problem = if is_extra {
            self.problem(ProblemKind::Extra, Some(found), "no such record", "one that does not chain")
        } else {
            let found = format!("record {found} next");
            self.problem(ProblemKind::Missing, Some(expected), format!("record {expected}"), found)
        };
        let named = match Value::parse(bytes) {
            Ok(value) if is_extra => problem.in_stream(&value.frame.stream),
            _ => problem,
        };
        Stop::Problem(Box::new(named))
    }

    /// A record that is not what it should be: changed, or extra when it was never promised.
    fn changed(&self, global: u64, expected: &str, found: String) -> Stop {
        let is_promised = global < self.head.next_global();
        let kind = if is_promised { ProblemKind::Changed } else { ProblemKind::Extra };
        Stop::Problem(Box::new(self.problem(kind, Some(global), expected, found)))
    }

    fn unreadable(&self, reason: String) -> Problem {
        let next = self.head.first + self.walked.count;
        self.problem(ProblemKind::File, Some(next), "a store that sled can read", reason)
    }

    fn problem(
        &self,
        kind: ProblemKind,
        global: Option<u64>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Problem {
        Problem::new(kind, self.place, global, expected, found)
    }
}
