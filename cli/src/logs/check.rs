//! `waxlog log verify` and `repair`.

use std::io::Write;
use std::path::{Path, PathBuf};

use waxlog_store::{LogError, OpenError, Reader};

use crate::failure::Failure;
use crate::home::HomeOption;
use crate::table::counted;

pub(super) fn verify(home: &HomeOption, logs: &[PathBuf], out: &mut dyn Write) -> Result<(), Failure> {
    let dirs = match logs {
        [] => home.logs()?,
        logs => logs.iter().map(|log| home.log(log)).collect::<Result<_, _>>()?,
    };
    let mut damaged = 0;
    for dir in &dirs {
        match verify_one(dir, out) {
            Ok(true) => {}
            Ok(false) => damaged += 1,
            // An agent that is killed while it makes its log leaves a folder in which nothing is lost.
            Err(Failure::Check(_)) if logs.is_empty() && is_empty_slot(dir) => {}
            Err(failure) => return Err(failure),
        }
    }
    match damaged {
        0 => Ok(()),
        damaged => Err(Failure::Check(format!(
            "{damaged} of {} did not pass; keep a copy, then run `waxlog log repair LOG`",
            counted(dirs.len() as u64, "log")
        ))),
    }
}

/// Checks one log and says what was found; whether it is sound.
fn verify_one(dir: &Path, out: &mut dyn Write) -> Result<bool, Failure> {
    let report = waxlog_store::verify(dir)?;
    let (records, segments) = (counted(report.records, "record"), counted(report.segments, "segment"));
    let sound = report.problems.is_empty();
    let word = if sound { "ok  " } else { "BAD " };
    let held = if is_held(dir)? { ", read through the process that holds it" } else { "" };
    writeln!(out, "{word} {}: {records} sound in {segments}{held}", dir.display())?;
    for problem in &report.problems {
        writeln!(out, "     {problem}")?;
    }
    Ok(sound)
}

/// Whether an agent has the log open. Damage was reported before and is no obstacle to the question.
fn is_held(dir: &Path) -> Result<bool, Failure> {
    match Reader::open(dir).map(|reader| reader.has_writer()) {
        Ok(Ok(held)) => Ok(held),
        // The holder went away while it was asked.
        Ok(Err(LogError::Holder { .. })) => Ok(false),
        Ok(Err(error)) => Err(error.into()),
        Err(OpenError::Damaged(_) | OpenError::NotALog { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn is_empty_slot(dir: &Path) -> bool {
    matches!(Reader::open(dir), Err(OpenError::NotALog { .. }))
}

pub(super) fn repair(home: &HomeOption, log: &Path, out: &mut dyn Write) -> Result<(), Failure> {
    let dir = home.log(log)?;
    let repaired = waxlog_store::repair(&dir)?;
    let kept = counted(repaired.kept, "record");
    let Some(aside) = repaired.set_aside else {
        return Ok(writeln!(out, "{}: {kept}, all sound; nothing was done", dir.display())?);
    };
    for problem in &repaired.problems {
        writeln!(out, "{problem}")?;
    }
    writeln!(
        out,
        "{}: {kept} kept, at least {} lost; the damaged folder is {}",
        dir.display(),
        repaired.lost,
        aside.display()
    )?;
    Ok(())
}
