//! Fills a new log with records that were in a log before.

use std::path::Path;

use crate::error::{LogError, OpenError};
use crate::options::Options;
use crate::record::{Hash, NewRecord, Record};
use crate::writer::Log;

/// How much is queued before the next flush.
const FLUSH_BYTES: usize = 4 << 20;

/// A new log that is being filled.
pub(crate) struct Refill {
    log: Log,
    queued_bytes: usize,
    pub(crate) records: u64,
}

impl Refill {
    /// Makes the log.
    pub(crate) fn start(dir: &Path) -> Result<Refill, OpenError> {
        Ok(Refill { log: Log::open(dir, Options::default())?, queued_bytes: 0, records: 0 })
    }

    /// Appends the record's content. It gets the same hash when it follows the same records.
    pub(crate) fn add(&mut self, record: Record) -> Result<Hash, LogError> {
        self.queued_bytes += record.head.len() + record.raw.len();
        self.records += 1;
        let Record { stream, kind, version, time_ms, head, raw, .. } = record;
        self.log.append(vec![NewRecord { stream, kind, version, time_ms, head, raw }])?;
        if self.queued_bytes >= FLUSH_BYTES {
            self.log.flush_blocking()?;
            self.queued_bytes = 0;
        }
        Ok(self.log.last_hash())
    }

    /// Makes all of it durable and closes the log.
    pub(crate) fn finish(self) -> Result<u64, LogError> {
        self.log.sync_blocking()?;
        Ok(self.records)
    }

    /// The hash of the last record.
    pub(crate) fn last_hash(&self) -> Hash {
        self.log.last_hash()
    }
}
