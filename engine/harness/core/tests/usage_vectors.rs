//! The usage tracker against the known sequences.

use serde_json::{json, Value};
use waxlog_harness_core::usage::{stop_reason, Counts, Metric, Tracker, Usage};

fn vectors() -> Value {
    serde_json::from_str(include_str!("vectors/usage-tracker.json")).expect("the vectors are JSON")
}

fn counts(counts: &Counts) -> Value {
    json!({
        "input": counts.input,
        "output": counts.output,
        "total": counts.total,
        "cost": counts.cost.map(|cost| (cost * 1e9).round() / 1e9),
        "cacheRead": counts.cached,
    })
}

fn shown(metric: Metric) -> Value {
    json!({
        "session": metric.session,
        "turnSeq": metric.seq,
        "deltaReliable": metric.turn.is_some(),
        "turn": counts(&metric.turn.unwrap_or_default()),
        "cumulative": counts(&metric.cumulative),
        "model": metric.model,
    })
}

/// Does one step; all are of one child, as the vectors know of no other.
fn play(tracker: &mut Tracker, step: &Value) -> Option<Value> {
    let session = step["session"].as_str().unwrap_or_default();
    match step["op"].as_str() {
        Some("begin_turn") => tracker.begin(1, session),
        Some("record") => {
            let mut update = step["update"].clone();
            update["sessionUpdate"] = json!("usage_update");
            let read = Usage::read(&json!({"sessionId": session, "update": update}));
            let (session, usage) = read.expect("the vectors' reports are whole");
            tracker.record(1, &session, usage);
        }
        Some("take") => return Some(tracker.take(1).map_or(Value::Null, shown)),
        other => panic!("unknown step {other:?}"),
    }
    None
}

#[test]
fn every_sequence_gives_the_known_metrics() {
    for sequence in vectors()["tracker"].as_array().expect("a list") {
        let mut tracker = Tracker::default();
        for step in sequence["steps"].as_array().expect("a list") {
            if let Some(taken) = play(&mut tracker, step) {
                assert_eq!(taken, step["expect"], "{}", sequence["name"]);
            }
        }
    }
}

#[test]
fn every_stop_reason_is_mapped_as_known() {
    for (answered, wanted) in vectors()["stop_reason_map"].as_object().expect("an object") {
        assert_eq!(stop_reason(answered), wanted);
    }
}
