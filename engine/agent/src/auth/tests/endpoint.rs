//! What a model's endpoint does with tokens.

use async_std::task::block_on;
use waxlog_core::record::Failure;
use waxlog_core::rope::Rope;
use waxlog_core::session::Input;

use super::*;
use crate::config::{Config, ConfigError, Environment};
use crate::endpoint::{self, Endpoint};

fn config(host: &str, more: &[(&str, &str)]) -> Config {
    let own = [
        ("BUZZ_AGENT_PROVIDER", "databricks"),
        ("DATABRICKS_HOST", host),
        ("DATABRICKS_MODEL", "m"),
        ("WAXLOG_HOME", "/nowhere"),
    ];
    let env: Environment = own.iter().chain(more).copied().collect();
    Config::read(&env).expect("a config")
}

fn endpoint(rig: &Rig) -> Endpoint {
    let client = ModelClient::new(PATIENCE).expect("a client");
    Endpoint::new(&config(&rig.server.url(), &[]), client, rig.source())
}

fn post(endpoint: &Endpoint, asked: u64) -> Input {
    let sent = block_on(endpoint.post(asked, "/m", &Rope::default()));
    endpoint::input(asked, sent, 0, &Scrubber::default())
}

/// The tokens that the model's path was shown.
fn shown_tokens(rig: &Rig) -> Vec<String> {
    let asked = rig.requests().into_iter().filter(|request| request.path == "/m");
    asked.map(|request| request.header("authorization").expect("a token").to_owned()).collect()
}

#[test]
fn an_attempt_after_a_refused_token_shows_a_new_one() {
    let rig = Rig::with(|url| {
        vec![Answer::status(401, "expired"), service(url), grant("new", Some("r2")), Answer::json("{}")]
    });
    rig.store("old", Some("r1"), None);
    let endpoint = endpoint(&rig);
    assert!(matches!(
        post(&endpoint, 1),
        Input::AttemptFailed { failure: Failure::Status { status: 401, .. }, .. }
    ));
    assert!(matches!(post(&endpoint, 1), Input::Answered { .. }));
    assert_eq!(shown_tokens(&rig), ["Bearer old", "Bearer new"]);
}

#[test]
fn a_token_that_was_refused_for_one_request_is_good_for_the_next() {
    let rig = Rig::new(vec![Answer::status(403, "not this model"), Answer::json("{}")]);
    rig.store("kept", Some("r1"), None);
    let (endpoint, other) = (endpoint(&rig), endpoint(&rig).for_session());
    post(&endpoint, 1);
    assert!(matches!(post(&endpoint, 2), Input::Answered { .. }));
    assert!(matches!(post(&other, 1), Input::Answered { .. }), "another session counts for itself");
    assert_eq!(shown_tokens(&rig), ["Bearer kept"; 3]);
}

#[test]
fn a_token_that_cannot_be_renewed_fails_the_attempt_as_auth() {
    let rig = Rig::new(vec![Answer::status(401, "expired")]);
    rig.store("old", None, None);
    let endpoint = endpoint(&rig);
    post(&endpoint, 1);
    let Input::AttemptFailed { failure: Failure::Auth { text }, body, .. } = post(&endpoint, 1) else {
        panic!("the attempt should fail as auth");
    };
    assert!(text.starts_with("not logged in to ") && body.is_empty(), "{text}");
    assert_eq!(shown_tokens(&rig).len(), 1);
}

#[test]
fn a_fixed_token_is_shown_again() {
    let server = ModelServer::start(vec![Answer::status(401, "no")]).expect("a port");
    let config = config(&server.url(), &[("DATABRICKS_TOKEN", "key")]);
    let client = ModelClient::new(PATIENCE).expect("a client");
    let tokens = TokenSource::of(&config.provider, &Environment::default(), &client, &Scrubber::default());
    let endpoint = Endpoint::new(&config, client, tokens.expect("the key"));
    post(&endpoint, 1);
    post(&endpoint, 1);
    let shown: Vec<_> =
        server.requests().iter().filter_map(|r| r.header("authorization").map(str::to_owned)).collect();
    assert_eq!(shown, ["Bearer key", "Bearer key"]);
}

#[test]
fn a_login_needs_a_home() {
    let config = config("http://127.0.0.1:1", &[]);
    let client = ModelClient::new(PATIENCE).expect("a client");
    for env in [Environment::default(), [("HOME", " ")].into_iter().collect()] {
        let error =
            TokenSource::of(&config.provider, &env, &client, &Scrubber::default()).expect_err("no home");
        assert_eq!(error, ConfigError::NoHomeForLogin { key_variable: "DATABRICKS_TOKEN" });
        assert!(error.to_string().starts_with("config: HOME required"), "{error}");
    }
}
