//! `WAXLOG_ASK_PERMISSION`: the client is asked before a tool runs.

use serde_json::{json, Value};

use crate::agent::Agent;
use crate::answers::{slow_and_fast, Cost, Dialect, ModelCall};
use crate::stage::Stage;

const ASKING: [(&str, &str); 1] = [("WAXLOG_ASK_PERMISSION", "1")];

/// A model that wants both tools, and then says what it thinks of the results.
fn stage() -> Stage {
    let calls = [ModelCall::new("s", "tools__slow"), ModelCall::new("f", "tools__fast")];
    let answers = vec![
        Dialect::Chat.answer("Two calls.", &calls, Cost::number(1)),
        Dialect::Chat.answer("Then not.", &[], Cost::number(2)),
    ];
    Stage::new(Dialect::Chat, answers)
}

/// The next question: its id, and the call that it is about.
fn question(agent: &mut Agent) -> (Value, String) {
    agent.wait(|line| {
        let call = line["params"]["toolCall"]["toolCallId"].as_str()?;
        (line["method"] == "session/request_permission").then(|| (line["id"].clone(), call.to_owned()))
    })
}

fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

#[test]
fn a_refused_call_is_not_run_an_allowed_one_is_and_both_are_in_the_log() {
    let stage = stage();
    let mut agent = stage.agent_with(&ASKING);
    let session = agent.open(&stage.session(&slow_and_fast()));
    let prompt = agent.prompt(&session, "Call both tools.");
    for (call, option) in [("s", "reject_once"), ("f", "allow_once")] {
        let (id, about) = question(&mut agent);
        assert_eq!(about, call);
        agent.respond(&id, &selected(option));
    }
    assert_eq!(agent.answer(prompt)["result"]["stopReason"], "end_turn");
    agent.close();
    let request = String::from_utf8(stage.model.requests()[1].body.clone()).expect("utf-8");
    assert!(request.contains("not run: the user refused this call"), "{request}");
    let started = std::fs::read_to_string(stage.path("script.log")).expect("the server's log");
    assert!(started.contains("fast") && !started.contains("slow"), "{started}");
    let shown = stage.run(&["log", "show", &session]).ok().out;
    assert!(shown.contains("permission_asked") && shown.contains("call 0: refused"), "{shown}");
    stage.run(&["replay"]).ok();
    stage.run(&["log", "verify"]).ok();
}

#[test]
fn a_cancel_ends_a_turn_that_waits_for_the_clients_word() {
    let stage = stage();
    let mut agent = stage.agent_with(&ASKING);
    let session = agent.open(&stage.session(&slow_and_fast()));
    let prompt = agent.prompt(&session, "Call both tools.");
    let (id, _) = question(&mut agent);
    agent.notify("session/cancel", &json!({"sessionId": session}));
    agent.respond(&id, &json!({"outcome": {"outcome": "cancelled"}}));
    assert_eq!(agent.answer(prompt)["result"]["stopReason"], "cancelled");
    assert_eq!(agent.turn(&session, "Never mind."), "end_turn");
    agent.close();
    stage.run(&["replay"]).ok();
}

#[test]
fn a_kill_while_the_client_is_asked_leaves_a_turn_that_is_recovered() {
    let stage = stage();
    let mut agent = stage.agent_with(&ASKING);
    let session = agent.open(&stage.session(&slow_and_fast()));
    agent.prompt(&session, "Call both tools.");
    question(&mut agent);
    agent.kill();
    let mut agent = stage.agent_with(&ASKING);
    let mut params = stage.session(&slow_and_fast());
    params["sessionId"] = json!(session);
    agent.ask("session/load", &params);
    assert_eq!(agent.turn(&session, "Go on."), "end_turn");
    agent.close();
    let request = String::from_utf8(stage.model.requests()[1].body.clone()).expect("utf-8");
    assert_eq!(request.matches("effects unknown").count(), 2, "{request}");
    stage.run(&["replay"]).ok();
}

#[test]
fn the_variable_is_a_flag_like_the_others() {
    let stage = Stage::new(Dialect::Chat, Vec::new());
    let output = stage.agent_command().env("WAXLOG_ASK_PERMISSION", "yes").output().expect("runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("config: WAXLOG_ASK_PERMISSION: "));
}
