//! The harness's log: one stream of records.

use std::time::{SystemTime, UNIX_EPOCH};

use waxlog_core::record::RecordError;
use waxlog_harness_core::record::{Record, RECORD_VERSION};
use waxlog_store::{Log, LogError, NewRecord, Reader, Record as Stored};

/// The stream that holds the records.
pub const STREAM: &str = "harness";

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The store says so.
    #[error(transparent)]
    Read(#[from] LogError),
    /// A record is not what its kind says.
    #[error("record {at} of the harness's log: {error}")]
    Record {
        /// Where it is.
        at: u64,
        /// What is wrong.
        error: RecordError,
    },
}

/// The log, open for writing.
pub(crate) struct Journal {
    log: Log,
}

impl Journal {
    pub(crate) fn new(log: Log) -> Self {
        Self { log }
    }

    pub(crate) fn append(&self, record: &Record) -> Result<(), LogError> {
        let (kind, head) = record.encode_head();
        let new = NewRecord {
            stream: STREAM.to_owned(),
            kind,
            version: RECORD_VERSION,
            time_ms: record.at_ms,
            head,
            raw: record.raw.clone(),
        };
        self.log.append(vec![new]).map(drop)
    }

    /// Waits until everything appended so far survives a kill of the process.
    pub(crate) async fn flush(&self) -> Result<(), LogError> {
        self.log.flush().await
    }

    /// Waits until everything appended so far survives a loss of power.
    pub(crate) async fn sync(&self) -> Result<(), LogError> {
        self.log.sync().await
    }
}

/// Reads the records of a harness's log, oldest first. Kinds of a later release are passed over.
pub fn read(reader: &Reader, mut take: impl FnMut(&Record)) -> Result<(), JournalError> {
    for stored in reader.stream(STREAM)? {
        let stored: Stored = stored?;
        let at = stored.position.sequence;
        match Record::decode(&stored.kind, stored.version, stored.time_ms, &stored.head, stored.raw) {
            Ok(record) => take(&record),
            Err(RecordError::Unknown { .. }) => {}
            Err(error) => return Err(JournalError::Record { at, error }),
        }
    }
    Ok(())
}

/// Milliseconds since 1970; 0 on a machine whose clock stands before that.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
