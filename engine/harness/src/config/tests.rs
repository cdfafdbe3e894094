//! The configuration, value by value.

use std::collections::BTreeMap;

use waxlog_harness_core::settings::{Handling, RespondTo, Subscribe};

use super::{Config, ConfigError, Options, Surroundings};

const KEY: &str = "0000000000000000000000000000000000000000000000000000000000000002";

fn read_with(options: &Options, variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let mut env: BTreeMap<&str, &str> = [("BUZZ_PRIVATE_KEY", KEY)].into();
    env.extend(variables.iter().copied());
    let around = Surroundings {
        env: &|name| env.get(name).map(|value| (*value).to_owned()),
        cwd: "/work".into(),
        home: "/home".into(),
        version: "0".into(),
    };
    Config::read(options, &around)
}

fn read(variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
    read_with(&Options::default(), variables)
}

fn code(variables: &[(&str, &str)]) -> i32 {
    read(variables).expect_err("refused").code()
}

#[test]
fn nothing_but_a_key_is_needed() {
    let settings = read(&[]).unwrap().settings;
    assert_eq!((settings.idle_timeout_ms, settings.max_turn_ms), (900_000, 7_200_000));
    assert_eq!((settings.handling, settings.respond_to), (Handling::Steer, RespondTo::OwnerOnly));
    assert_eq!(settings.agent_command.args, ["acp"]);
    assert!(settings.prompts.base.is_some() && settings.presence && settings.typing && settings.memory);
    assert_eq!(settings.permission_mode.as_deref(), Some("bypassPermissions"));
}

#[test]
fn what_cannot_be_read_ends_with_2_and_what_cannot_be_used_with_1() {
    assert_eq!(code(&[("BUZZ_ACP_NO_TYPING", "1")]), 2);
    assert_eq!(code(&[("BUZZ_ACP_AGENTS", "33")]), 2);
    assert_eq!(code(&[("BUZZ_ACP_RESPOND_TO", "me")]), 2);
    assert_eq!(code(&[("BUZZ_PRIVATE_KEY", "nsec1notakey")]), 1);
    assert_eq!(code(&[("BUZZ_ACP_RESPOND_TO", "allowlist")]), 1);
    assert_eq!(code(&[("BUZZ_ACP_AGENT_COMMAND", " ")]), 1);
}

#[test]
fn a_turns_times_are_checked_against_each_other() {
    let times = |variables: &[(&str, &str)]| {
        read(variables)
            .map(|config| (config.settings.idle_timeout_ms / 1000, config.settings.max_turn_ms / 1000))
    };
    assert_eq!(times(&[("BUZZ_ACP_IDLE_TIMEOUT", "0")]).unwrap().0, 1);
    assert_eq!(times(&[("BUZZ_ACP_TURN_TIMEOUT", "7")]).unwrap().0, 7);
    assert_eq!(times(&[("BUZZ_ACP_TURN_TIMEOUT", "7"), ("BUZZ_ACP_IDLE_TIMEOUT", "8")]).unwrap().0, 8);
    assert_eq!(times(&[("BUZZ_ACP_MAX_TURN_DURATION", "0"), ("BUZZ_ACP_IDLE_TIMEOUT", "5")]).unwrap().1, 60);
    assert_eq!(times(&[("BUZZ_ACP_MAX_TURN_DURATION", "604800")]).unwrap().1, 604_800);
    assert!(times(&[("BUZZ_ACP_MAX_TURN_DURATION", "604801")]).is_err());
    assert!(times(&[("BUZZ_ACP_MAX_TURN_DURATION", "60"), ("BUZZ_ACP_IDLE_TIMEOUT", "60")]).is_err());
}

#[test]
fn intervals_are_off_or_long_enough() {
    for (variable, bad, good) in [
        ("BUZZ_ACP_HEARTBEAT_INTERVAL", ["1", "9"], ["0", "10"]),
        ("BUZZ_ACP_TURN_LIVENESS_SECS", ["1", "4"], ["0", "5"]),
    ] {
        bad.iter().for_each(|secs| assert_eq!(code(&[(variable, secs)]), 1, "{variable}={secs}"));
        good.iter().for_each(|secs| assert!(read(&[(variable, secs)]).is_ok(), "{variable}={secs}"));
    }
    let capped = read(&[("BUZZ_ACP_HEARTBEAT_INTERVAL", "99999")]).unwrap();
    assert_eq!(capped.settings.heartbeat_ms, 86_400_000);
}

#[test]
fn dropping_needs_the_handling_that_waits() {
    let drop = ("BUZZ_ACP_DEDUP", "drop");
    for handling in ["steer", "interrupt", "owner-interrupt"] {
        assert_eq!(code(&[drop, ("BUZZ_ACP_MULTIPLE_EVENT_HANDLING", handling)]), 1);
    }
    assert!(read(&[drop, ("BUZZ_ACP_MULTIPLE_EVENT_HANDLING", "queue")]).is_ok());
}

#[test]
fn an_allowlist_is_cleaned_and_its_errors_are_told() {
    let (one, two) = (
        "79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798",
        "c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5",
    );
    let list = |value: &str| {
        read(&[("BUZZ_ACP_RESPOND_TO", "allowlist"), ("BUZZ_ACP_RESPOND_TO_ALLOWLIST", value)])
            .map(|config| config.settings.allowlist.len())
    };
    assert_eq!(list(&format!(" {one} ,{},{two}", one.to_lowercase())), Ok(2));
    for bad in ["abc", &format!("{one}0"), &"z".repeat(64)] {
        assert!(list(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_deployment_may_restrict_who_is_answered() {
    let allowed =
        |list: &str| read(&[("BUZZ_ACP_RESPOND_TO", "anyone"), ("BUZZ_ACP_ALLOWED_RESPOND_TO", list)]);
    assert!(allowed("owner-only,anyone").is_ok());
    assert!(allowed("owner-only").unwrap_err().to_string().contains("not permitted"));
    assert!(allowed("all").unwrap_err().to_string().contains("\"all\""));
}

#[test]
fn an_option_beats_its_variable() {
    let options = Options { model: Some("typed".into()), ..Options::default() };
    let config = read_with(&options, &[("BUZZ_ACP_MODEL", "variable")]).unwrap();
    assert_eq!(config.settings.model.as_deref(), Some("typed"));
}

#[test]
fn kinds_and_channels_are_lists() {
    let config = read(&[
        ("BUZZ_ACP_KINDS", "9, 7"),
        ("BUZZ_ACP_CHANNELS", "nonsense,11111111-1111-4111-8111-111111111111"),
    ]);
    let Subscribe::Mentions { kinds, channels, .. } = config.unwrap().settings.subscribe else {
        panic!("mentions")
    };
    assert_eq!(kinds, [9, 7]);
    assert_eq!(channels.map(|channels| channels.len()), Some(1));
}

#[test]
fn no_secret_is_in_what_is_recorded() {
    let config = read(&[("BUZZ_ACP_MCP_COMMAND", "/usr/bin/buzz-dev-mcp")]).unwrap();
    let recorded = serde_json::to_string(&config.settings).unwrap();
    assert!(!recorded.contains(KEY) && !recorded.contains(config.secrets.nsec.expose()));
    assert!(!format!("{config:?}").contains(config.secrets.nsec.expose()));
}
