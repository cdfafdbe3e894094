//! Replay: a recorded session is folded again, and every decision is made again and compared with the one
//! that was recorded, down to the bytes of each request and the digest of each line.

use std::collections::BTreeMap;

use crate::acp::lines::Line;
use crate::evidence::{self, Evidence, EvidenceError};
use crate::record::{Head, Record};
use crate::rope::Rope;
use crate::said::Said;
use crate::session::{Effect, Session};

/// What replay found for one turn.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnVerdict {
    /// The turn's id, or `before the first turn`.
    pub turn: String,
    /// Whether the log holds its end.
    pub ended: bool,
    /// Requests compared.
    pub rounds: u64,
    /// The first difference, if there is one.
    pub difference: Option<Difference>,
}

/// A place where the recorded past and the present code disagree.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// What differs, in words.
    pub what: String,
    /// The recorded side.
    pub recorded: Vec<u8>,
    /// The side that the fold makes now.
    pub rebuilt: Vec<u8>,
}

/// Folds a session's records and compares.
#[derive(Debug, Default)]
pub struct Replay {
    session: Option<Session>,
    turns: Vec<TurnVerdict>,
    spoken: Vec<Line>,
    recorded_lines: BTreeMap<String, Line>,
    /// The bytes of the last recorded request, once they differ from what the fold holds.
    astray: Option<Vec<u8>>,
}

impl Replay {
    /// A replay that knows the recorded lines by their links, so that it can show both sides.
    pub fn with_lines(recorded_lines: BTreeMap<String, Line>) -> Replay {
        Replay { recorded_lines, ..Replay::default() }
    }

    /// The verdicts so far, a turn each.
    pub fn turns(&self) -> &[TurnVerdict] {
        &self.turns
    }

    /// The session as folded so far.
    pub fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// Takes the next record in: compares it if it is a decision, then folds it.
    pub fn step(&mut self, record: &Record) {
        let Some(session) = self.session.as_ref() else {
            self.session = Session::open(record);
            if self.session.is_none() {
                self.note(difference("the first record", "session_opened", &describe(record)));
            }
            self.listen();
            return;
        };
        if let Head::TurnPrompted { turn, .. } = &record.head {
            self.turns.push(TurnVerdict { turn: turn.clone(), ended: false, rounds: 0, difference: None });
        }
        let expected = session.decide();
        match (expected, record.is_decision()) {
            (Some(expected), true) => self.compare(&expected, record),
            (None, true) => self.note(difference("a decision", &describe(record), "nothing to decide")),
            (Some(expected), false) if !record.is_recovery() => {
                self.note(difference("a decision", &describe(record), &describe(&expected)));
            }
            (_, false) => self.compare_interruption(record),
        }
        if let Some(session) = self.session.as_mut() {
            session.fold(record);
        }
        self.settle(record);
        self.listen();
    }

    fn settle(&mut self, record: &Record) {
        let ends = matches!(record.head, Head::TurnEnded { .. } | Head::TurnInterrupted { .. });
        if let (true, Some(turn)) = (ends, self.turns.last_mut()) {
            turn.ended = true;
        }
        if said(&record.head).is_some() {
            self.spoken.clear();
        }
    }

    /// Collects the lines that the fold says.
    fn listen(&mut self) {
        let Some(session) = self.session.as_mut() else { return };
        for effect in session.take_outbox() {
            if let Effect::Say(line) = effect {
                self.spoken.push(line);
            }
        }
    }

    fn compare(&mut self, expected: &Record, recorded: &Record) {
        if let (Some(ours), Some(theirs)) = (request_of(expected), request_of(recorded)) {
            self.compare_requests(ours, theirs, recorded);
            if let Some(turn) = self.turns.last_mut() {
                turn.rounds += 1;
            }
        }
        self.compare_lines(expected, recorded);
        let (ours, theirs) = (comparable(expected), comparable(recorded));
        if ours != theirs {
            self.note(Difference { what: "a decision".into(), recorded: theirs, rebuilt: ours });
        }
    }

    /// Equal evidence over an equal past means equal bytes; anything else is put together and compared.
    fn compare_requests(&mut self, ours: Request<'_>, theirs: Request<'_>, record: &Record) {
        if self.astray.is_none() && ours == theirs {
            return;
        }
        let Some(session) = &self.session else { return };
        let rebuilt_past = ours.past(session.previous_request());
        let recorded_past = match (theirs.alone, self.astray.clone()) {
            (false, Some(astray)) => astray,
            _ => rebuilt_past.clone(),
        };
        let what = format!("the {}", describe(record));
        let rebuilt = evidence::rebuild(&rebuilt_past, ours.evidence, ours.raw);
        let recorded = evidence::rebuild(&recorded_past, theirs.evidence, theirs.raw);
        if let (false, Ok(bytes)) = (theirs.alone, recorded.as_ref().or(rebuilt.as_ref())) {
            self.astray = Some(bytes.clone());
        }
        if recorded != rebuilt {
            let bytes =
                |side: Result<Vec<u8>, EvidenceError>| side.unwrap_or_else(|e| e.to_string().into_bytes());
            self.note(Difference { what, recorded: bytes(recorded), rebuilt: bytes(rebuilt) });
        }
    }

