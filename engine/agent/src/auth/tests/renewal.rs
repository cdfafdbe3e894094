//! Which token is used without the user, and when the refresh token is spent.

use async_std::task::block_on;
use futures_lite::future::{poll_once, zip};

use super::super::oauth::Browser;
use super::super::tokens::EXPIRY_MARGIN_SECS;
use super::super::AuthError;
use super::*;

const HOUR_AGO: Option<u64> = Some(NOW_SECS - 3600);
const IN_AN_HOUR: Option<u64> = Some(NOW_SECS + 3600);

fn bearer(source: &TokenSource) -> Result<Secret<String>, AuthError> {
    block_on(source.bearer_without_browser())
}

#[test]
fn a_token_expires_a_minute_early_and_without_a_date_never() {
    let fresh = |expires_at| {
        let tokens = Tokens { access: secret("a"), refresh: None, expires_at };
        tokens.is_fresh(NOW_SECS)
    };
    assert!(!fresh(Some(NOW_SECS + 10)));
    assert!(!fresh(Some(NOW_SECS + EXPIRY_MARGIN_SECS)));
    assert!(fresh(Some(NOW_SECS + EXPIRY_MARGIN_SECS + 1)));
    assert!(fresh(None));
}

#[test]
fn a_fresh_token_of_the_file_needs_no_network() {
    let rig = Rig::new(Vec::new());
    rig.store("kept", None, IN_AN_HOUR);
    assert_eq!(bearer(&rig.source()), Ok(secret("kept")));
    assert!(rig.requests().is_empty());
}

#[test]
fn an_expired_token_is_renewed_once_and_kept() {
    let rig = Rig::with_service(vec![grant("new", Some("r2"))]);
    rig.store("old", Some("r1"), HOUR_AGO);
    let source = rig.source();
    assert_eq!(bearer(&source), Ok(secret("new")));
    std::fs::remove_file(rig.oauth().file()).expect("removed");
    assert_eq!(bearer(&source), Ok(secret("new")), "from memory");

    let requests = rig.requests();
    let paths: Vec<_> = requests.iter().map(|r| format!("{} {}", r.method, r.path)).collect();
    assert_eq!(paths, ["GET /oidc/.well-known/oauth-authorization-server", "POST /oidc/v1/token"]);
    assert_eq!(requests[1].header("content-type"), Some("application/x-www-form-urlencoded"));
    let sent = [("grant_type", "refresh_token"), ("refresh_token", "r1"), ("client_id", "databricks-cli")];
    assert_eq!(form(&requests[1]), fields(&sent));
}

#[test]
fn the_file_is_readable_by_its_owner_only_and_has_the_known_form() {
    let rig = Rig::with_service(vec![grant("new", Some("r2"))]);
    rig.store("old", Some("r1"), HOUR_AGO);
    let file = rig.oauth().file().to_owned();
    let folder = file.parent().expect("a folder");
    // As a program with a looser hand may have left them.
    loosen(folder, 0o755);
    std::fs::write(file.with_extension("json.new"), "half").expect("written");
    loosen(&file.with_extension("json.new"), 0o644);

    assert_eq!(bearer(&rig.source()), Ok(secret("new")));
    let wanted = json!({"access_token": "new", "refresh_token": "r2", "expires_at": NOW_SECS + 3600});
    assert_eq!(rig.stored(), wanted);
    assert_eq!((mode(&file), mode(folder), mode(&file.with_extension("lock"))), (0o600, 0o700, 0o600));
    assert!(!file.with_extension("json.new").exists());
    let name = file.file_stem().and_then(|name| name.to_str()).expect("a name");
    assert!(name.len() == 64 && name.bytes().all(|b| b.is_ascii_hexdigit()), "{name}");
    assert!(folder.ends_with(".config/buzz-agent/oauth/databricks"));
}

fn loosen(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("changed");
}

#[test]
fn a_refused_token_is_renewed_whatever_the_clock_says() {
    let rig = Rig::with_service(vec![grant("new", Some("r2"))]);
    rig.store("refused", Some("r1"), IN_AN_HOUR);
    let source = rig.source();
    assert_eq!(bearer(&source), Ok(secret("refused")));
    assert_eq!(block_on(source.renewed(&secret("refused"))), Ok(secret("new")));
    assert_eq!(block_on(source.renewed(&secret("refused"))), Ok(secret("new")), "the one at hand");
    assert_eq!(rig.requests().len(), 2);
    assert_eq!(rig.stored()["refresh_token"], "r2");
}

