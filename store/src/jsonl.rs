//! Logs as text: one JSON object a line, from which every byte comes back.

use std::fs;
use std::io::{self, BufRead, Read as _, Write};
use std::path::Path;

use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::{LogError, OpenError};
use crate::files;
use crate::frame::{frame_hash, Frame};
use crate::reader::Reader;
use crate::record::{Hash, NewRecord, Position, Record};
use crate::refill::Refill;
use crate::repair::beside;

/// The longest line. A record at its size limit fits.
pub const MAX_LINE_BYTES: u64 = 512 << 20;
/// Larger bodies go out as base64 although they are text: escaped, text can grow sixfold.
const MAX_TEXT_BYTES: usize = 64 << 20;

/// One record as one line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The record's number in the log it came from.
    pub global: u64,
    /// Its stream.
    pub stream: String,
    /// Its number in the stream.
    pub sequence: u64,
    /// When it happened, in milliseconds since 1970.
    pub time_ms: u64,
    /// Its kind.
    pub kind: String,
    /// The version of the kind.
    pub version: u16,
    /// The head itself, when it is JSON on one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Box<RawValue>>,
    /// The head in base64, otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_base64: Option<String>,
    /// The raw bytes, when they are UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// The raw bytes in base64, otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_base64: Option<String>,
    /// The hash of the record before it in the log it came from.
    pub previous: Hash,
    /// Its hash.
    pub hash: Hash,
}

/// Why rows could not be written, read or imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JsonlError {
    /// The input or output failed.
    #[error("line {line}: {source}")]
    Io {
        /// The line, counted from 1.
        line: u64,
        /// Why it failed.
        source: io::Error,
    },
    /// The last line ends in the middle: the file was cut off.
    #[error(
        "line {line} is the last and is torn: {reason}; export again, or remove that line to import the rest"
    )]
    Torn {
        /// The line, counted from 1.
        line: u64,
        /// Where it stops making sense.
        reason: String,
    },
    /// A line is longer than any record.
    #[error("line {line} is longer than {MAX_LINE_BYTES} bytes; it is no row of an export")]
    TooLong {
        /// The line, counted from 1.
        line: u64,
    },
    /// A line is not a row, or its content has not the hash it carries.
    #[error("line {line}: {reason}; export again from the original log")]
    Invalid {
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A row is not the one that follows.
    #[error("line {line}: expected {expected}, found {found}; import a whole log or one whole stream")]
    Order {
        /// The line, counted from 1.
        line: u64,
        /// What should follow.
        expected: String,
        /// What does.
        found: String,
    },
    /// The log could not be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The new log could not be made.
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl From<&Record> for Row {
    fn from(record: &Record) -> Row {
        let head = embeddable(&record.head);
        let raw = std::str::from_utf8(&record.raw).ok().filter(|text| text.len() <= MAX_TEXT_BYTES);
        Row {
            global: record.position.global,
            stream: record.stream.clone(),
            sequence: record.position.sequence,
            time_ms: record.time_ms,
            kind: record.kind.clone(),
            version: record.version,
            head_base64: head.is_none().then(|| STANDARD.encode(&record.head)),
            head,
            raw: raw.map(str::to_owned),
            raw_base64: raw.is_none().then(|| STANDARD.encode(&record.raw)),
            previous: record.previous,
            hash: record.hash,
        }
    }
}

/// The head as JSON inside the row, if it comes back from there byte for byte.
fn embeddable(head: &[u8]) -> Option<Box<RawValue>> {
    let text = std::str::from_utf8(head).ok()?;
    // A bare null would be read as "no head" and a line break would end the row.
    if text == "null" || text.contains(['\n', '\r']) || text.len() > MAX_TEXT_BYTES {
        return None;
    }
    let value: Box<RawValue> = serde_json::from_str(text).ok()?;
    (value.get() == text).then_some(value)
}

impl Row {
    /// The record of this row, if its content has the hash that the row carries.
    pub fn into_record(self) -> Result<Record, String> {
        let head = match (self.head, self.head_base64) {
            (Some(json), None) => Box::<str>::from(json).into_string().into_bytes(),
            (None, Some(text)) => decode("head_base64", &text)?,
            _ => return Err("a row has either head or head_base64".to_owned()),
        };
        let raw = match (self.raw, self.raw_base64) {
            (Some(text), None) => text.into_bytes(),
            (None, Some(text)) => decode("raw_base64", &text)?,
            _ => return Err("a row has either raw or raw_base64".to_owned()),
        };
        let position = Position { global: self.global, sequence: self.sequence };
        let new = NewRecord {
            stream: self.stream,
            kind: self.kind,
            version: self.version,
            time_ms: self.time_ms,
            head,
            raw,
        };
        new.check().map_err(|error| error.to_string())?;
        let found = frame_hash(&Frame::of(&new, position, self.previous).encode()?);
        if found != self.hash {
            return Err(format!("the row's content has the hash {found}, the row says {}", self.hash));
        }
        let NewRecord { stream, kind, version, time_ms, head, raw } = new;
        let (previous, hash) = (self.previous, self.hash);
        Ok(Record { position, stream, kind, version, time_ms, head, raw, previous, hash })
    }
}

fn decode(field: &str, text: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(text).map_err(|error| format!("{field} is not base64: {error}"))
}

/// Writes the whole log or one stream, a row a line. Returns the number of rows.
pub fn export(reader: &Reader, stream: Option<&str>, out: &mut dyn Write) -> Result<u64, JsonlError> {
    let records = match stream {
        Some(stream) => reader.stream(stream)?,
        None => reader.all(1)?,
    };
    let mut line = 0;
    for record in records {
        line += 1;
        let row = serde_json::to_vec(&Row::from(&record?)).map_err(io::Error::from);
        row.and_then(|row| out.write_all(&row))
            .and_then(|()| out.write_all(b"\n"))
            .map_err(|source| JsonlError::Io { line, source })?;
    }
    out.flush().map_err(|source| JsonlError::Io { line, source })?;
    Ok(line)
}

/// Reads rows line by line. After an error there are no more.
pub fn read_rows<R: BufRead>(input: R) -> Rows<R> {
    Rows { input, line: 0, is_done: false }
}

/// The rows of an input: see [`read_rows`].
pub struct Rows<R> {
    input: R,
    line: u64,
    is_done: bool,
}

impl<R: BufRead> Iterator for Rows<R> {
    type Item = Result<Row, JsonlError>;

    fn next(&mut self) -> Option<Result<Row, JsonlError>> {
        if self.is_done {
            return None;
        }
        let row = self.read().transpose();
        self.is_done = !matches!(row, Some(Ok(_)));
        row
    }
}

impl<R: BufRead> Rows<R> {
    fn read(&mut self) -> Result<Option<Row>, JsonlError> {
        self.line += 1;
        let line = self.line;
        let mut bytes = Vec::new();
        let _ = (&mut self.input)
            .take(MAX_LINE_BYTES + 1)
            .read_until(b'\n', &mut bytes)
            .map_err(|source| JsonlError::Io { line, source })?;
        if bytes.is_empty() {
            return Ok(None);
        }
        if bytes.len() as u64 > MAX_LINE_BYTES {
            return Err(JsonlError::TooLong { line });
        }
        serde_json::from_slice(&bytes).map(Some).map_err(|error| {
            let reason = error.to_string();
            if bytes.ends_with(b"\n") {
                JsonlError::Invalid { line, reason }
            } else {
                JsonlError::Torn { line, reason }
            }
        })
    }
}

/// What an import made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Imported {
    /// How many records the new log has.
    pub records: u64,
    /// Whether they have the hashes of the log they came from: so for a whole log. The records of
    /// a single stream are chained anew, since those between them are not there.
    pub is_same_chain: bool,
}

