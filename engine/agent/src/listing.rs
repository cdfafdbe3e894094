//! `session/list`: the sessions of this agent's log, the last written first.

use std::time::{Duration, UNIX_EPOCH};

use waxlog_core::acp::params::List;
use waxlog_core::connection::{Listed, STREAM_PREFIX};
use waxlog_core::record::{Head, Record};
use waxlog_store::{Log, LogError, Reader, StreamInfo};

/// Sessions of one page.
pub const PAGE_MAX_SESSIONS: usize = 50;
/// Records that are looked at to find a session's first prompt.
const TITLE_SEARCH_MAX_RECORDS: usize = 16;
/// Characters of a title.
const TITLE_MAX_CHARS: usize = 80;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The cursor is none that was given out.
    #[error("session/list: cursor `{0}` is none that this agent gave out; start again without one")]
    Cursor(String),
    /// The log cannot be read.
    #[error("log: {0}")]
    Log(#[from] LogError),
}

/// One page and the cursor of the next.
pub fn page(log: &Log, list: &List) -> Result<(Vec<Listed>, Option<String>), ListError> {
    let before = match &list.cursor {
        None => u64::MAX,
        Some(cursor) => cursor.parse().map_err(|_| ListError::Cursor(cursor.clone()))?,
    };
    let reader = log.reader();
    let mut streams = reader.streams()?;
    streams.retain(|stream| !stream.stream.starts_with(STREAM_PREFIX) && stream.last_global < before);
    streams.sort_by_key(|stream| std::cmp::Reverse(stream.last_global));
    let (mut sessions, mut next) = (Vec::new(), None);
    for stream in &streams {
        let Some(listed) = describe(&reader, stream)? else { continue };
        if is_deleted(&reader, stream)? {
            continue;
        }
        if list.cwd.as_ref().is_some_and(|cwd| *cwd != listed.cwd) {
            continue;
        }
        if sessions.len() == PAGE_MAX_SESSIONS {
            return Ok((sessions, next));
        }
        next = Some(stream.last_global.to_string());
        sessions.push(listed);
    }
    Ok((sessions, None))
}

/// Whether the client has deleted the session: nothing is written to its stream after that.
fn is_deleted(reader: &Reader, stream: &StreamInfo) -> Result<bool, LogError> {
    let Some(last) = reader.all(stream.last_global)?.next() else { return Ok(false) };
    let last = last?;
    let record = Record::decode(&last.kind, last.version, &last.head, Vec::new());
    Ok(last.stream == stream.stream && matches!(record.map(|r| r.head), Ok(Head::SessionDeleted { .. })))
}

fn describe(reader: &Reader, stream: &StreamInfo) -> Result<Option<Listed>, LogError> {
    let mut listed = None;
    for stored in reader.stream(&stream.stream)?.take(TITLE_SEARCH_MAX_RECORDS) {
        let stored = stored?;
        let Ok(record) = Record::decode(&stored.kind, stored.version, &stored.head, stored.raw) else {
            continue;
        };
        match (&record.head, &mut listed) {
            (Head::SessionOpened(opened), _) => {
                listed = Some(Listed {
                    session_id: stream.stream.clone(),
                    cwd: opened.cwd.clone(),
                    title: None,
                    updated_at: Some(rfc3339(stream.last_ms)),
                });
            }
            (Head::TurnPrompted { .. }, Some(listed)) => {
                listed.title = record.prompt_text().map(|text| text.chars().take(TITLE_MAX_CHARS).collect());
                break;
            }
            _ => {}
        }
    }
    Ok(listed)
}

fn rfc3339(ms: u64) -> String {
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(ms)).to_string()
}
