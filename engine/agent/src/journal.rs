//! The log as the agent writes it: records get their time here, and nowhere else.

use std::time::{SystemTime, UNIX_EPOCH};

use waxlog_core::connection;
use waxlog_core::record::{Record, RECORD_VERSION};
use waxlog_store::{Log, LogError, NewRecord};

/// One stream of the log, open for writing.
#[derive(Clone)]
pub struct Journal {
    log: Log,
    stream: String,
}

impl Journal {
    /// The stream `stream` of `log`.
    pub fn new(log: Log, stream: impl Into<String>) -> Journal {
        Journal { log, stream: stream.into() }
    }

    /// Appends one record of a session.
    pub fn append(&self, record: &Record) -> Result<(), LogError> {
        let (kind, head) = record.encode_head();
        self.write(kind, head, record.raw.clone())
    }

    /// Appends one record of a connection.
    pub fn append_connection(&self, head: &connection::Head, raw: &[u8]) -> Result<(), LogError> {
        let (kind, head) = head.encode();
        self.write(kind, head, raw.to_vec())
    }

    fn write(&self, kind: String, head: Vec<u8>, raw: Vec<u8>) -> Result<(), LogError> {
        let stream = self.stream.clone();
        let record = NewRecord { stream, kind, version: RECORD_VERSION, time_ms: now_ms(), head, raw };
        self.log.append(vec![record]).map(drop)
    }

    /// Waits until everything appended so far survives a kill of the process.
    pub async fn flush(&self) -> Result<(), LogError> {
        self.log.flush().await
    }

    /// Waits until everything appended so far survives a loss of power.
    pub async fn sync(&self) -> Result<(), LogError> {
        self.log.sync().await
    }
}

/// Milliseconds since 1970; 0 on a machine whose clock stands before that.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
