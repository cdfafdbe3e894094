//! Sessions that come back: after a close, after the agent, after a kill in mid turn.

use serde_json::{json, Value};
use waxlog_core::record::{Head, Record};

use crate::agent::Agent;
use crate::answers::{script, slow_and_fast, tool, Cost, Dialect, ModelCall};
use crate::stage::Stage;
use crate::wire::expect_paired;

use waxlog_scripted::mcp_server::CallScript;

/// Asks for `method` and gives the updates that came before the answer, with the answer.
fn told(agent: &mut Agent, method: &str, params: &Value) -> (Vec<Value>, Value) {
    let id = agent.send(method, params);
    let mut updates = Vec::new();
    loop {
        let line = agent.wait(|line| Some(line.clone()));
        if line["id"] == id {
            return (updates, line);
        }
        updates.push(line["params"]["update"].clone());
    }
}

fn loading(stage: &Stage, session: &str) -> Value {
    let mut params = stage.session(&slow_and_fast());
    params["sessionId"] = json!(session);
    params
}

#[test]
fn c63_a_session_killed_in_mid_call_is_loaded_and_goes_on_with_its_history() {
    let dialect = Dialect::Chat;
    let hang = script(vec![tool("hang", vec![CallScript { hang: true, ..CallScript::default() }])]);
    let calls = [ModelCall::new("h", "tools__hang")];
    let stage = Stage::new(
        dialect,
        vec![
            dialect.answer("Working.", &calls, Cost::number(1)),
            dialect.answer("Went on.", &[], Cost::number(2)),
        ],
    );
    let mut agent = stage.agent();
    let session = agent.open(&stage.session(&hang));
    agent.prompt(&session, "First.");
    agent.until_running("h");
    agent.kill();

    let mut agent = stage.agent();
    let (updates, answer) = told(&mut agent, "session/load", &loading(&stage, &session));
    assert!(answer.get("error").is_none(), "{answer}");
    let kinds: Vec<&str> = updates.iter().filter_map(|u| u["sessionUpdate"].as_str()).collect();
    assert_eq!(kinds, ["user_message_chunk", "agent_message_chunk", "tool_call"]);
    assert_eq!(updates[0]["content"]["text"], "First.");
    let result = updates[2]["content"][0]["content"]["text"].as_str().expect("a result");
    assert!(result.contains("effects unknown") && !result.contains("[Reflect]"), "{result}");

    assert_eq!(agent.turn(&session, "Second."), "end_turn");
    agent.close();
    let request = stage.model.requests()[1].body.clone();
    expect_paired(dialect, &request);
    let sent = String::from_utf8(request).expect("utf-8");
    assert!(sent.contains("First.") && sent.contains("Working.") && sent.contains("Second."), "{sent}");
    stage.run(&["replay"]).ok();
    stage.run(&["log", "verify"]).ok();
}

#[test]
fn a_resumed_session_is_not_told_again() {
    let dialect = Dialect::Anthropic;
    let answers = (1..=2).map(|n| dialect.answer("Yes.", &[], Cost::number(n))).collect();
    let stage = Stage::new(dialect, answers);
    let mut agent = stage.agent();
    let session = agent.open(&stage.session(&slow_and_fast()));
    agent.turn(&session, "First.");
    agent.close();
    let mut agent = stage.agent();
    let (updates, answer) = told(&mut agent, "session/resume", &loading(&stage, &session));
    assert!(updates.is_empty() && answer.get("error").is_none(), "{updates:?} {answer}");
    agent.turn(&session, "Second.");
    let request: Value = serde_json::from_slice(&stage.model.requests()[1].body).expect("json");
    assert_eq!(request["messages"].as_array().expect("messages").len(), 3);
}

#[test]
fn a_closed_session_is_gone_until_it_is_loaded() {
    let dialect = Dialect::Chat;
    let answers = (1..=2).map(|n| dialect.answer("Yes.", &[], Cost::number(n))).collect();
    let stage = Stage::new(dialect, answers);
    let mut agent = stage.agent();
    let session = agent.open(&stage.session(&slow_and_fast()));
    agent.turn(&session, "First.");
    let named = json!({"sessionId": session});
    let again = agent.send("session/load", &loading(&stage, &session));
    assert!(agent.answer(again)["error"]["message"].as_str().expect("text").contains("open already"));
    assert_eq!(agent.ask("session/close", &named), json!({}));
    let refused = agent.prompt(&session, "Nobody there.");
    assert_eq!(agent.answer(refused)["error"]["message"], "session/prompt: unknown session");
    agent.ask("session/load", &loading(&stage, &session));
    assert_eq!(agent.turn(&session, "Second."), "end_turn");
    let log = agent.close();
    assert!(!log.contains("ERROR"), "{log}");
}

