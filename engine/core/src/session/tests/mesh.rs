//! The model `auto` with a mesh behind it: who is asked, and the way back.

use serde_json::{json, Value};

use super::rig::*;
use crate::record::Head;
use crate::session::{Effect, Input};

fn auto() -> Rig {
    Rig::with(|o| {
        o.settings.model = "auto".into();
        o.settings.prefer_mesh_for_auto = true;
    })
}

/// Tells the request that waits whether the mesh is there.
fn mesh(rig: &mut Rig, asked: u64, available: bool) {
    let list = br#"{"data":[]}"#.to_vec();
    assert!(rig.input(Input::MeshAnswered { asked, available, list }));
}

fn models(rig: &Rig) -> Vec<&str> {
    rig.asks.iter().filter_map(|ask| ask.body["model"].as_str()).collect()
}

fn failures(rig: &Rig) -> usize {
    rig.count_effects(|e| matches!(e, Effect::MeshFailed))
}

fn failure(kind: &str) -> String {
    json!({"error": {"type": kind, "message": "x"}}).to_string()
}

#[test]
fn each_request_asks_who_answers_it_and_the_client_hears_of_auto_only() {
    let mut rig = auto();
    rig.prompt("go");
    assert!(rig.asks.is_empty(), "nothing is asked before it is known whom");
    mesh(&mut rig, 1, true);
    rig.answer(&costing(say_call("a"), 10, 5));
    rig.finish(0, text_result("ok"));
    mesh(&mut rig, 2, false);
    rig.answer(&text("done"));
    assert_eq!(models(&rig), ["mesh", "auto"]);
    let told: Vec<&Value> =
        rig.lines.iter().map(|l| &l["params"]["update"]["model"]).filter(|m| m.is_string()).collect();
    assert_eq!(told, ["auto", "auto"]);
    assert_eq!(failures(&rig), 0);
}

#[test]
fn without_the_switch_or_with_another_model_nobody_looks() {
    for (model, switch) in [("auto", false), ("mesh", true), ("m", true)] {
        let mut rig = Rig::with(|o| {
            o.settings.model = model.into();
            o.settings.prefer_mesh_for_auto = switch;
        });
        rig.prompt("go");
        assert_eq!(models(&rig), [model]);
        rig.answer(&text("done"));
        assert_eq!(rig.count_records(|h| matches!(h, Head::MeshSought { .. })), 0);
    }
}

#[test]
fn a_failure_of_the_mesh_sends_the_round_to_auto_once_and_counts_it_once() {
    let mut rig = Rig::with(|o| {
        o.settings.model = "auto".into();
        o.settings.prefer_mesh_for_auto = true;
        o.settings.max_rounds = 1;
    });
    rig.prompt("go");
    mesh(&mut rig, 1, true);
    rig.fail(status(502, "Bad Gateway"), &failure("moa_failure"));
    assert_eq!(models(&rig), ["mesh", "auto"], "no retry, no second search");
    assert_eq!(failures(&rig), 1);
    rig.fail(status(502, "Bad Gateway"), &failure("moa_failure"));
    assert_eq!(models(&rig), ["mesh", "auto", "auto"], "auto itself is tried again as any model is");
    rig.answer(&text("done"));
    assert_eq!(rig.last_line()["result"]["stopReason"], "end_turn");
    assert_eq!(failures(&rig), 1);
}

#[test]
fn other_failures_of_the_mesh_are_tried_again_as_always() {
    let mut rig = auto();
    rig.prompt("go");
    mesh(&mut rig, 1, true);
    rig.fail(status(503, "Service Unavailable"), &failure("busy"));
    assert_eq!(models(&rig), ["mesh", "mesh"]);
    assert_eq!(failures(&rig), 0);
    rig.cancel();
}

#[test]
fn a_mesh_that_was_chosen_by_name_fails_at_once() {
    let mut rig = Rig::with(|o| o.settings.model = "mesh".into());
    rig.prompt("go");
    let body = failure("moa_failure");
    rig.fail(status(502, "Bad Gateway"), &body);
    assert_eq!(rig.asks.len(), 1);
    assert_eq!(rig.last_line()["error"]["message"], format!("llm: (mesh) 502 Bad Gateway: {body}"));
}

#[test]
fn calls_written_as_text_are_asked_again_of_auto_and_stay_billed() {
    let mut rig = auto();
    rig.prompt("go");
    mesh(&mut rig, 1, true);
    rig.told();
    rig.answer(&costing(text("<tool_call>{}"), 10, 5));
    assert_eq!(rig.told(), ["usage 10+5 total -"], "the text is not for the client");
    rig.answer(&costing(text("<tool_call>{}"), 3, 1));
    assert_eq!(models(&rig), ["mesh", "auto"]);
    assert_eq!(rig.told()[1], "message <tool_call>{}", "the second answer is final");
    assert_eq!(rig.session.tally().input, Some(13));
    assert_eq!(rig.history(), ["user go", "assistant <tool_call>{}"]);
}

#[test]
fn a_cancel_does_not_wait_for_the_search_and_its_late_result_means_nothing() {
    let mut rig = auto();
    rig.prompt("go");
    rig.cancel();
    assert_eq!(rig.last_line()["result"]["stopReason"], "cancelled");
    assert!(!rig.input(Input::MeshAnswered { asked: 1, available: true, list: vec![] }));
    rig.prompt("again");
    mesh(&mut rig, 1, false);
    rig.answer(&text("done"));
}

#[test]
fn a_steer_that_comes_during_the_search_is_in_the_request() {
    let mut rig = auto();
    rig.prompt("go");
    rig.steer("run_1", "in French");
    mesh(&mut rig, 1, true);
    assert!(rig.messages().iter().any(|message| message["content"] == "in French"));
    rig.answer(&text("fini"));
}
