//! The fixtures of the other wires, and of what holds a turn open: see [`crate::record`].

use serde_json::{json, Value};
use waxlog_scripted::mcp_server::{CallScript, Script};
use waxlog_scripted::model_server::Answer;

use crate::answers::{script, slow_and_fast, tool, Cost, Dialect, ModelCall};
use crate::record::keep;
use crate::stage::Stage;

pub(crate) fn all() {
    responses();
    openrouter();
    databricks();
    databricks_v2();
    handoff();
    objected();
    reminded();
    permission();
    mesh();
}

/// Runs turns with these settings, each of which must end by itself, and keeps the session.
fn turns(stage: &Stage, settings: &[(&str, &str)], tools: &Script, prompts: &[&str], name: &str) {
    let mut agent = stage.agent_with(settings);
    let session = agent.open(&stage.session(tools));
    for prompt in prompts {
        assert_eq!(agent.turn(&session, prompt), "end_turn");
    }
    agent.close();
    keep(stage, &session, name);
}

fn staged(answers: &[Value]) -> Stage {
    Stage::new(Dialect::Chat, answers.iter().map(|answer| Answer::json(answer.to_string())).collect())
}

fn responses() {
    let usage = json!({"input_tokens": 30, "output_tokens": 12, "total_tokens": 42, "input_tokens_details": {"cached_tokens": 8}});
    let answer =
        |output: Value| json!({"id": "resp", "status": "completed", "output": output, "usage": usage});
    let stage = staged(&[
        answer(json!([
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "One call will do."}]},
            {"type": "message", "content": [{"type": "output_text", "text": "I call it."}]},
            {"type": "function_call", "call_id": "c1", "name": "tools__fast", "arguments": "{\"x\":\"1\"}"},
        ])),
        answer(json!([{"type": "message", "content": [{"type": "output_text", "text": "Done."}]}])),
    ]);
    let settings = [("OPENAI_COMPAT_API", "responses")];
    turns(&stage, &settings, &slow_and_fast(), &["Call the fast tool."], "responses");
}

fn openrouter() {
    let details = json!([{"type": "reasoning.text", "text": "One call will do.", "index": 0}]);
    let call = json!({
        "id": "c1", "type": "function", "function": {"name": "tools__fast", "arguments": "{}"},
    });
    let usage = json!({"prompt_tokens": 30, "completion_tokens": 12, "total_tokens": 42});
    let message = |message: Value, finish: &str| json!({"choices": [{"message": message, "finish_reason": finish}], "usage": usage});
    let calling = json!({
        "role": "assistant", "content": "I call it.", "reasoning": "One call will do.",
        "reasoning_details": details, "tool_calls": [call],
    });
    let stage = staged(&[
        message(calling, "tool_calls"),
        message(json!({"role": "assistant", "content": "Done."}), "stop"),
    ]);
    let url = stage.model.url();
    let settings = [
        ("BUZZ_AGENT_PROVIDER", "openrouter"),
        ("OPENROUTER_API_KEY", "test-key"),
        ("OPENROUTER_MODEL", "anthropic/scripted"),
        ("OPENROUTER_BASE_URL", &url),
        ("BUZZ_AGENT_THINKING_EFFORT", "low"),
    ];
    turns(&stage, &settings, &slow_and_fast(), &["Call the fast tool."], "openrouter");
}

/// The two Databricks providers ask for their list of models first.
fn on_databricks(provider: &str, model: &str, answers: &[Value], name: &str) {
    let models = json!({"endpoints": [{"name": model}]});
    let stage = staged(&[&[models], answers].concat());
    let url = stage.model.url();
    let settings = [
        ("BUZZ_AGENT_PROVIDER", provider),
        ("DATABRICKS_HOST", &url),
        ("DATABRICKS_TOKEN", "test-key"),
        ("DATABRICKS_MODEL", model),
    ];
    turns(&stage, &settings, &slow_and_fast(), &["Say good morning."], name);
}

