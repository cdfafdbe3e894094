//! What a start finds of the process before it: turns that a kill left open are closed in the log.

use waxlog_core::connection::STREAM_PREFIX;
use waxlog_core::record::{Head, Record, RecordError};
use waxlog_core::session::Session;
use waxlog_store::{Log, LogError, StreamInfo};

use crate::journal::Journal;

/// What a recovery did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The sessions whose open turn was closed.
    pub sessions: Vec<String>,
}

/// Closes the turns that are open in `log`.
///
/// Every start does this before it serves, so only streams that were written since the last start can hold
/// an open turn: the cost is bounded by one run of the agent, not by the log.
pub async fn recover(log: &Log) -> Result<Recovered, LogError> {
    let reader = log.reader();
    let streams = reader.streams()?;
    let last_start = streams.iter().filter(|s| is_connection(s)).map(|s| s.first_global).max().unwrap_or(0);
    let mut recovered = Recovered::default();
    for stream in streams.iter().filter(|s| !is_connection(s) && s.last_global > last_start) {
        if close_turn(log, &stream.stream)? {
            recovered.sessions.push(stream.stream.clone());
        }
    }
    if !recovered.sessions.is_empty() {
        log.sync().await?;
    }
    Ok(recovered)
}

fn is_connection(stream: &StreamInfo) -> bool {
    stream.stream.starts_with(STREAM_PREFIX)
}

fn close_turn(log: &Log, stream: &str) -> Result<bool, LogError> {
    let closing = refold(log, stream)?.map(|session| session.recovery()).unwrap_or_default();
    let journal = Journal::new(log.clone(), stream);
    for record in &closing {
        journal.append(record)?;
    }
    Ok(!closing.is_empty())
}

/// Takes a session at rest off the list, by records of its own stream. One that is not there, or is off the
/// list already, stays as it is.
pub async fn delete(log: &Log, stream: &str) -> Result<(), LogError> {
    let Some(mut session) = refold(log, stream)?.filter(|session| !session.is_deleted()) else {
        return Ok(());
    };
    let journal = Journal::new(log.clone(), stream);
    let mut next = Some(Record::bare(Head::DeleteRequested { id: None }));
    while let Some(record) = next {
        journal.append(&record)?;
        session.fold(&record);
        next = session.decide();
    }
    log.sync().await
}

/// Folds a session's stream again. `None` if the log has no such session, or it cannot be folded to its end;
/// then the operator's log says why, and the stream is left as it is.
pub fn refold(log: &Log, stream: &str) -> Result<Option<Session>, LogError> {
    let mut session: Option<Session> = None;
    for stored in log.reader().stream(stream)? {
        let stored = stored?;
        let sequence = stored.position.sequence;
        let record = match Record::decode(&stored.kind, stored.version, &stored.head, stored.raw) {
            Ok(record) => record,
            Err(unknown @ RecordError::Unknown { .. }) => {
                log::warn!("session {stream}: record {sequence} is passed over: {unknown}");
                continue;
            }
            Err(malformed) => {
                log::error!("session {stream}: record {sequence}: {malformed}; the session is left as it is");
                return Ok(None);
            }
        };
        match &mut session {
            None => session = Session::open(&record),
            Some(session) => session.fold(&record),
        }
        // What the records once caused was done, or lost, by the process that wrote them.
        session.iter_mut().for_each(|session| drop(session.take_outbox()));
    }
    Ok(session)
}
