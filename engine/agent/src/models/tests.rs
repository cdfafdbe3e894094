//! The list of models against a scripted workspace.

use async_std::task::block_on;
use serde_json::json;
use waxlog_scripted::model_server::{Answer, ModelServer};

use super::*;
use crate::config::Environment;

const PATIENCE: Duration = Duration::from_secs(10);

fn list_of(provider: &str, model: &str, host: &str) -> ModelList {
    let env: Environment = [
        ("BUZZ_AGENT_PROVIDER", provider),
        ("DATABRICKS_HOST", host),
        ("ANTHROPIC_API_KEY", "key"),
        ("BUZZ_AGENT_MODEL", model),
        ("WAXLOG_HOME", "/nowhere"),
    ]
    .into_iter()
    .collect();
    let config = Config::read(&env).expect("a config");
    let client = ModelClient::new(PATIENCE).expect("a client");
    ModelList::new(&config, client, TokenSource::fixed(Secret::new("key".to_owned())))
}

fn serve(answers: Vec<Answer>) -> ModelServer {
    ModelServer::start(answers).expect("a port")
}

fn paths(server: &ModelServer) -> Vec<String> {
    server.requests().iter().map(|request| format!("{} {}", request.method, request.path)).collect()
}

fn page(names: &[&str], next: &str) -> Answer {
    let endpoints: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
    Answer::json(json!({"endpoints": endpoints, "next_page_token": next}).to_string())
}

#[test]
fn other_providers_offer_the_configured_model_and_ask_nobody() {
    assert_eq!(block_on(list_of("anthropic", "claude-x", "http://127.0.0.1:1").list()), ["claude-x"]);
}

#[test]
fn a_workspace_is_asked_once_it_has_answered() {
    let server = serve(vec![
        Answer::status(503, "waking up"),
        page(&["b", "a"], ""),
        Answer::status(503, "never asked"),
    ]);
    let list = list_of("databricks", "m", &server.url());
    assert_eq!(block_on(list.list()), ["m"], "a failure offers the configured model");
    assert_eq!(block_on(list.clone().list()), ["b", "a"]);
    assert_eq!(block_on(list.list()), ["b", "a"]);
    assert_eq!(paths(&server), ["GET /api/2.0/serving-endpoints"; 2]);
    let request = &server.requests()[0];
    assert_eq!((request.header("authorization"), request.body.len()), (Some("Bearer key"), 0));
    assert_eq!((request.header("content-length"), request.header("transfer-encoding")), (None, None));
}

#[test]
fn an_empty_list_of_serving_endpoints_counts() {
    let server = serve(vec![page(&[], "")]);
    let list = list_of("databricks", "m", &server.url());
    assert!(block_on(list.list()).is_empty() && block_on(list.list()).is_empty());
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_gateway_is_read_page_by_page() {
    let server = serve(vec![page(&["c"], "t/1 +"), page(&["a", "bge-x"], "t2"), page(&["b"], "t2")]);
    assert_eq!(block_on(list_of("databricks_v2", "m", &server.url()).list()), ["a", "b", "c"]);
    let first = "GET /api/ai-gateway/v2/endpoints?page_size=100";
    let next = |token| format!("{first}&page_token={token}");
    assert_eq!(paths(&server), [first.to_owned(), next("t%2F1%20%2B"), next("t2")]);
}

#[test]
fn a_gateway_without_end_is_left_after_twenty_pages() {
    let pages = (0..30).map(|n| page(&[&format!("m{n:02}")], &format!("t{n}"))).collect();
    let server = serve(pages);
    let models = block_on(list_of("databricks_v2", "m", &server.url()).list());
    assert_eq!((models.len(), server.requests().len()), (PAGES_MAX, PAGES_MAX));
}

#[test]
fn a_gateway_that_offers_nothing_has_the_known_models() {
    let server = serve(vec![page(&["text-embedding"], "")]);
    let list = list_of("databricks_v2", "m", &server.url());
    assert_eq!(block_on(list.list()), KNOWN_GATEWAY_MODELS);
}

#[test]
fn a_gateway_that_fails_has_the_configured_model_first() {
    let server = serve(vec![Answer::json("{}")]);
    let fallback = |model| block_on(list_of("databricks_v2", model, &server.url()).list());
    let [gpt, claude] = KNOWN_GATEWAY_MODELS;
    assert_eq!(fallback("mine"), ["mine", gpt, claude]);
    assert_eq!(fallback("  mine "), ["mine", gpt, claude]);
    assert_eq!(fallback(claude), [claude, gpt]);
    let list = list_of("databricks_v2", "m", &server.url());
    let blank = ModelList { configured: " ".to_owned(), ..list };
    assert_eq!(blank.fallback(), [gpt, claude]);
}

#[test]
fn a_failure_says_what_came_instead() {
    let ask = |answer| {
        let server = serve(vec![answer]);
        let error = block_on(list_of("databricks", "m", &server.url()).ask()).expect_err("no list");
        error.to_string().replace(&server.url(), "")
    };
    assert_eq!(ask(Answer::json("{}")), "/api/2.0/serving-endpoints: missing 'endpoints' array");
    assert_eq!(ask(Answer::status(401, "no")), "/api/2.0/serving-endpoints answered 401 Unauthorized");
    assert!(ask(Answer::drop_connection()).starts_with("request to /api/2.0/serving-endpoints: "));
}

#[test]
fn a_silent_workspace_does_not_hold_a_session_up() {
    let server = serve(vec![Answer::hang()]);
    let list =
        ModelList { patience: Duration::from_millis(150), ..list_of("databricks", "m", &server.url()) };
    assert_eq!(block_on(list.list()), ["m"]);
    assert!(server.wait_abandoned(0, PATIENCE), "the request is taken back");
}
