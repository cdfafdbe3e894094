//! Logins with a browser: the address, the way back, and what ends the wait.

use std::collections::BTreeMap;

use async_std::task::{self, block_on};
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::Engine;
use futures_lite::future::zip;
use sha2::{Digest, Sha256};
use surf::http::Url;

use super::super::oauth::Browser;
use super::super::AuthError;
use super::*;
use crate::http::{Answer as Answered, Outcome};

/// What a browser makes of the address that it is shown.
struct Shown {
    address: Url,
    query: BTreeMap<String, String>,
}

impl Shown {
    async fn next(rig: &Rig) -> Shown {
        let address = Url::parse(&rig.shown.recv().await.expect("an address")).expect("a URL");
        let query = address.query_pairs().into_owned().collect();
        Shown { address, query }
    }

    /// Goes back with `query`; gives the status and the page.
    async fn back(&self, query: &str) -> (u16, String) {
        let home = self.query["redirect_uri"].replace("localhost", "127.0.0.1");
        let client = ModelClient::new(PATIENCE).expect("a client");
        match client.get(&format!("{home}/{query}"), &[], PATIENCE).await {
            Outcome::Answered(Answered { status, body, .. }) => {
                (status, String::from_utf8(body).expect("text"))
            }
            Outcome::Failed(failure) => panic!("{failure:?}"),
        }
    }
}

#[test]
fn a_login_goes_by_the_browser_and_is_kept() {
    let rig = Rig::with_service(vec![grant("new", Some("r1"))]);
    let source = rig.source();
    let browser = async {
        let shown = Shown::next(&rig).await;
        let state = &shown.query["state"];
        let (status, page) = shown.back(&format!("?code=the%20code&state={state}")).await;
        assert!(status == 200 && page.contains("You are logged in"), "{page}");
        shown
    };
    let (token, shown) = block_on(zip(source.bearer(), browser));
    assert_eq!(token, Ok(secret("new")));
    assert_eq!(rig.stored()["access_token"], "new");

    let names: Vec<_> = shown.address.query_pairs().map(|(name, _)| name.into_owned()).collect();
    let wanted = [
        "response_type",
        "client_id",
        "redirect_uri",
        "scope",
        "state",
        "code_challenge",
        "code_challenge_method",
    ];
    assert_eq!(names, wanted);
    assert_eq!(shown.address.path(), "/oidc/v1/authorize");
    assert_eq!(shown.query["scope"], "all-apis offline_access");
    let sent = form(&rig.requests()[1]);
    let verifier = sent.iter().find(|(name, _)| name == "code_verifier").expect("a verifier").1.clone();
    assert!(verifier.len() >= 43);
    assert_eq!(shown.query["code_challenge"], URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier)));
    let redirect_uri = shown.query["redirect_uri"].as_str();
    let wanted = [
        ("grant_type", "authorization_code"),
        ("code", "the code"),
        ("redirect_uri", redirect_uri),
        ("code_verifier", verifier.as_str()),
        ("client_id", "databricks-cli"),
    ];
    assert_eq!(sent, fields(&wanted));
}

#[test]
fn requests_that_do_not_belong_to_the_login_do_not_end_it() {
    let rig = Rig::with_service(vec![grant("new", None)]);
    let oauth = rig.oauth();
    let browser = async {
        let shown = Shown::next(&rig).await;
        let state = &shown.query["state"];
        for (query, said) in [
            ("?code=c&state=wrong".to_owned(), "state mismatch"),
            (format!("?state={state}"), "The code is missing"),
            ("?error=%3Cb%3E".to_owned(), "&lt;b&gt;"),
            ("favicon.ico".to_owned(), "nothing here"),
        ] {
            let (status, page) = shown.back(&query).await;
            assert!(status >= 400 && page.contains(said), "{query}: {page}");
        }
        shown.back(&format!("?code=c&state={state}")).await
    };
    let (token, (status, _)) = block_on(zip(oauth.token(None, Browser::Allowed), browser));
    assert_eq!((token, status), (Ok(secret("new")), 200));
}

