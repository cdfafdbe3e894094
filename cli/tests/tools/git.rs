//! git with an identity of Nostr, by the real git.

use std::fs;

use crate::client::Stage;

const KEY: &str = "0000000000000000000000000000000000000000000000000000000000000003";
const IDENTITY: &str = "f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036f9";

#[test]
fn the_identity_is_the_keys_and_settings_that_are_there_stay() {
    let stage = Stage::new();
    let mut server = stage.server_with(&[
        ("NOSTR_PRIVATE_KEY", KEY),
        ("BUZZ_ACP_DISPLAY_NAME", "Robin <r@example.org>"),
        ("BUZZ_RELAY_URL", "wss://relay.example:8443/x"),
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "color.ui"),
        ("GIT_CONFIG_VALUE_0", "never"),
    ]);
    let told = server
        .stdout("git config user.name; git config user.email; git config color.ui; echo $GIT_CONFIG_COUNT");
    assert_eq!(told, format!("Robin r@example.org\n{IDENTITY}@relay.example\nnever\n11\n"));
}

#[test]
fn commits_and_tags_are_signed_and_a_changed_one_is_found() {
    let stage = Stage::new();
    let mut server = stage.server_with(&[("NOSTR_PRIVATE_KEY", KEY), ("BUZZ_PRIVATE_KEY", &"5".repeat(64))]);
    let made = server.shell("git init -q r && cd r && git commit -q --allow-empty -m x && git tag -m t v1");
    assert_eq!(made["exit_code"], 0, "{made}");
    let verified = server.shell("cd r && git verify-commit --raw HEAD && git verify-tag --raw v1");
    assert_eq!(verified["exit_code"], 0, "{verified}");
    let told = verified["stderr"].as_str().expect("text");
    let good = format!("[GNUPG:] GOODSIG {IDENTITY} {IDENTITY}\n");
    assert_eq!(told.matches(&good).count(), 2, "{told}");
    assert!(told.contains("[GNUPG:] TRUST_FULLY 0 shell\n"), "{told}");
    let changed = "cd r && git cat-file commit HEAD | sed 's/^x$/y/' > c && git verify-commit --raw \
                   $(git hash-object -t commit -w c)";
    let bad = server.shell(changed);
    assert_eq!(bad["exit_code"], 1, "{bad}");
    assert!(bad["stderr"].as_str().expect("text").contains("BADSIG"), "{bad}");
}

#[test]
fn another_key_than_the_configured_one_signs_nothing() {
    let stage = Stage::new();
    let mut server = stage.server_with(&[("NOSTR_PRIVATE_KEY", KEY)]);
    let other = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    let refused = server.shell(&format!(
        "git init -q r && cd r && git -c user.signingkey={other} commit -q --allow-empty -m x"
    ));
    assert_ne!(refused["exit_code"], 0);
    assert!(refused["stderr"].as_str().expect("text").contains("check user.signingkey"), "{refused}");
}

#[test]
fn git_asks_the_helper_for_a_proof_and_gets_one_for_the_repository() {
    let stage = Stage::new();
    let mut server = stage.server_with(&[("NOSTR_PRIVATE_KEY", KEY)]);
    let ask = "capability[]=authtype\\nprotocol=https\\nhost=relay.example\\npath=git/a/r.git/info/refs\\n\
               wwwauth[]=Nostr realm=\"r\", method=\"GET\"\\n\\n";
    let told = server.stdout(&format!("printf '{ask}' | git credential fill"));
    assert!(told.contains("authtype=Nostr\n") && told.contains("ephemeral=1\n"), "{told}");
    let credential = told.lines().find_map(|line| line.strip_prefix("credential=")).expect("a credential");
    fs::write(stage.path("c"), credential).expect("written");
    let event = server.stdout("base64 -d c");
    let event: serde_json::Value = serde_json::from_str(&event).expect("an event");
    assert_eq!((&event["kind"], &event["pubkey"]), (&27235.into(), &IDENTITY.into()));
    assert!(event["tags"].to_string().contains(r#"["u","https://relay.example/git/a/r.git"]"#), "{event}");
}

#[test]
fn a_key_file_that_others_may_read_is_refused() {
    let stage = Stage::new();
    let mut server = stage.server_with(&[("NOSTR_PRIVATE_KEY", KEY)]);
    let command =
        "chmod 644 $(git config nostr.keyfile); git init -q r && cd r && git commit -q --allow-empty -m x";
    let refused = server.shell(command);
    assert!(refused["stderr"].as_str().expect("text").contains("run chmod 600 on it"), "{refused}");
}
