//! Which secrets a command gets to see, and where from.

use serde_json::json;

use crate::client::Stage;

const KEY: &str = "5555555555555555555555555555555555555555555555555555555555555555";

fn settings() -> Vec<(&'static str, &'static str)> {
    vec![
        ("NOSTR_PRIVATE_KEY", KEY),
        ("ANTHROPIC_API_KEY", "canary-anthropic"),
        ("OPENAI_COMPAT_API_KEY", "canary-openai"),
        ("OPENROUTER_API_KEY", "canary-openrouter"),
        ("DATABRICKS_TOKEN", "canary-databricks"),
        ("BUZZ_PRIVATE_KEY", "given-to-commands"),
        ("BUZZ_AUTH_TAG", "[\"auth\"]"),
        ("PROJECT_SETTING", "a b"),
    ]
}

#[test]
fn a_command_gets_what_was_meant_for_commands() {
    let stage = Stage::new();
    let mut server = stage.server_with(&settings());
    let echoed = server.stdout("echo \"[$BUZZ_PRIVATE_KEY] [$BUZZ_AUTH_TAG] [$PROJECT_SETTING]\"");
    assert_eq!(echoed, "[given-to-commands] [[\"auth\"]] [a b]\n");
    let environment = server.stdout("env");
    for secret in [KEY, "canary", "NOSTR_PRIVATE_KEY", "API_KEY", "WAXLOG_MCP_SHIMS"] {
        assert!(!environment.contains(secret), "{secret}: {environment}");
    }
}

#[test]
fn a_secret_that_is_withheld_is_not_in_the_servers_own_environment_either() {
    let stage = Stage::new();
    let mut server = stage.server_with(&settings());
    let environment = server.stdout("tr '\\0' '\\n' < /proc/$PPID/environ");
    assert!(environment.contains("PROJECT_SETTING=a b"), "it can be read: {environment}");
    for secret in [KEY, "canary", "NOSTR_PRIVATE_KEY"] {
        assert!(!environment.contains(secret), "{secret}: {environment}");
    }
    // Nor in that of any other process that the server has started.
    let found = server.shell("cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c canary-open");
    assert_eq!(found["stdout"], "0\n", "{found}");
}

#[test]
fn gits_key_is_in_a_file_for_its_owner_alone() {
    let stage = Stage::new();
    let mut server = stage.server_with(&settings());
    let command = "f=$(git config nostr.keyfile); stat -c '%a %s' $f; stat -c %a $(dirname $f); cat $f";
    assert_eq!(server.stdout(command), format!("600 64\n700\n{KEY}"));
}

#[test]
fn a_key_that_is_none_gives_no_settings_and_is_not_repeated() {
    let stage = Stage::new();
    let mut server = stage.server_with(&[("NOSTR_PRIVATE_KEY", "not-a-key-canary")]);
    assert_eq!(
        server
            .stdout("echo \"[$GIT_CONFIG_COUNT]\"; ls -A $(dirname $(command -v buzz)) | grep -c key; true"),
        "[]\n0\n"
    );
    let (code, log) = server.finish();
    assert_eq!(code, Some(0));
    assert!(log.contains("NOSTR_PRIVATE_KEY") && !log.contains("canary"), "{log}");
}

#[test]
fn a_folder_of_shims_that_is_not_the_servers_is_neither_used_nor_removed() {
    let stage = Stage::new();
    stage.write("precious", "kept");
    let work = stage.path("");
    let mut server = stage.server_with(&[("WAXLOG_MCP_SHIMS", &work.to_string_lossy())]);
    assert!(!server.stdout("command -v buzz").contains("/work/"));
    assert_eq!(server.call("_Stop", json!({}))["result"]["isError"], false);
    assert_eq!(server.finish().0, Some(0));
    assert_eq!(stage.read("precious"), "kept");
}
