//! `waxlog log ls`: the sessions of all logs.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use serde::Serialize;

use crate::failure::Failure;
use crate::home::{HomeOption, OpenLog};
use crate::table::{rfc3339, Table};

/// One session as other tools read it.
#[derive(Debug, Serialize)]
struct SessionLine {
    session: String,
    log: PathBuf,
    records: u64,
    turns: u64,
    first: String,
    last: String,
    open: bool,
}

/// What the kinds of a session's records say.
#[derive(Debug, Default)]
struct Turns {
    begun: u64,
    ended: u64,
}

pub(super) fn list(home: &HomeOption, json: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let mut sessions = Vec::new();
    let mut whole = Ok(());
    for log in home.open_logs()? {
        let log = log?;
        sessions.extend(sessions_of(&log)?);
        whole = whole.and(log.expect_whole());
    }
    if json {
        serde_json::to_writer(&mut *out, &sessions).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        table(&sessions).write(out)?;
    }
    whole
}

fn sessions_of(log: &OpenLog) -> Result<Vec<SessionLine>, Failure> {
    let has_writer = log.reader.has_writer()?;
    let sessions = log.sessions()?;
    let turns = turns_by_session(log)?;
    let lines = sessions.into_iter().map(|stream| {
        let turns = turns.get(&stream.stream);
        SessionLine {
            log: log.dir.clone(),
            records: stream.records,
            turns: turns.map_or(0, |turns| turns.begun),
            first: rfc3339(stream.first_ms),
            last: rfc3339(stream.last_ms),
            open: has_writer && turns.is_some_and(|turns| turns.begun > turns.ended),
            session: stream.stream,
        }
    });
    Ok(lines.collect())
}

/// Counts turns by the kinds of records alone: one pass over the log in the order of the disk, a page in
/// memory at a time, nothing parsed and nothing folded. Everything else of the list comes from the index.
fn turns_by_session(log: &OpenLog) -> Result<BTreeMap<String, Turns>, Failure> {
    let mut by_session: BTreeMap<String, Turns> = BTreeMap::new();
    for record in log.reader.all(1)? {
        let record = record?;
        match record.kind.as_str() {
            "turn_prompted" => by_session.entry(record.stream).or_default().begun += 1,
            "turn_ended" | "turn_interrupted" => by_session.entry(record.stream).or_default().ended += 1,
            _ => {}
        }
    }
    Ok(by_session)
}

fn table(sessions: &[SessionLine]) -> Table {
    let mut table = Table::new(&["session", "#records", "#turns", "first", "last", "state", "log"]);
    for line in sessions {
        table.row([
            line.session.clone(),
            line.records.to_string(),
            line.turns.to_string(),
            line.first.clone(),
            line.last.clone(),
            if line.open { "open" } else { "" }.to_owned(),
            line.log.display().to_string(),
        ]);
    }
    table
}
