//! `waxlog log show SESSION`: the records of a session, a line each.

use std::io::Write;

use waxlog_core::record::RecordError;

use super::summary::summary;
use crate::failure::Failure;
use crate::home::HomeOption;
use crate::session::{records, SessionRecord};
use crate::table::{rfc3339, Table};

pub(super) fn show(home: &HomeOption, session: &str, out: &mut dyn Write) -> Result<(), Failure> {
    let log = home.log_of_session(session)?;
    let mut table = Table::new(&["#seq", "time", "kind", "#head", "#raw", "what"]);
    for record in records(&log, session)? {
        let record = record?;
        let stored = &record.stored;
        table.row([
            stored.position.sequence.to_string(),
            rfc3339(stored.time_ms),
            stored.kind.clone(),
            stored.head.len().to_string(),
            stored.raw.len().to_string(),
            what(&record),
        ]);
    }
    table.write(out)?;
    log.expect_whole()
}

fn what(record: &SessionRecord) -> String {
    match &record.record {
        Ok(known) => summary(known),
        Err(RecordError::Unknown { version, .. }) => {
            format!("(a kind of another release, version {version}; kept and passed over)")
        }
        Err(malformed) => format!("(unreadable: {malformed})"),
    }
}