#[test]
fn a_connection_that_says_nothing_does_not_hold_up_the_others() {
    let rig = Rig::with_service(vec![grant("new", None)]);
    let oauth = rig.oauth();
    let browser = async {
        let shown = Shown::next(&rig).await;
        let port = shown.query["redirect_uri"].rsplit(':').next().expect("a port").to_owned();
        let silent = async_std::net::TcpStream::connect(format!("127.0.0.1:{port}")).await;
        shown.back(&format!("?code=c&state={}", shown.query["state"])).await;
        silent
    };
    let (token, silent) = block_on(zip(oauth.token(None, Browser::Allowed), browser));
    assert_eq!(token, Ok(secret("new")));
    assert!(silent.is_ok());
}

#[test]
fn a_refusal_in_the_browser_ends_the_login() {
    let rig = Rig::with_service(Vec::new());
    let oauth = rig.oauth();
    let browser = async {
        let shown = Shown::next(&rig).await;
        shown.back(&format!("?error=access_denied&state={}", shown.query["state"])).await
    };
    let (token, _) = block_on(zip(oauth.token(None, Browser::Allowed), browser));
    let text = token.expect_err("refused").to_string();
    assert!(text.starts_with("the login was refused: access_denied; "), "{text}");
    assert_eq!(rig.requests().len(), 1);
}

#[test]
fn a_login_that_nobody_makes_fails_for_everybody_who_waits() {
    let rig = Rig::with_service(Vec::new());
    let mut oauth = rig.oauth();
    oauth.waits.login = Duration::from_millis(150);
    let oauth = Arc::new(oauth);
    let ask = || {
        let oauth = Arc::clone(&oauth);
        task::spawn(async move { oauth.token(None, Browser::Allowed).await })
    };
    let both = block_on(zip(ask(), ask()));
    let nobody = Err(AuthError::NobodyCame { seconds: 0 });
    assert_eq!(both, (nobody.clone(), nobody));
    assert_eq!(rig.shown.len(), 1, "the user is asked once");
}

#[test]
fn the_port_is_closed_when_the_wait_is_over() {
    let rig = Rig::with_service(Vec::new());
    let mut oauth = rig.oauth();
    oauth.waits.login = Duration::from_millis(50);
    let (_, shown) = block_on(zip(oauth.token(None, Browser::Allowed), Shown::next(&rig)));
    let port = shown.query["redirect_uri"].rsplit(':').next().expect("a port").to_owned();
    assert!(std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_err());
}

#[test]
fn a_spent_refresh_token_leads_to_the_browser_and_an_outage_does_not() {
    let refused = Answer::status(400, r#"{"error":"invalid_grant"}"#);
    let rig = Rig::with(|url| vec![service(url), refused, service(url), grant("new", Some("r2"))]);
    rig.store("old", Some("r1"), Some(NOW_SECS));
    let source = rig.source();
    let browser = async {
        let shown = Shown::next(&rig).await;
        shown.back(&format!("?code=c&state={}", shown.query["state"])).await
    };
    assert_eq!(block_on(zip(source.bearer(), browser)).0, Ok(secret("new")));

    let rig = Rig::new(vec![Answer::drop_connection()]);
    rig.store("old", Some("r1"), Some(NOW_SECS));
    let failed = block_on(rig.source().bearer());
    assert!(matches!(failed, Err(AuthError::Failed { .. })), "{failed:?}");
    assert!(rig.shown.is_empty());
}

#[test]
fn the_command_logs_in_again_whatever_there_is() {
    let rig = Rig::with_service(vec![grant("new", Some("r2"))]);
    rig.store("good", Some("r1"), None);
    let oauth = rig.oauth();
    let browser = async {
        let shown = Shown::next(&rig).await;
        shown.back(&format!("?code=c&state={}", shown.query["state"])).await
    };
    assert_eq!(block_on(zip(oauth.log_in(), browser)).0, Ok(()));
    assert_eq!(rig.stored()["access_token"], "new");
}

#[test]
fn the_command_says_if_its_login_cannot_be_kept() {
    let rig = Rig::with_service(vec![grant("new", Some("r2"))]);
    let oauth = rig.oauth();
    std::fs::create_dir_all(oauth.file().with_extension("json.new")).expect("a folder in the draft's place");
    let browser = async {
        let shown = Shown::next(&rig).await;
        shown.back(&format!("?code=c&state={}", shown.query["state"])).await
    };
    let text = block_on(zip(oauth.log_in(), browser)).0.expect_err("not kept").to_string();
    assert!(text.starts_with(&format!("the login cannot be kept in {}: ", oauth.file().display())), "{text}");
}