    fn compare_lines(&mut self, expected: &Record, recorded: &Record) {
        let (Some(ours), Some(theirs)) = (said(&expected.head), said(&recorded.head)) else { return };
        let Some(at) = (0..ours.len().max(theirs.len())).find(|&i| ours.get(i) != theirs.get(i)) else {
            return;
        };
        let rebuilt = match ours.get(at) {
            None => b"no line".to_vec(),
            Some(_) => self.spoken_line(at, expected),
        };
        let recorded = match theirs.get(at) {
            None => b"no line".to_vec(),
            Some(link) => self
                .recorded_lines
                .get(link)
                .cloned()
                .unwrap_or_else(|| format!("a line with digest {link}").into_bytes()),
        };
        self.note(Difference { what: "a line to the client".into(), recorded, rebuilt });
    }

    /// The line number `at` since the last decision; those of `decision` itself are made on a copy.
    fn spoken_line(&self, at: usize, decision: &Record) -> Line {
        if let Some(line) = self.spoken.get(at) {
            return line.clone();
        }
        let Some(mut copy) = self.session.clone() else { return Line::new() };
        copy.fold(decision);
        let own = copy.take_outbox().into_iter().filter_map(|effect| match effect {
            Effect::Say(line) => Some(line),
            _ => None,
        });
        self.spoken.iter().cloned().chain(own).nth(at).unwrap_or_default()
    }

    fn compare_interruption(&mut self, record: &Record) {
        let Head::TurnInterrupted { .. } = &record.head else { return };
        let mut recovery = self.session.iter().flat_map(Session::recovery);
        let expected = recovery.find(|r| matches!(r.head, Head::TurnInterrupted { .. }));
        if let Some(expected) = expected {
            self.compare_lines(&expected, record);
        }
    }

    /// Keeps the first difference of a turn.
    fn note(&mut self, difference: Difference) {
        if self.turns.is_empty() {
            let turn = "before the first turn".to_owned();
            self.turns.push(TurnVerdict { turn, ended: false, rounds: 0, difference: None });
        }
        if let Some(turn) = self.turns.last_mut() {
            turn.difference.get_or_insert(difference);
        }
    }
}

fn difference(what: &str, recorded: &str, rebuilt: &str) -> Difference {
    Difference { what: what.to_owned(), recorded: recorded.into(), rebuilt: rebuilt.into() }
}

fn describe(record: &Record) -> String {
    match &record.head {
        Head::RoundAsked { asked, round, .. } => format!("request {asked} (round {round} of its turn)"),
        Head::SummaryAsked { asked, .. } => format!("request {asked} (a handoff summary)"),
        _ => format!("record {}", record.encode_head().0),
    }
}

/// A request as a record holds it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Request<'a> {
    evidence: &'a Evidence,
    raw: &'a [u8],
    /// Whether it stands alone: it shares nothing with the session's previous request.
    alone: bool,
}

impl Request<'_> {
    fn past(&self, previous: &Rope) -> Vec<u8> {
        if self.alone {
            Vec::new()
        } else {
            previous.to_vec()
        }
    }
}

fn request_of(record: &Record) -> Option<Request<'_>> {
    let (evidence, alone) = match &record.head {
        Head::RoundAsked { evidence, .. } => (evidence, false),
        Head::SummaryAsked { evidence, .. } => (evidence, true),
        _ => return None,
    };
    Some(Request { evidence, raw: &record.raw, alone })
}

fn said(head: &Head) -> Option<&Vec<String>> {
    match head {
        Head::RoundAsked { said, .. }
        | Head::SummaryAsked { said, .. }
        | Head::PermissionAsked { said, .. }
        | Head::CallsStarted { said, .. }
        | Head::TurnEnded { said, .. }
        | Head::TurnInterrupted { said } => Some(said),
        _ => None,
    }
}

/// A decision without what is compared on its own.
fn comparable(record: &Record) -> Vec<u8> {
    let mut head = record.head.clone();
    match &mut head {
        Head::RoundAsked { said, evidence, .. } | Head::SummaryAsked { said, evidence, .. } => {
            said.clear();
            *evidence = Evidence { len: 0, sha256: String::new(), pieces: Vec::new() };
        }
        Head::PermissionAsked { said, .. }
        | Head::CallsStarted { said, .. }
        | Head::TurnEnded { said, .. } => said.clear(),
        _ => {}
    }
    let (kind, head) = Record::bare(head).encode_head();
    let raw = if request_of(record).is_some() { &[] } else { record.raw.as_slice() };
    [kind.as_bytes(), b" ", &head, b" ", raw].concat()
}

/// The lines that a session's records say, each with its link in the digest chain.
pub fn lines_of<'a>(records: impl Iterator<Item = &'a Record>) -> Vec<(String, Line)> {
    let mut session: Option<Session> = None;
    let mut chain = Said::default();
    let mut lines = Vec::new();
    for record in records {
        match session.as_mut() {
            None => session = Session::open(record),
            Some(session) => session.fold(record),
        }
        for effect in session.iter_mut().flat_map(Session::take_outbox) {
            if let Effect::Say(line) = effect {
                lines.push((chain.add(&line), line));
            }
        }
        chain.settle();
    }
    lines
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
