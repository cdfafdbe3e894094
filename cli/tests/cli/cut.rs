//! The fold cut anywhere: every prefix of every recorded turn is a state that a session can go on from.

use std::path::Path;

use serde_json::Value;
use waxlog_core::record::Record;
use waxlog_core::session::Session;
use waxlog_store::jsonl::Row;

use crate::stage::{decode, fixtures};
use crate::wire::expect_paired_on_its_wire;

/// The records of a fixture.
fn records(fixture: &Path) -> Vec<Record> {
    let text = std::fs::read_to_string(fixture).expect("readable");
    let mut lines = text.lines();
    let header: Value = serde_json::from_str(lines.next().expect("a header")).expect("json");
    let rows = lines.take(header["records"].as_u64().expect("a number") as usize);
    rows.map(|row| decode(serde_json::from_str::<Row>(row).expect("a row").into_record().expect("sound")))
        .collect()
}

fn fold(records: &[Record]) -> Session {
    let mut session = Session::open(&records[0]).expect("a session");
    records[1..].iter().for_each(|record| session.fold(record));
    session
}

/// What must be the same at the end, however the fold got there.
fn outcome(session: &Session) -> (Vec<u8>, String, u64) {
    (session.next_request("Go on.").to_vec(), format!("{:?}", session.tally()), session.asked())
}

#[test]
fn every_prefix_of_every_fixture_recovers_to_a_state_that_a_model_accepts() {
    for fixture in fixtures() {
        let records = records(&fixture);
        for cut in 1..=records.len() {
            let mut session = fold(&records[..cut]);
            let recovery = session.recovery();
            recovery.iter().for_each(|record| session.fold(record));
            let place = format!("{} cut after record {cut}", fixture.display());
            assert_eq!(session.history().unpaired_call(), None, "{place}");
            assert!(!session.is_busy() && session.recovery().is_empty(), "{place}: recovered once for all");
            let next = session.next_request("Go on.").to_vec();
            expect_paired_on_its_wire(&next);
        }
    }
}

#[test]
fn a_fold_that_stopped_anywhere_and_went_on_ends_where_an_uninterrupted_one_does() {
    for fixture in fixtures() {
        let records = records(&fixture);
        let whole = outcome(&fold(&records));
        for cut in 1..=records.len() {
            let mut session = fold(&records[..cut]);
            // Whoever looks at a state must not change it.
            let _ = (session.decide(), session.recovery(), session.take_outbox());
            records[cut..].iter().for_each(|record| session.fold(record));
            assert_eq!(outcome(&session), whole, "{} cut after record {cut}", fixture.display());
        }
    }
}