fn databricks() {
    let message = json!({"role": "assistant", "content": "Good morning."});
    let usage = json!({"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12});
    let answer = json!({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage});
    on_databricks("databricks", "scripted", &[answer], "databricks");
}

fn databricks_v2() {
    let content = json!([{"type": "text", "text": "Good morning."}]);
    let usage = json!({"input_tokens": 9, "output_tokens": 3});
    let answer = json!({"content": content, "stop_reason": "end_turn", "usage": usage});
    on_databricks("databricks_v2", "databricks-claude-scripted", &[answer], "databricks-v2-claude");
}

fn handoff() {
    let full = Cost { input: 950, output: 5, cached: 0 };
    let answers = vec![
        Dialect::Chat.answer("Much has been said.", &[], full),
        Dialect::Chat.answer("The task is to count sheep; 12 are counted.", &[], Cost::number(1)),
        Dialect::Chat.answer("Thirteen.", &[], Cost::number(2)),
    ];
    let stage = Stage::new(Dialect::Chat, answers);
    let settings = [("BUZZ_AGENT_MAX_CONTEXT_TOKENS", "1000"), ("BUZZ_AGENT_MAX_OUTPUT_TOKENS", "100")];
    turns(&stage, &settings, &Script::default(), &["Count sheep.", "Go on."], "handoff");
}

fn objected() {
    let says = |text: &str| CallScript { text: Some(text.to_owned()), ..CallScript::default() };
    let hook = tool("_Stop", vec![says("one item is still open"), says("")]);
    let answers = (0..2).map(|n| Dialect::Chat.answer("I am done.", &[], Cost::number(n))).collect();
    let stage = Stage::new(Dialect::Chat, answers);
    turns(&stage, &[("MCP_HOOK_SERVERS", "tools")], &script(vec![hook]), &["Finish the list."], "objected");
}

fn reminded() {
    let send = ModelCall {
        arguments: "{\"command\":\"buzz messages send hello\"}",
        ..ModelCall::new("s", "tools__shell")
    };
    let answers = vec![
        Dialect::Chat.answer("Hello!", &[], Cost::number(0)),
        Dialect::Chat.answer("I send it.", &[send], Cost::number(1)),
        Dialect::Chat.answer("Sent.", &[], Cost::number(2)),
    ];
    let stage = Stage::new(Dialect::Chat, answers);
    let tools = script(vec![tool("shell", Vec::new())]);
    turns(&stage, &[("BUZZ_AGENT_REQUIRE_REPLY", "1")], &tools, &["Say hello to them."], "reminded");
}

fn permission() {
    let calls = [ModelCall::new("s", "tools__slow"), ModelCall::new("f", "tools__fast")];
    let answers = vec![
        Dialect::Chat.answer("Two calls.", &calls, Cost::number(0)),
        Dialect::Chat.answer("One of them was not wanted.", &[], Cost::number(1)),
    ];
    let stage = Stage::new(Dialect::Chat, answers);
    let mut agent = stage.agent_with(&[("WAXLOG_ASK_PERMISSION", "1")]);
    let session = agent.open(&stage.session(&slow_and_fast()));
    let prompt = agent.prompt(&session, "Call both tools.");
    for option in ["reject_once", "allow_always"] {
        let asked =
            |line: &Value| (line["method"] == "session/request_permission").then(|| line["id"].clone());
        let id = agent.wait(asked);
        agent.respond(&id, &json!({"outcome": {"outcome": "selected", "optionId": option}}));
    }
    assert_eq!(agent.answer(prompt)["result"]["stopReason"], "end_turn");
    agent.close();
    keep(&stage, &session, "permission");
}

/// The second prompt comes when the first look at the mesh no longer counts.
fn mesh() {
    let models = json!({"data": [{"id": "mesh"}, {"id": "a"}, {"id": "b"}]}).to_string();
    let failure = json!({"error": {"type": "moa_failure", "message": "no quorum"}}).to_string();
    let answers = vec![
        Answer::json(models.clone()),
        Dialect::Chat.answer("Auto here.", &[], Cost::number(0)),
        Answer::json(models),
        Answer::status(502, failure),
        Dialect::Chat.answer("Auto again.", &[], Cost::number(1)),
    ];
    let stage = Stage::new(Dialect::Chat, answers);
    let settings = [("BUZZ_AGENT_PREFER_MESH_FOR_AUTO", "1"), ("BUZZ_AGENT_MODEL", "auto")];
    let mut agent = stage.agent_with(&settings);
    let session = agent.open(&stage.session(&Script::default()));
    assert_eq!(agent.turn(&session, "Who is there?"), "end_turn");
    std::thread::sleep(std::time::Duration::from_millis(waxlog_core::mesh::PROBE_FRESH_MS));
    assert_eq!(agent.turn(&session, "And now?"), "end_turn");
    agent.close();
    let named = |at: usize| {
        let body: Value = serde_json::from_slice(&stage.model.requests()[at].body).expect("json");
        body["model"].clone()
    };
    assert_eq!([named(1), named(3), named(4)], ["auto", "mesh", "auto"]);
    keep(&stage, &session, "mesh");
}
