//! The log of a run: what was appended and, of that, what is durable. A kill keeps the durable half and
//! possibly some of the rest, in order.

use waxlog_core::connection;
use waxlog_core::record::{Record, RecordError, RECORD_VERSION};

/// Whose record it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// The client's connection.
    Connection,
    /// The session.
    Session,
}

/// A record as a log holds it: bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Whose it is.
    pub stream: Stream,
    /// Its kind.
    pub kind: String,
    /// Its head as JSON.
    pub head: Vec<u8>,
    /// Its raw part.
    pub raw: Vec<u8>,
}

impl Stored {
    /// A record of the session.
    pub fn of_session(record: &Record) -> Stored {
        let (kind, head) = record.encode_head();
        Stored { stream: Stream::Session, kind, head, raw: record.raw.clone() }
    }

    /// A record of the connection.
    pub fn of_connection(head: &connection::Head, raw: &[u8]) -> Stored {
        let (kind, head) = head.encode();
        Stored { stream: Stream::Connection, kind, head, raw: raw.to_vec() }
    }

    /// Reads a record of the session back.
    pub fn decode(&self) -> Result<Record, RecordError> {
        Record::decode(&self.kind, RECORD_VERSION, &self.head, self.raw.clone())
    }
}

/// The log.
#[derive(Clone, Debug, Default)]
pub struct Log {
    rows: Vec<Stored>,
    durable: usize,
}

impl Log {
    /// Takes a record into the live half.
    pub fn append(&mut self, row: Stored) {
        self.rows.push(row);
    }

    /// Makes everything durable; gives back what was not before.
    pub fn flush(&mut self) -> &[Stored] {
        let before = std::mem::replace(&mut self.durable, self.rows.len());
        &self.rows[before..]
    }

    /// How many records would be lost at worst if the process died now.
    pub fn at_risk(&self) -> usize {
        self.rows.len() - self.durable
    }

    /// The process dies: of the records at risk the first `kept` survive. Gives back those.
    pub fn kill(&mut self, kept: usize) -> &[Stored] {
        let before = self.durable;
        self.rows.truncate(before.saturating_add(kept));
        self.durable = self.rows.len();
        &self.rows[before..]
    }

    /// All records, durable or not, oldest first.
    pub fn all(&self) -> &[Stored] {
        &self.rows
    }

    /// The durable records, oldest first.
    pub fn durable(&self) -> &[Stored] {
        &self.rows[..self.durable]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kind: &str) -> Stored {
        Stored { stream: Stream::Session, kind: kind.into(), head: Vec::new(), raw: Vec::new() }
    }

    #[test]
    fn a_kill_keeps_what_was_flushed_and_a_prefix_of_the_rest() {
        let mut log = Log::default();
        log.append(row("a"));
        assert_eq!(log.flush(), [row("a")]);
        ["b", "c", "d"].into_iter().for_each(|kind| log.append(row(kind)));
        assert_eq!(log.at_risk(), 3);
        assert_eq!(log.kill(1), [row("b")]);
        assert_eq!(log.durable(), [row("a"), row("b")]);
        assert_eq!(log.at_risk(), 0);
    }
}
