//! The records of one session as they come from a log, each with what this version makes of it.

use waxlog_core::record::{Record, RecordError};
use waxlog_store::Record as Stored;

use crate::failure::Failure;
use crate::home::OpenLog;

/// A record of a session.
pub(crate) struct SessionRecord {
    /// As the log has it.
    pub(crate) stored: Stored,
    /// As this version reads it.
    pub(crate) record: Result<Record, RecordError>,
}

impl SessionRecord {
    /// Reads a record of the log.
    pub(crate) fn of(stored: Stored) -> SessionRecord {
        let record = Record::decode(&stored.kind, stored.version, &stored.head, stored.raw.clone());
        SessionRecord { stored, record }
    }

    /// The record for a fold: nothing for a kind of a later release, which is passed over.
    pub(crate) fn known(&self) -> Result<Option<&Record>, Failure> {
        match &self.record {
            Ok(record) => Ok(Some(record)),
            Err(RecordError::Unknown { .. }) => Ok(None),
            Err(malformed) => Err(Failure::Check(format!(
                "record {} of session {}: {malformed}; its log was written by another program or changed",
                self.stored.position.sequence, self.stored.stream
            ))),
        }
    }
}

/// The records of `session`, read in pages. After an error there are no more.
pub(crate) fn records(
    log: &OpenLog,
    session: &str,
) -> Result<impl Iterator<Item = Result<SessionRecord, Failure>>, Failure> {
    let stored = log.reader.stream(session)?;
    Ok(stored.map(|stored| Ok(SessionRecord::of(stored?))))
}