#[test]
fn a_token_that_another_process_got_is_adopted_instead() {
    let rig = Rig::new(Vec::new());
    rig.store("refused", Some("r1"), IN_AN_HOUR);
    let source = rig.source();
    assert_eq!(bearer(&source), Ok(secret("refused")));
    rig.store("theirs", Some("r2"), IN_AN_HOUR);
    assert_eq!(block_on(source.renewed(&secret("refused"))), Ok(secret("theirs")));
    rig.machine.now_secs.store(NOW_SECS + 7200, Ordering::Relaxed);
    rig.store("later", Some("r3"), Some(NOW_SECS + 9000));
    assert_eq!(bearer(&source), Ok(secret("later")), "memory expired, file fresh");
    assert!(rig.requests().is_empty());
}

#[test]
fn another_token_that_is_expired_does_not_stand_in() {
    let rig = Rig::with_service(vec![grant("new", None)]);
    rig.store("theirs", Some("r2"), HOUR_AGO);
    assert_eq!(block_on(rig.source().renewed(&secret("refused"))), Ok(secret("new")));
}

#[test]
fn the_refresh_token_that_another_process_was_given_is_the_one_that_is_spent() {
    let rig = Rig::with_service(vec![grant("new", None)]);
    rig.store("old", Some("r1"), Some(NOW_SECS + 100));
    let source = rig.source();
    assert_eq!(bearer(&source), Ok(secret("old")));
    rig.store("rotated", Some("r2"), Some(NOW_SECS + 200));
    rig.machine.now_secs.store(NOW_SECS + 300, Ordering::Relaxed);
    assert_eq!(bearer(&source), Ok(secret("new")));
    assert!(form(&rig.requests()[1]).contains(&("refresh_token".to_owned(), "r2".to_owned())));
    assert_eq!(rig.stored()["refresh_token"], "r2", "a reply without one keeps the old one");
}

