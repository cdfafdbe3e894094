//! The kept corpus says what it seems to say: an input that no decoder takes any more tests nothing.

use waxlog_core::record::Record;
use waxlog_sim::fuzz::{campaign, TARGETS};
use waxlog_store::jsonl::Row;

#[test]
fn every_row_of_the_corpus_is_a_record() {
    for target in TARGETS.iter().filter(|target| matches!(target.name, "record_frame" | "fixture_line")) {
        for input in campaign::corpus(target).expect(target.name) {
            for line in input.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                let row: Row = serde_json::from_slice(line).expect("a row");
                let head = row.head.expect("a head");
                let record = Record::decode(&row.kind, row.version, head.get().as_bytes(), Vec::new());
                assert!(record.is_ok(), "{}: {record:?}", target.name);
            }
        }
    }
}
