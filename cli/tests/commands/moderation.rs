//! What moderators do.

use serde_json::json;
use waxlog_scripted::model_server::Answer;

use crate::scripted::{accepted, now, tags, usage, Outcome, Stage};

#[test]
fn a_time_out_ends_and_a_ban_may_not() {
    let (stage, key) = (Stage::new(vec![accepted()]), "7".repeat(64));
    assert_eq!(stage.run(&["moderation", "timeout", "--pubkey", &key]).failure(), usage());
    let both = ["moderation", "ban", "--pubkey", &key, "--expires-in", "5", "--expires-at", "9999999999"];
    assert_eq!(stage.run(&both).failure(), usage());
    assert!(stage.server.requests().is_empty());
    let start = now();
    let arguments = ["moderation", "timeout", "--pubkey", &key, "--expires-in", "60", "--reason", "spam"];
    assert_eq!(stage.run(&arguments).json()["accepted"], true);
    let sent = stage.sent_one();
    let end: u64 = sent.tag_value("expiration").unwrap().parse().unwrap();
    assert!((start + 60..=now() + 60).contains(&end), "{end}");
    assert_eq!((sent.kind, sent.tag_value("reason")), (9042, Some("spam")));
    assert_eq!(stage.run(&["moderation", "ban", "--pubkey", &key]).code, 0);
    assert_eq!(tags(&stage.sent()[1]), [format!("p|{key}")]);
}

#[test]
fn a_report_is_closed_with_known_words_only() {
    let (stage, id) = (Stage::new(vec![accepted()]), "8".repeat(64));
    let resolve = |status, action| {
        stage.run(&["moderation", "resolve", "--report", &id, "--status", status, "--action", action])
    };
    assert_eq!(resolve("open", "ban").failure(), usage());
    assert_eq!(resolve("resolved", "warn").failure(), usage());
    assert!(stage.server.requests().is_empty());
    assert_eq!(resolve("dismissed", "dismiss").code, 0);
    let wanted = [format!("report|{id}"), "status|dismissed".into(), "action|dismiss".into()];
    assert_eq!((stage.sent_one().kind, tags(&stage.sent_one())), (9044, wanted.to_vec()));
}

#[test]
fn a_decision_whose_fate_is_unknown_is_not_sent_twice() {
    let (stage, key) = (Stage::new(vec![Answer::status(502, "bad gateway")]), "7".repeat(64));
    let run = stage.run(&["moderation", "unban", "--pubkey", &key]);
    assert_eq!((run.failure(), stage.sent().len()), ((2, "delivery_unknown".into()), 1));
}

#[test]
fn what_moderators_see_is_asked_for_with_its_query_and_printed_as_it_is() {
    let stage = Stage::new(vec![Answer::json(r#"[{"id":1}]"#)]);
    assert_eq!(stage.run(&["moderation", "reports"]).json(), json!([{"id": 1}]));
    stage.run(&["moderation", "reports", "--status", "open", "--limit", "3"]);
    stage.run(&["moderation", "audit"]);
    stage.run(&["moderation", "restricted"]);
    let paths: Vec<_> = stage.server.requests().into_iter().map(|request| request.path).collect();
    let wanted = ["/reports?limit=50", "/reports?limit=3&status=open", "/audit?limit=50", "/restricted"];
    assert_eq!(paths, wanted.map(|path| format!("/moderation{path}")));
    assert_eq!(stage.run(&["moderation", "reports", "--status", "new"]).failure(), usage());
}
