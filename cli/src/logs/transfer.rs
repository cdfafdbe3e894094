//! `waxlog log export` and `import`.

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::Path;

use waxlog_store::jsonl::{self, JsonlError};

use crate::failure::Failure;
use crate::home::{HomeOption, OpenLog};
use crate::table::counted;

pub(super) fn export(
    home: &HomeOption,
    session: Option<&str>,
    log: Option<&Path>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let log = match (session, log) {
        (Some(session), None) => home.log_of_session(session)?,
        _ => OpenLog::open(&home.log_or_only(log)?)?,
    };
    let rows = jsonl::export(&log.reader, session, out).map_err(|error| match error {
        JsonlError::Io { source, .. } => Failure::from(source),
        other => other.into(),
    })?;
    if let (Some(session), 0) = (session, rows) {
        let dir = log.dir.display();
        return Err(Failure::Check(format!("there is no session {session:?} in the log {dir}")));
    }
    log.expect_whole()
}

pub(super) fn import(file: &Path, dir: &Path, out: &mut dyn Write) -> Result<(), Failure> {
    let name = file.display();
    let input = File::open(file).map_err(|error| Failure::io(format!("cannot open {name}"), &error))?;
    let imported = jsonl::import(dir, jsonl::read_rows(BufReader::new(input))).map_err(|error| {
        match Failure::from(error) {
            Failure::Check(text) => Failure::Check(format!("{name}: {text}")),
            other => other,
        }
    })?;
    let chain = if imported.is_same_chain { "with the hashes it had" } else { "chained anew" };
    writeln!(out, "{}: {}, {chain}", dir.display(), counted(imported.records, "record"))?;
    Ok(())
}