/// Makes a new log in `dir` from the rows of a whole log or of one stream. It appears complete or
/// not at all.
pub fn import(
    dir: &Path,
    rows: impl IntoIterator<Item = Result<Row, JsonlError>>,
) -> Result<Imported, JsonlError> {
    if dir.exists() {
        return Err(OpenError::Exists { path: dir.to_path_buf() }.into());
    }
    let building = beside(dir, "importing");
    let at = |action: &'static str| {
        let path = building.clone();
        move |source| OpenError::Io { action, path, source }
    };
    files::remove(&building).map_err(at("remove"))?;
    let imported = fill(&building, rows);
    match imported {
        Ok(_) => fs::rename(&building, dir).map_err(at("move into place"))?,
        Err(_) => files::remove(&building).map_err(at("remove"))?,
    }
    imported
}

fn fill(
    building: &Path,
    rows: impl IntoIterator<Item = Result<Row, JsonlError>>,
) -> Result<Imported, JsonlError> {
    let mut refill = Refill::start(building)?;
    let mut order = Order::default();
    for (line, row) in (1..).zip(rows) {
        let record = row?.into_record().map_err(|reason| JsonlError::Invalid { line, reason })?;
        order.check(line, &record, refill.last_hash(), refill.records + 1)?;
        let _ = refill.add(record)?;
    }
    Ok(Imported { records: refill.finish()?, is_same_chain: !order.is_rechained })
}

/// Tells the rows of a whole log from those of one stream, and either from rows with gaps.
#[derive(Default)]
struct Order {
    stream: Option<String>,
    last_sequence: u64,
    has_many_streams: bool,
    is_rechained: bool,
}

impl Order {
    fn check(&mut self, line: u64, record: &Record, last: Hash, next_global: u64) -> Result<(), JsonlError> {
        let Position { global, sequence } = record.position;
        let follows = !self.is_rechained && record.previous == last && global == next_global;
        let is_same_stream = self.stream.as_ref().is_none_or(|stream| *stream == record.stream);
        if !follows {
            if self.has_many_streams || !is_same_stream {
                let expected = format!("record {next_global} after the hash {last}");
                let found = format!("record {global} after the hash {}", record.previous);
                return Err(JsonlError::Order { line, expected, found });
            }
            if sequence != self.last_sequence + 1 {
                let expected = format!("sequence {} of stream {:?}", self.last_sequence + 1, record.stream);
                return Err(JsonlError::Order { line, expected, found: format!("sequence {sequence}") });
            }
            self.is_rechained = true;
        }
        self.has_many_streams |= !is_same_stream;
        self.last_sequence = sequence;
        self.stream.get_or_insert_with(|| record.stream.clone());
        Ok(())
    }
}