#[test]
fn two_processes_spend_a_refresh_token_once() {
    let slow = grant("new", Some("r2")).delay(Duration::from_millis(150));
    let rig = Rig::with_service(vec![slow, Answer::status(400, r#"{"error":"invalid_grant"}"#)]);
    rig.store("old", Some("r1"), HOUR_AGO);
    let (one, other) = (rig.source(), rig.source());
    let both = block_on(zip(one.bearer_without_browser(), other.bearer_without_browser()));
    assert_eq!(both, (Ok(secret("new")), Ok(secret("new"))));
    assert_eq!(rig.requests().len(), 2);
}

#[test]
fn without_a_refresh_token_nobody_is_asked() {
    let rig = Rig::new(Vec::new());
    let text = bearer(&rig.source()).expect_err("no login").to_string();
    assert!(
        text.starts_with(&format!("not logged in to {}; run `waxlog agent auth", rig.server.url())),
        "{text}"
    );
    rig.store("refused", None, IN_AN_HOUR);
    let refused = block_on(rig.source().renewed(&secret("refused")));
    assert!(matches!(refused, Err(AuthError::NotLoggedIn { .. })), "{refused:?}");
    assert!(rig.requests().is_empty());
}

#[test]
fn a_file_that_makes_no_sense_is_no_login() {
    let rig = Rig::new(Vec::new());
    rig.store("a", Some("r"), None);
    for junk in ["", "{", "[]", r#"{"access_token":""}"#, r#"{"refresh_token":"r"}"#] {
        std::fs::write(rig.oauth().file(), junk).expect("written");
        assert!(matches!(bearer(&rig.source()), Err(AuthError::NotLoggedIn { .. })), "{junk}");
    }
}

#[test]
fn a_refused_refresh_token_is_kept_and_told_without_secrets() {
    let body = r#"{"error":"invalid_grant","error_description":"canary-refresh is revoked"}"#;
    let rig = Rig::with_service(vec![Answer::status(400, body)]);
    rig.store("canary-access", Some("canary-refresh"), HOUR_AGO);
    let error = bearer(&rig.source()).expect_err("refused");
    let text = format!("{error} {error:?} {:?}", rig.source());
    assert!(text.contains("renewing the login was refused: 400 Bad Request (invalid_grant)"), "{text}");
    assert!(!text.contains("canary"), "{text}");
    assert_eq!(rig.stored()["refresh_token"], "canary-refresh");
    assert!(rig.shown.is_empty());
}

#[test]
fn a_reply_that_is_no_grant_is_an_error() {
    for reply in ["{}", r#"{"access_token":""}"#, "<html>"] {
        let rig = Rig::with_service(vec![Answer::json(reply)]);
        rig.store("old", Some("r1"), HOUR_AGO);
        let text = bearer(&rig.source()).expect_err(reply).to_string();
        assert!(text.contains("/oidc/v1/token answered without an `access_token`"), "{text}");
        assert_eq!(rig.stored()["access_token"], "old");
    }
}

#[test]
fn a_description_that_cannot_be_used_names_what_is_missing() {
    for (answer, said) in [
        (Answer::status(404, "no"), "answered 404 Not Found"),
        (Answer::json("{}"), "has no `authorization_endpoint`"),
        (Answer::json(r#"{"authorization_endpoint":"x","token_endpoint":7}"#), "has no `token_endpoint`"),
        (Answer::drop_connection(), "request to http"),
    ] {
        let rig = Rig::new(vec![answer]);
        rig.store("old", Some("r1"), HOUR_AGO);
        let text = bearer(&rig.source()).expect_err(said).to_string();
        assert!(text.starts_with("finding the login service failed: ") && text.contains(said), "{text}");
    }
}

#[test]
fn a_silent_workspace_is_given_up() {
    let rig = Rig::with_service(vec![Answer::hang()]);
    rig.store("old", Some("r1"), HOUR_AGO);
    let mut oauth = rig.oauth();
    oauth.waits.call = Duration::from_millis(150);
    let text = block_on(oauth.token(None, Browser::Never)).expect_err("silence").to_string();
    assert!(text.contains("renewing the login failed: no answer from http"), "{text}");
    assert!(text.contains("within 0.15s; check DATABRICKS_HOST"), "{text}");
}

#[test]
fn a_lock_that_is_not_given_back_is_told() {
    let rig = Rig::new(Vec::new());
    rig.store("old", Some("r1"), HOUR_AGO);
    let mut oauth = rig.oauth();
    oauth.waits.lock = Duration::from_millis(100);
    let held = std::fs::File::create(oauth.file().with_extension("lock")).expect("a file");
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).expect("locked");
    let text = block_on(oauth.token(None, Browser::Allowed)).expect_err("locked").to_string();
    assert!(text.contains(".lock has been locked by another process"), "{text}");
    assert!(rig.requests().is_empty() && rig.shown.is_empty());
}

#[test]
fn a_caller_that_goes_away_does_not_lose_what_was_granted() {
    let slow = grant("new", Some("r2")).delay(Duration::from_millis(150));
    let rig = Rig::with_service(vec![slow, Answer::status(400, "spent")]);
    rig.store("old", Some("r1"), HOUR_AGO);
    let source = rig.source();
    // The first poll starts the renewal; then the caller is cancelled.
    assert!(block_on(poll_once(source.bearer_without_browser())).is_none());
    rig.server.wait_for(1, PATIENCE).expect("the refresh token is being spent");
    assert_eq!(bearer(&source), Ok(secret("new")));
    assert_eq!(rig.stored()["refresh_token"], "r2");
    assert_eq!(rig.requests().len(), 2);
}

#[test]
fn tokens_are_masked_from_the_moment_they_are_known() {
    let rig = Rig::with_service(vec![grant("access-0123456789", Some("refresh-0123456789"))]);
    rig.store("old", Some("spent-0123456789"), HOUR_AGO);
    let session = rig.scrubber.clone();
    bearer(&rig.source()).expect("a token");
    let text = "access-0123456789 refresh-0123456789 spent-0123456789".to_owned();
    assert_eq!(session.scrub_text(text), "*** *** ***");
}

#[test]
fn a_home_that_cannot_be_written_costs_the_file_only() {
    let rig = Rig::with_service(vec![grant("new", Some("r2")), grant("newer", Some("r3"))]);
    rig.store("old", Some("r1"), HOUR_AGO);
    // A folder in the draft's place: unlike permissions, it stops the superuser too.
    std::fs::create_dir(rig.oauth().file().with_extension("json.new")).expect("a folder");
    let source = rig.source();
    assert_eq!(bearer(&source), Ok(secret("new")));
    assert_eq!(bearer(&source), Ok(secret("new")), "from memory");
    assert_eq!(rig.stored()["access_token"], "old");
    assert_eq!(rig.requests().len(), 2);
}
