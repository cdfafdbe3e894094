//! `waxlog fixture`: recorded sessions as regression tests.

mod file;

use std::io::Write;
use std::path::{Path, PathBuf};

use structopt::StructOpt;
use waxlog_core::record::Record;
use waxlog_core::replay::{lines_of, Difference, Replay, TurnVerdict};
use waxlog_store::jsonl::Row;

use self::file::FixtureFile;
use crate::failure::Failure;
use crate::home::HomeOption;
use crate::replay::Verdicts;
use crate::session::{records, SessionRecord};

/// What can be done with fixtures.
#[derive(StructOpt)]
#[structopt(after_help = "EXAMPLE:\n    waxlog fixture run fixtures/*.jsonl")]
pub(crate) enum Fixture {
    /// Keeps a session of the log as one file.
    #[structopt(after_help = "EXAMPLE:\n    waxlog fixture record ses_0123456789abcdef -o slow-tool.jsonl")]
    Record {
        #[structopt(flatten)]
        home: HomeOption,
        /// The session's id
        session: String,
        /// The file to write [default: stdout]
        #[structopt(short, long = "output", value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Folds fixtures again and compares every request and line.
    #[structopt(after_help = "EXAMPLE:\n    waxlog fixture run fixtures/*.jsonl")]
    Run {
        /// The fixtures
        #[structopt(name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
}

impl Fixture {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        match self {
            Fixture::Record { home, session, output } => record(home, session, output.as_deref(), out),
            Fixture::Run { files } => {
                let mut verdicts = Verdicts::new(out);
                for file in files {
                    run_one(file, &mut verdicts)?;
                }
                verdicts.conclude()
            }
        }
    }
}

fn record(
    home: &HomeOption,
    session: &str,
    output: Option<&Path>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let log = home.log_of_session(session)?;
    let mut rows = Vec::new();
    let mut known = Vec::new();
    for record in records(&log, session)? {
        let record = record?;
        known.extend(record.known()?.cloned());
        rows.push(Row::from(&record.stored));
    }
    log.expect_whole()?;
    expect_replays(session, &known)?;
    let file = FixtureFile { session: session.to_owned(), rows, said: lines_of(known.iter()) };
    let bytes = file.encode().map_err(|error| Failure::io(format!("session {session}"), &error))?;
    match output {
        None => Ok(out.write_all(&bytes)?),
        Some(path) => std::fs::write(path, &bytes)
            .map_err(|error| Failure::io(format!("cannot write {}", path.display()), &error)),
    }
}

/// A fixture says what must stay so; a session that already differs can not be one.
fn expect_replays(session: &str, records: &[Record]) -> Result<(), Failure> {
    let mut replay = Replay::default();
    records.iter().for_each(|record| replay.step(record));
    match replay.turns().iter().find(|turn| turn.difference.is_some()) {
        None => Ok(()),
        Some(turn) => Err(Failure::Check(format!(
            "{} of session {session} does not replay, so it cannot be a fixture; run `waxlog replay {session}`",
            turn.turn
        ))),
    }
}

/// Replays one fixture. A file that cannot be read is a failed one: the others are still run.
pub(crate) fn run_one(path: &Path, verdicts: &mut Verdicts<'_>) -> Result<(), Failure> {
    match turns_of(path) {
        Ok((session, turns)) => Ok(verdicts.turns(&session, &turns)?),
        Err(failure) => Ok(verdicts.unreadable(&path.display().to_string(), &failure)?),
    }
}

fn turns_of(path: &Path) -> Result<(String, Vec<TurnVerdict>), Failure> {
    let FixtureFile { session, rows, said } = FixtureFile::read(path)?;
    let mut records = Vec::new();
    for row in rows {
        let stored = row.into_record().map_err(|why| Failure::Check(format!("{}: {why}", path.display())))?;
        records.extend(SessionRecord::of(stored).known()?.cloned());
    }
    let mut replay = Replay::with_lines(said.iter().cloned().collect());
    records.iter().for_each(|record| replay.step(record));
    let mut turns = replay.turns().to_vec();
    let spoken = lines_of(records.iter());
    // Lines after the last decision have no digest in a record; here they are compared as they are.
    let other =
        first_other_line(&said, &spoken).filter(|_| turns.iter().all(|turn| turn.difference.is_none()));
    match (other, turns.last_mut()) {
        (None, _) => {}
        (difference, Some(last)) => last.difference = difference,
        (difference, None) => {
            let turn = "before the first turn".to_owned();
            turns.push(TurnVerdict { turn, ended: false, rounds: 0, difference });
        }
    }
    Ok((session, turns))
}

type SaidLines = [(String, Vec<u8>)];

fn first_other_line(recorded: &SaidLines, rebuilt: &SaidLines) -> Option<Difference> {
    let at = (0..recorded.len().max(rebuilt.len())).find(|&i| recorded.get(i) != rebuilt.get(i))?;
    let side = |lines: &SaidLines| lines.get(at).map_or(b"no line".to_vec(), |(_, line)| line.clone());
    let what = format!("line {} to the client", at + 1);
    Some(Difference { what, recorded: side(recorded), rebuilt: side(rebuilt) })
}
