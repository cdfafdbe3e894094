//! What it takes for the servers of a session to come up.

use std::time::Instant;

use super::super::*;
use super::stage::*;
use crate::config::Environment;
use crate::secret::Secret;
use async_std::task;
use serde_json::json;
use std::time::Duration;

const SHORT: Duration = Duration::from_secs(1);

#[test]
fn the_handshake_is_said_in_these_frames() {
    let stage = Stage::new();
    let server = stage.server(json!([{ "name": "say" }]));
    assert_eq!(answer(&call(&server, "say")), "ok");
    let wanted = [
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "waxlog", "version": env!("CARGO_PKG_VERSION") },
        } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {
            "_meta": { "progressToken": 0 },
        } }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "_meta": { "progressToken": 1 }, "name": "say", "arguments": {},
        } }),
    ];
    assert_eq!(stage.received("s"), wanted);
}

#[test]
fn the_catalogue_holds_all_pages_of_all_servers_in_order() {
    let stage = Stage::new();
    let tools = json!([{ "name": "c" }, { "name": "a" }, { "name": "_Stop" }]);
    let servers = stage
        .start(vec![
            stage.spec("two", json!({ "tools": tools, "pages": 2 })),
            stage.spec("one", json!({ "tools": [{ "name": "a" }] })),
        ])
        .expect("starts");
    let names: Vec<_> = servers.catalogue.tools.iter().map(|t| t.qualified.as_str()).collect();
    assert_eq!(names, ["two__c", "two__a", "two___Stop", "one__a"]);
    let tool = servers.catalogue.find("one__a").expect("known");
    assert_eq!(servers.list[tool.server].name(), "one");
}

#[test]
fn a_server_sees_the_allowed_variables_and_its_own() {
    let mut stage = Stage::new();
    stage.settings.env = Environment::from_iter([
        ("PATH", "/usr/bin:/bin"),
        ("SSH_AUTH_SOCK", "/agent"),
        ("https_proxy", "http://proxy"),
        ("LANG", ""),
        ("BUZZ_AUTH_TAG", "inherited"),
        ("ANTHROPIC_API_KEY", "sk-canary"),
        ("BUZZ_AGENT_PROVIDER", "anthropic"),
        ("USER", "u"),
    ]);
    let mut spec = stage.shell("s", "env >env; cat >/dev/null");
    let own = |name: &str, value: &str| (name.to_owned(), Secret::new(value.to_owned()));
    spec.env = vec![own("K", "first"), own("BUZZ_AUTH_TAG", "own"), own("K", "second")];
    stage.settings.init_timeout = Duration::from_millis(300);
    stage.start(vec![spec]).expect_err("a server that says nothing");
    let text = std::fs::read_to_string(stage.folder().join("env")).expect("written");
    let mut lines: Vec<_> = text.lines().collect();
    // What a shell sets for itself.
    lines.retain(|line| !["PWD=", "SHLVL=", "_=", "OLDPWD="].iter().any(|own| line.starts_with(own)));
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "BUZZ_AUTH_TAG=own",
            "K=second",
            "LANG=",
            "PATH=/usr/bin:/bin",
            "SSH_AUTH_SOCK=/agent",
            "https_proxy=http://proxy",
        ]
    );
}

#[test]
fn a_server_runs_in_the_folder_of_its_session_and_leads_a_group() {
    let stage = Stage::new();
    let _server = stage.server(json!([]));
    let pid = stage.starts("s")[0];
    let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).expect("a folder");
    assert_eq!(cwd, stage.folder().canonicalize().expect("a folder"));
    assert_eq!(stat(pid)[2], pid.to_string());
}

#[test]
fn c49_a_silent_server_is_given_up_after_its_time() {
    for (script, stage_name) in
        [(json!({ "hang_initialize": true }), "init"), (json!({ "hang_list": true }), "list_tools")]
    {
        let mut stage = Stage::new();
        stage.settings.init_timeout = SHORT;
        let begun = Instant::now();
        let error = stage.start(vec![stage.spec("mute", script)]).expect_err("silent");
        assert!(begun.elapsed() < PATIENCE);
        let text = error.to_string();
        let wanted = format!("mcp: {stage_name} mute: timeout after 1s");
        assert!(text.starts_with(&wanted), "{text}");
        gone(stage.starts("mute")[0]);
    }
}

