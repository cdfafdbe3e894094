//! `waxlog keys` and the identity that it keeps.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use waxlog_scripted::model_server::{Answer, ModelServer};

use crate::stage::{finish, Person};

fn without_key(person: &Person, stdin: &str, arguments: &[&str]) -> crate::stage::Done {
    let mut command = person.command(arguments);
    command.env_remove("BUZZ_PRIVATE_KEY");
    finish(command, stdin)
}

#[test]
fn a_newcomer_has_an_identity_in_one_command() {
    let server = ModelServer::start(vec![Answer::json("[]")]).expect("a port");
    let new = Person::at(&server.url());
    without_key(&new, "", &["channels", "list"]).fails(3, "auth_error");
    let made = without_key(&new, "", &["keys", "new", "--json"]).ok();
    let file = new.path(".local/state/waxlog/identity");
    assert_eq!(std::fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);
    assert_eq!(without_key(&new, "", &["channels", "list"]).ok(), json!([]));
    assert_eq!(without_key(&new, "", &["keys", "show", "--json"]).ok(), made);
    assert!(made.get("secret").is_none());
    let shown = without_key(&new, "", &["keys", "show", "--secret", "--json"]).ok();
    let stored = std::fs::read_to_string(file).expect("text");
    assert_eq!(shown["secret"], stored.trim());
}

#[test]
fn an_identity_is_imported_and_not_replaced_by_accident() {
    let new = Person::at("http://unused");
    let done = without_key(&new, new.keys.nsec().expose(), &["keys", "import"]);
    assert!(done.out.contains(&new.key()), "{done:?}");
    assert!(!done.out.contains(new.keys.secret_hex().expose()));
    let again = without_key(&new, "", &["keys", "new"]);
    assert_eq!(again.code, 1);
    assert!(again.err.contains("--replace"), "{}", again.err);
    let shown = without_key(&new, "", &["keys", "show"]);
    assert!(shown.out.contains(&new.key()));
    let other = without_key(&new, "", &["keys", "new", "--replace", "--json"]).ok();
    assert_ne!(other["pubkey"], new.key());
}

#[test]
fn a_key_that_is_given_beats_the_one_that_is_kept() {
    let server = ModelServer::start(vec![Answer::json("[]")]).expect("a port");
    let person = Person::at(&server.url());
    without_key(&person, "", &["keys", "new", "--json"]).ok();
    person.run(&["users", "get"]).ok();
    let asked = String::from_utf8(server.requests()[0].body.clone()).expect("text");
    assert!(asked.contains(&person.key()), "{asked}");
}

#[test]
fn every_shell_gets_its_completions_under_either_name() {
    let person = Person::at("http://unused");
    for shell in ["bash", "zsh", "fish"] {
        for (name, group) in [("waxlog", "replay"), ("buzz", "reactions")] {
            let done = person.run(&["completions", shell, "--name", name]);
            assert_eq!((done.code, done.err.as_str()), (0, ""));
            assert!(done.out.contains(name) && done.out.contains(group), "{shell} {name}");
        }
    }
    assert_eq!(person.run(&["completions", "tcsh"]).code, 2);
}
