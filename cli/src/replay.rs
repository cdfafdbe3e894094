//! `waxlog replay`: recorded turns are folded again and compared to the byte.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use structopt::StructOpt;
use waxlog_core::replay::{Difference, Replay, TurnVerdict};

use crate::failure::Failure;
use crate::fixture;
use crate::home::{HomeOption, OpenLog};
use crate::session::records;
use crate::table::counted;

/// Bytes shown before and after the first one that differs.
const CONTEXT_BYTES: usize = 60;

/// Every request and every line is made anew and compared with what was recorded.
#[derive(StructOpt)]
#[structopt(name = "replay", after_help = "EXAMPLE:\n    waxlog replay ses_0123456789abcdef")]
pub(crate) struct ReplayCommand {
    #[structopt(flatten)]
    home: HomeOption,
    /// Logs, fixtures or sessions [default: every log of the home]
    #[structopt(name = "LOG|FIXTURE|SESSION")]
    targets: Vec<PathBuf>,
}

impl ReplayCommand {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut verdicts = Verdicts::new(out);
        if self.targets.is_empty() {
            for log in self.home.open_logs()? {
                replay_log(&log?, &mut verdicts)?;
            }
        }
        for target in &self.targets {
            self.target(target, &mut verdicts)?;
        }
        verdicts.conclude()
    }

    fn target(&self, target: &Path, verdicts: &mut Verdicts<'_>) -> Result<(), Failure> {
        if target.is_file() {
            return fixture::run_one(target, verdicts);
        }
        match self.home.log(target) {
            Ok(dir) => replay_log(&OpenLog::open(&dir)?, verdicts),
            // Neither a file nor a log: the name of a session, then.
            Err(Failure::Check(_)) => {
                let session = target.to_string_lossy();
                replay_session(&self.home.log_of_session(&session)?, &session, verdicts)
            }
            Err(failure) => Err(failure),
        }
    }
}

/// Replays every session of a log.
pub(crate) fn replay_log(log: &OpenLog, verdicts: &mut Verdicts<'_>) -> Result<(), Failure> {
    for session in log.sessions()? {
        replay_session(log, &session.stream, verdicts)?;
    }
    if let Err(failure) = log.expect_whole() {
        verdicts.unreadable(&log.dir.display().to_string(), &failure)?;
    }
    Ok(())
}

/// Replays as far as the records go. One that cannot be read counts as a failure of its own.
fn replay_session(log: &OpenLog, session: &str, verdicts: &mut Verdicts<'_>) -> Result<(), Failure> {
    let mut replay = Replay::default();
    let read = replay_records(log, session, &mut replay);
    verdicts.turns(session, replay.turns())?;
    if let Err(failure) = read {
        verdicts.unreadable(session, &failure)?;
    }
    Ok(())
}

fn replay_records(log: &OpenLog, session: &str, replay: &mut Replay) -> Result<(), Failure> {
    for record in records(log, session)? {
        if let Some(known) = record?.known()? {
            replay.step(known);
        }
    }
    Ok(())
}

/// Counts and prints verdicts as they come.
pub(crate) struct Verdicts<'a> {
    out: &'a mut dyn Write,
    passed: u64,
    failed: u64,
}

impl<'a> Verdicts<'a> {
    pub(crate) fn new(out: &'a mut dyn Write) -> Verdicts<'a> {
        Verdicts { out, passed: 0, failed: 0 }
    }

    /// Prints a line for each turn of a session, and both sides where one differs.
    pub(crate) fn turns(&mut self, session: &str, turns: &[TurnVerdict]) -> io::Result<()> {
        for verdict in turns {
            let word = match (&verdict.difference, verdict.ended) {
                (Some(_), _) => "FAIL",
                (None, true) => "ok  ",
                (None, false) => "open",
            };
            let rounds = counted(verdict.rounds, "round");
            writeln!(self.out, "{word} {session} {} {rounds}", verdict.turn)?;
            match &verdict.difference {
                Some(difference) => {
                    self.failed += 1;
                    write_difference(difference, self.out)?;
                }
                None => self.passed += 1,
            }
        }
        Ok(())
    }

    /// Counts what could not be read as failed.
    pub(crate) fn unreadable(&mut self, what: &str, why: &Failure) -> io::Result<()> {
        self.failed += 1;
        let why = why.to_string();
        let why = why.strip_prefix("waxlog: ").unwrap_or(&why);
        writeln!(self.out, "FAIL {what}: {why}")
    }

    /// Prints the sums. Any difference is a failure.
    pub(crate) fn conclude(self) -> Result<(), Failure> {
        writeln!(self.out, "{} passed, {} failed", self.passed, self.failed)?;
        match self.failed {
            0 => Ok(()),
            _ => {
                Err(Failure::Check("replay found what differs from the recorded past; see above".to_owned()))
            }
        }
    }
}

fn write_difference(difference: &Difference, out: &mut dyn Write) -> io::Result<()> {
    let Difference { what, recorded, rebuilt } = difference;
    let at = recorded.iter().zip(rebuilt).take_while(|(a, b)| a == b).count();
    writeln!(out, "     {what} differs at byte {at}")?;
    writeln!(out, "     recorded, {}: {}", bytes(recorded), around(recorded, at))?;
    writeln!(out, "     rebuilt, {}:  {}", bytes(rebuilt), around(rebuilt, at))
}

fn bytes(side: &[u8]) -> String {
    counted(side.len() as u64, "byte")
}

/// The text around byte `at`, which stands between marks.
fn around(side: &[u8], at: usize) -> String {
    let at = at.min(side.len());
    let start = at.saturating_sub(CONTEXT_BYTES);
    let end = side.len().min(at + CONTEXT_BYTES);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(char::is_control, "\u{fffd}");
    let lead = if start > 0 { "..." } else { "" };
    let tail = if end < side.len() { "..." } else { "" };
    format!("{lead}{}>>{}{tail}", text(&side[start..at]), text(&side[at..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_are_shown_around_the_first_byte_that_differs() {
        let (recorded, rebuilt) = (b"{\"n\":1}".to_vec(), b"{\"n\":2}".to_vec());
        let mut out = Vec::new();
        let difference = Difference { what: "the request 3".to_owned(), recorded, rebuilt };
        write_difference(&difference, &mut out).expect("memory");
        let shown = String::from_utf8_lossy(&out).into_owned();
        assert!(shown.contains("the request 3 differs at byte 5"), "{shown}");
        assert!(shown.contains("recorded, 7 bytes: {\"n\":>>1}"), "{shown}");
        assert!(shown.contains("rebuilt, 7 bytes:  {\"n\":>>2}"), "{shown}");
    }

    #[test]
    fn a_side_that_ends_early_is_shown_to_its_end() {
        assert_eq!(around(b"abc", 3), "abc>>");
        assert_eq!(around(&[b'x'; 200], 100).len(), 2 * CONTEXT_BYTES + "...>>...".len());
    }
}