#[test]
fn a_server_that_does_not_come_up_says_why() {
    let stage = Stage::new();
    let answer = |line: &str| format!("echo $$ >pid; read -r line; echo '{line}'; cat >/dev/null");
    for (program, words) in [
        (answer(r#"{"id":0,"error":{"code":-1,"message":"not today"}}"#), "error -1: not today"),
        (answer(r#"{"id":7,"result":{}}"#), "an id that was never asked"),
        ("echo $$ >pid; exit 3".to_owned(), "stdout closed"),
    ] {
        let error = stage.start(vec![stage.shell("bad", &program)]).expect_err(words);
        let text = error.to_string();
        assert!(text.starts_with("mcp: init bad: ") && text.contains(words), "{text}");
        let pid = std::fs::read_to_string(stage.folder().join("pid")).expect("written");
        gone(pid.trim().parse().expect("a number"));
    }
    let mut missing = stage.shell("bad", "");
    missing.command = "/nowhere/server".to_owned();
    let text = stage.start(vec![missing]).expect_err("no program").to_string();
    assert!(text.starts_with("mcp: spawn bad: ") && text.contains("/nowhere/server"), "{text}");
}

#[test]
fn an_old_protocol_version_is_fine() {
    let stage = Stage::new();
    let old = "read -r line; echo '{\"id\":0,\"result\":{\"protocolVersion\":\"2024-11-05\"}}'; \
               read -r line; read -r line; echo '{\"id\":1,\"result\":{\"tools\":[]}}'; cat >/dev/null";
    stage.start(vec![stage.shell("old", old)]).expect("starts");
}

#[test]
fn when_one_server_fails_the_others_are_killed() {
    let stage = Stage::new();
    let good = stage.spec("good", json!({ "tools": [{ "name": "a" }] }));
    let text = stage.start(vec![good, stage.shell("bad", "exit 1")]).expect_err("one fails");
    assert!(text.to_string().contains("bad"), "{text}");
    gone(stage.starts("good")[0]);
}

#[test]
fn too_many_servers_are_refused_before_any_starts() {
    let stage = Stage::new();
    let specs = (0..17).map(|n| stage.spec(&format!("s{n}"), json!({}))).collect();
    let text = stage.start(specs).expect_err("too many").to_string();
    assert!(text.starts_with("mcp: too many MCP servers"), "{text}");
    assert!(stage.starts("s0").is_empty());
}

#[test]
fn names_and_tools_are_checked_as_each_server_comes_up() {
    let stage = Stage::new();
    let tools: Vec<_> = (0..129).map(|n| json!({ "name": format!("t{n}") })).collect();
    for (specs, words) in [
        (vec![stage.spec("a__b", json!({}))], "invalid MCP server name"),
        (vec![stage.spec("two", json!({})), stage.spec("two", json!({}))], "duplicate MCP server"),
        (vec![stage.spec("x", json!({ "tools": [{ "name": "x y" }] }))], "invalid tool name"),
        (vec![stage.spec("many", json!({ "tools": tools, "pages": 10 }))], "too many tools"),
    ] {
        let text = stage.start(specs).expect_err(words).to_string();
        assert!(text.starts_with(&format!("mcp: {words}")), "{text}");
    }
    assert!(stage.starts("a__b").is_empty());
    for started in ["two", "x", "many"] {
        gone(stage.starts(started)[0]);
    }
}

#[test]
fn a_start_that_is_dropped_leaves_no_process() {
    let stage = Stage::new();
    let specs = vec![stage.spec("mute", json!({ "hang_initialize": true }))];
    let settings = stage.settings.clone();
    let starting = task::spawn(async move { Servers::start(specs, &settings).await.map(drop) });
    let pid = eventually("a start", || stage.starts("mute").first().copied());
    task::block_on(starting.cancel());
    gone(pid);
}