#[test]
fn a_close_in_mid_turn_ends_the_turn_first() {
    let dialect = Dialect::Chat;
    let hang = script(vec![tool("hang", vec![CallScript { hang: true, ..CallScript::default() }])]);
    let stage =
        Stage::new(dialect, vec![dialect.answer("", &[ModelCall::new("h", "tools__hang")], Cost::number(1))]);
    let mut agent = stage.agent();
    let session = agent.open(&stage.session(&hang));
    let prompt = agent.prompt(&session, "First.");
    agent.until_running("h");
    let close = agent.send("session/close", &json!({"sessionId": session}));
    assert_eq!(agent.answer(prompt)["result"]["stopReason"], "cancelled");
    assert_eq!(agent.answer(close)["result"], json!({}));
    agent.close();
    let records = stage.records(&session);
    assert!(matches!(records.last().map(|r| &r.head), Some(Head::SessionClosed { .. })));
    stage.run(&["replay"]).ok();
}

#[test]
fn sessions_are_listed_with_folder_title_and_time() {
    let dialect = Dialect::Chat;
    let answers = (1..=2).map(|n| dialect.answer("Yes.", &[], Cost::number(n))).collect();
    let stage = Stage::new(dialect, answers);
    let mut agent = stage.agent();
    let params = stage.session(&slow_and_fast());
    let first = agent.open(&params);
    agent.turn(&first, "What is the title?");
    let second = agent.open(&params);
    agent.turn(&second, "And here?");
    let list = agent.ask("session/list", &json!({}));
    let ids: Vec<&Value> =
        list["sessions"].as_array().expect("a list").iter().map(|s| &s["sessionId"]).collect();
    assert_eq!(ids, [&json!(second), &json!(first)]);
    assert_eq!(list["sessions"][1]["title"], "What is the title?");
    assert_eq!(list["sessions"][1]["cwd"], params["cwd"]);
    assert!(list["sessions"][1]["updatedAt"].as_str().expect("a time").ends_with('Z'));
    assert!(list.get("nextCursor").is_none());
    assert_eq!(agent.ask("session/list", &json!({"cwd": "/elsewhere"}))["sessions"], json!([]));
    let bad = agent.send("session/list", &json!({"cursor": "nonsense"}));
    assert_eq!(agent.answer(bad)["error"]["code"], -32602);
}

#[test]
fn an_unknown_session_cannot_be_loaded_and_says_where_it_was_looked_for() {
    let stage = Stage::new(Dialect::Chat, Vec::new());
    let mut agent = stage.agent();
    let id = agent.send("session/load", &loading(&stage, "ses_0000000000000000"));
    let error = agent.answer(id)["error"].clone();
    assert_eq!(error["code"], -32602);
    assert!(error["message"].as_str().expect("text").contains("is not in this agent's log"), "{error}");
}

#[test]
fn options_choose_model_and_effort_for_later_prompts() {
    let dialect = Dialect::Chat;
    let answers = (1..=2).map(|n| dialect.answer("Yes.", &[], Cost::number(n))).collect();
    let stage = Stage::new(dialect, answers);
    let mut agent = stage.agent_with(&[("BUZZ_AGENT_THINKING_EFFORT", "low")]);
    let session = agent.open(&stage.session(&slow_and_fast()));
    agent.turn(&session, "First.");
    for (option, value) in [("model", "gpt-5.1"), ("thought_level", "high")] {
        let set = json!({"sessionId": session, "configId": option, "value": value});
        let answer = agent.ask("session/set_config_option", &set);
        let options = answer["configOptions"].as_array().expect("options");
        let chosen = options.iter().find(|o| o["id"] == option).expect("the option");
        assert_eq!(chosen["currentValue"], value);
    }
    let odd = json!({"sessionId": session, "configId": "mode", "value": "x"});
    let refused = agent.send("session/set_config_option", &odd);
    assert_eq!(agent.answer(refused)["error"]["code"], -32602);
    agent.turn(&session, "Second.");
    agent.close();
    let bodies: Vec<Value> =
        stage.model.requests().iter().map(|r| serde_json::from_slice(&r.body).expect("json")).collect();
    assert_eq!((&bodies[0]["model"], &bodies[0]["reasoning_effort"]), (&json!("scripted"), &json!("low")));
    assert_eq!((&bodies[1]["model"], &bodies[1]["reasoning_effort"]), (&json!("gpt-5.1"), &json!("high")));
    stage.run(&["replay"]).ok();
}

