//! What a session has cost by the log of our own agent, for turns that ended with their process.

use std::path::Path;
use std::time::{Duration, Instant};

use waxlog_core::acp::lines;
use waxlog_core::ledger::Ledger;
use waxlog_core::record::Record;
use waxlog_core::usage::Tally;
use waxlog_store::Reader;

use crate::config::Config;

/// How long an agent that lost its harness may take to end.
const WRITER_MAX: Duration = Duration::from_secs(10);
const WRITER_POLL: Duration = Duration::from_millis(50);

/// The report that the agent of a slot would have sent for a session, as the parameters of its notification.
pub(crate) async fn find(config: &Config, slot: usize, session: &str) -> Option<String> {
    let (dir, session) = (config.agent_log_dir(slot), session.to_owned());
    async_std::task::spawn_blocking(move || read(&dir, &session)).await
}

fn read(dir: &Path, session: &str) -> Option<String> {
    if !dir.is_dir() {
        return None;
    }
    let begun = Instant::now();
    let reader = loop {
        let reader = Reader::open(dir).ok()?;
        // An agent without a harness ends by itself; what it still writes down belongs to the bill.
        if !reader.has_writer().unwrap_or(false) || begun.elapsed() > WRITER_MAX {
            break reader;
        }
        drop(reader);
        std::thread::sleep(WRITER_POLL);
    };
    let mut ledger = Ledger::default();
    for stored in reader.stream(session).ok()? {
        let stored = stored.ok()?;
        if let Ok(record) = Record::decode(&stored.kind, stored.version, &stored.head, stored.raw) {
            ledger.fold(&record);
        }
    }
    let mut sum = Tally::default();
    for turn in ledger.turns() {
        sum.append(&turn.tally);
    }
    let model = ledger.turns().iter().rev().find_map(|turn| turn.model.clone()).unwrap_or_default();
    let is_reported = sum.is_reported();
    let line = lines::usage(session, &sum, &model);
    let message: serde_json::Value = serde_json::from_slice(&line).ok()?;
    is_reported.then(|| message["params"].to_string())
}
