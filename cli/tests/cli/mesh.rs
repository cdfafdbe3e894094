//! `BUZZ_AGENT_PREFER_MESH_FOR_AUTO`: the endpoint's list of models is looked at before `auto` is asked.

use serde_json::{json, Value};
use waxlog_scripted::model_server::Answer;

use crate::answers::{slow_and_fast, Cost, Dialect, ModelCall};
use crate::stage::Stage;

#[test]
fn the_list_is_asked_for_once_recorded_and_the_model_named_in_each_request() {
    let models = json!({"data": [{"id": "mesh"}, {"id": "a"}, {"id": "b"}]}).to_string();
    let calls = [ModelCall::new("f", "tools__fast")];
    let answers = vec![
        Answer::json(models.clone()),
        Dialect::Chat.answer("One call.", &calls, Cost::number(1)),
        Dialect::Chat.answer("Done.", &[], Cost::number(2)),
    ];
    let stage = Stage::new(Dialect::Chat, answers);
    let mut agent =
        stage.agent_with(&[("BUZZ_AGENT_PREFER_MESH_FOR_AUTO", "1"), ("BUZZ_AGENT_MODEL", "auto")]);
    let session = agent.open(&stage.session(&slow_and_fast()));
    assert_eq!(agent.turn(&session, "Call the fast tool."), "end_turn");
    agent.close();
    let requests = stage.model.requests();
    let asked: Vec<String> = requests.iter().map(|r| format!("{} {}", r.method, r.path)).collect();
    assert_eq!(asked, ["GET /models", "POST /chat/completions", "POST /chat/completions"]);
    for request in &requests[1..] {
        let body: Value = serde_json::from_slice(&request.body).expect("json");
        assert_eq!(body["model"], "auto", "one look is not enough");
    }
    let shown = stage.run(&["log", "show", &session]).ok().out;
    assert!(shown.contains("mesh_answered") && shown.contains("no mesh"), "{shown}");
    let exported = stage.run(&["log", "export"]).ok().out;
    assert!(exported.contains(&json!(models).to_string()), "the list is not in the log");
    stage.run(&["replay"]).ok();
}