#[test]
fn hints_and_skills_stand_in_the_first_record_and_a_skill_is_loaded() {
    let dialect = Dialect::Chat;
    let load = ModelCall { id: "l", name: "load_skill", arguments: "{\"name\":\"brew\"}" };
    let answers =
        vec![dialect.answer("", &[load], Cost::number(1)), dialect.answer("Done.", &[], Cost::number(2))];
    let stage = Stage::new(dialect, answers);
    std::fs::create_dir_all(stage.path(".agents/skills/brew")).expect("folders");
    std::fs::write(stage.path("AGENTS.md"), "RULE-77").expect("hints");
    let skill = "---\nname: brew\ndescription: makes tea\n---\nBODY-99\n";
    std::fs::write(stage.path(".agents/skills/brew/SKILL.md"), skill).expect("a skill");
    let mut agent = stage.agent();
    let session = agent.open(&stage.session(&slow_and_fast()));
    agent.turn(&session, "Brew.");
    agent.close();
    let records = stage.records(&session);
    let Record { head: Head::SessionOpened(opened), raw } = &records[0] else { panic!("{:?}", records[0]) };
    let prompt = String::from_utf8_lossy(raw);
    assert!(prompt.contains("RULE-77") && prompt.contains("- brew: makes tea"), "{prompt}");
    assert!(!prompt.contains("BODY-99"));
    assert_eq!((opened.sources.len(), opened.sources[0].bytes), (1, 7));
    let second: Value = serde_json::from_slice(&stage.model.requests()[1].body).expect("json");
    assert!(second.to_string().contains("BODY-99"));
    stage.run(&["replay"]).ok();
}

#[test]
fn a_deleted_session_is_off_the_list_and_comes_back_no_more_but_stays_in_the_log() {
    let dialect = Dialect::Chat;
    let answers = (1..=3).map(|n| dialect.answer("Yes.", &[], Cost::number(n))).collect();
    let stage = Stage::new(dialect, answers);
    let mut agent = stage.agent();
    let params = stage.session(&slow_and_fast());
    let sessions: Vec<String> = (0..3)
        .map(|_| {
            let session = agent.open(&params);
            agent.turn(&session, "Say yes.");
            session
        })
        .collect();
    let listed = |agent: &mut Agent| -> Vec<Value> {
        let list = agent.ask("session/list", &json!({}));
        list["sessions"].as_array().expect("a list").iter().map(|s| s["sessionId"].clone()).collect()
    };
    // One is open, one is closing still, one is unknown.
    agent.send("session/close", &json!({"sessionId": sessions[1]}));
    for session in [&sessions[0], &sessions[1], &"ses_0000000000000000".to_owned(), &sessions[1]] {
        assert_eq!(agent.ask("session/delete", &json!({"sessionId": session})), json!({}), "{session}");
    }
    assert_eq!(listed(&mut agent), [json!(sessions[2])]);
    agent.close();

    let mut agent = stage.agent();
    assert_eq!(listed(&mut agent), [json!(sessions[2])], "also for the next agent");
    for session in &sessions[..2] {
        let load = agent.send("session/load", &loading(&stage, session));
        let text = agent.answer(load)["error"]["message"].as_str().expect("a refusal").to_owned();
        assert!(text.contains("was deleted"), "{text}");
        assert!(matches!(
            stage.records(session).last().map(|record| &record.head),
            Some(Head::SessionDeleted { .. })
        ));
    }
    agent.close();
    stage.run(&["replay"]).ok();
    stage.run(&["log", "verify"]).ok();
}

#[test]
fn a_session_that_is_asked_for_twice_at_once_is_loaded_once() {
    let dialect = Dialect::Chat;
    let answers = (1..=2).map(|n| dialect.answer("Yes.", &[], Cost::number(n))).collect();
    let stage = Stage::new(dialect, answers);
    let mut agent = stage.agent();
    let session = agent.open(&stage.session(&slow_and_fast()));
    agent.turn(&session, "First.");
    agent.close();
    let mut agent = stage.agent();
    let loads = [(); 2].map(|()| agent.send("session/resume", &loading(&stage, &session)));
    // The refusal comes first: nothing has to be started for it.
    let second = agent.answer(loads[1]);
    assert!(second["error"]["message"].as_str().expect("a refusal").contains("is being loaded"), "{second}");
    assert!(agent.answer(loads[0]).get("error").is_none());
    assert_eq!(agent.turn(&session, "Second."), "end_turn");
    agent.close();
    stage.run(&["replay"]).ok();
}
