//! What the agent makes of its environment at startup.

use std::path::Path;
use std::time::Duration;

use super::*;

mod provider;

/// A complete environment for `provider`, changed by `changes`: a value sets, `None` unsets.
fn environment(provider: &str, changes: &[(&str, Option<&str>)]) -> Environment {
    let mut variables: Vec<(&str, &str)> = vec![
        ("BUZZ_AGENT_PROVIDER", provider),
        ("ANTHROPIC_API_KEY", "sk-canary"),
        ("ANTHROPIC_MODEL", "claude-opus-4-6"),
        ("OPENAI_COMPAT_API_KEY", "sk-canary"),
        ("OPENAI_COMPAT_MODEL", "gpt-5.1"),
        ("OPENROUTER_API_KEY", "sk-canary"),
        ("OPENROUTER_MODEL", "anthropic/claude"),
        ("DATABRICKS_HOST", "https://dbc.example"),
        ("DATABRICKS_MODEL", "databricks-claude"),
        ("HOME", "/home/u"),
    ];
    for (name, value) in changes {
        variables.retain(|(known, _)| known != name);
        variables.extend(value.map(|value| (*name, value)));
    }
    variables.into_iter().collect()
}

fn read(provider: &str, changes: &[(&str, Option<&str>)]) -> Result<Config, ConfigError> {
    Config::read(&environment(provider, changes))
}

fn with(name: &str, value: &str) -> Result<Config, ConfigError> {
    read("openai", &[(name, Some(value))])
}

fn text(result: Result<Config, ConfigError>) -> String {
    let text = result.expect_err("refused").to_string();
    assert!(text.starts_with("config: "), "{text}");
    text
}

#[test]
fn the_system_prompt_has_one_origin() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("prompt.md");
    std::fs::write(&file, "from a file\n").expect("written");
    let path = file.to_str().expect("UTF-8");
    let prompt = |inline, file| {
        let changes = [("BUZZ_AGENT_SYSTEM_PROMPT", inline), ("BUZZ_AGENT_SYSTEM_PROMPT_FILE", file)];
        read("openai", &changes).map(|config| config.system_prompt)
    };
    let built_in = prompt(None, None).expect("legal");
    assert_eq!(built_in.source, PromptSource::BuiltIn);
    assert!(built_in.text.contains("buzz-agent"));
    assert_eq!(
        prompt(Some(""), None),
        Ok(SystemPrompt { text: String::new(), source: PromptSource::Variable })
    );
    assert_eq!(
        prompt(None, Some(path)),
        Ok(SystemPrompt { text: "from a file\n".to_owned(), source: PromptSource::File(file.clone()) })
    );
    assert_eq!(prompt(Some(""), Some("")), Err(ConfigError::TwoPrompts));
    let gone = prompt(None, Some("/nowhere/prompt")).expect_err("unreadable").to_string();
    assert!(gone.starts_with("config: read /nowhere/prompt: "), "{gone}");
}

#[test]
fn flags_are_numbers() {
    let reply = |value| with("BUZZ_AGENT_REQUIRE_REPLY", value).map(|c| c.limits.require_reply);
    assert_eq!((reply("0"), reply("1"), reply("255")), (Ok(false), Ok(true), Ok(true)));
    for value in ["true", "yes", "", "256", "-1"] {
        let text = text(with("BUZZ_AGENT_REQUIRE_REPLY", value));
        assert!(text.starts_with("config: BUZZ_AGENT_REQUIRE_REPLY: "), "{text}");
    }
    assert_eq!(with("BUZZ_AGENT_NO_HINTS", "2").map(|c| c.limits.hints), Ok(false));
}

#[test]
fn numbers_are_read_strictly() {
    for value in ["", " 5", "5 ", "1_000", "5s", "-1", "1.5", "4294967296"] {
        let text = text(with("BUZZ_AGENT_MAX_ROUNDS", value));
        assert!(text.starts_with("config: BUZZ_AGENT_MAX_ROUNDS: "), "{value}: {text}");
    }
    assert_eq!(with("BUZZ_AGENT_MAX_ROUNDS", "7").map(|c| c.limits.max_rounds), Ok(7));
}

#[test]
fn the_defaults_are_those_of_the_sheet() {
    let limits = read("openai", &[]).expect("legal").limits;
    assert_eq!(
        limits,
        Limits {
            prefer_mesh_for_auto: false,
            ask_permission: false,
            max_rounds: 0,
            max_output_tokens: 32_768,
            llm_timeout: Duration::from_secs(240),
            tool_timeout: Duration::from_secs(660),
            mcp_init_timeout: Duration::from_secs(30),
            mcp_restart: RestartPolicy { max_attempts: 3, base_ms: 500, max_ms: 30_000 },
            max_sessions: usize::MAX,
            max_line_bytes: 4_194_304,
            max_history_bytes: 16_777_216,
            max_result_text_bytes: 51_200,
            max_context_tokens: 200_000,
            max_handoffs: 10,
            max_parallel_tools: 8,
            hook_timeout: Duration::from_millis(2500),
            stop_max_rejections: 3,
            require_reply: false,
            hints: true,
            prompt_caching: true,
        }
    );
}

#[test]
fn each_minimum_is_legal_and_one_less_is_not() {
    for (name, min) in [
        ("BUZZ_AGENT_MAX_OUTPUT_TOKENS", 1_u64),
        ("BUZZ_AGENT_MAX_CONTEXT_TOKENS", 32_769),
        ("BUZZ_AGENT_MAX_HISTORY_BYTES", 1_048_576),
        ("BUZZ_AGENT_MAX_LINE_BYTES", 1024),
        ("BUZZ_AGENT_MAX_TOOL_RESULT_TEXT_BYTES", 1024),
        ("BUZZ_AGENT_LLM_TIMEOUT_SECS", 1),
        ("BUZZ_AGENT_TOOL_TIMEOUT_SECS", 1),
        ("BUZZ_AGENT_MCP_INIT_TIMEOUT_SECS", 1),
        ("BUZZ_AGENT_MAX_PARALLEL_TOOLS", 1),
        ("BUZZ_AGENT_MCP_RESTART_MAX_ATTEMPTS", 1),
        ("BUZZ_AGENT_MCP_RESTART_BASE_MS", 1),
        ("BUZZ_AGENT_MCP_RESTART_MAX_MS", 500),
    ] {
        assert!(with(name, &min.to_string()).is_ok(), "{name}={min}");
        let text = text(with(name, &(min - 1).to_string()));
        assert!(text.contains(&format!("{name}={}", min - 1)), "{text}");
    }
    for name in [
        "BUZZ_AGENT_MAX_SESSIONS",
        "BUZZ_AGENT_MAX_HANDOFFS",
        "BUZZ_AGENT_HOOK_TIMEOUT_MS",
        "BUZZ_AGENT_STOP_MAX_REJECTIONS",
    ] {
        assert!(with(name, "0").is_ok(), "{name}");
    }
}

#[test]
fn the_result_text_has_a_maximum() {
    assert!(with("BUZZ_AGENT_MAX_TOOL_RESULT_TEXT_BYTES", "8388608").is_ok());
    let text = text(with("BUZZ_AGENT_MAX_TOOL_RESULT_TEXT_BYTES", "8388609"));
    assert!(text.contains("use 8388608 or less"), "{text}");
}

#[test]
fn the_context_must_exceed_the_output() {
    let window = |context| {
        let changes = [
            ("BUZZ_AGENT_MAX_CONTEXT_TOKENS", Some(context)),
            ("BUZZ_AGENT_MAX_OUTPUT_TOKENS", Some("1000")),
        ];
        read("openai", &changes)
    };
    assert!(window("1001").is_ok());
    let text = text(window("1000"));
    for word in
        ["BUZZ_AGENT_MAX_CONTEXT_TOKENS=1000", "BUZZ_AGENT_MAX_OUTPUT_TOKENS=1000", "room for the response"]
    {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn the_first_error_counts() {
    let text = text(read(
        "openai",
        &[
            ("BUZZ_AGENT_MAX_OUTPUT_TOKENS", Some("0")),
            ("BUZZ_AGENT_MAX_ROUNDS", Some("x")),
            ("BUZZ_AGENT_THINKING_EFFORT", Some("extreme")),
        ],
    ));
    assert!(text.starts_with("config: BUZZ_AGENT_MAX_ROUNDS: "), "{text}");
}

#[test]
fn the_hook_servers_are_none_all_or_named() {
    let named = |names: &[&str]| HookServers::Named(names.iter().map(|n| (*n).to_owned()).collect());
    for (value, wanted) in [
        (None, HookServers::None),
        (Some(""), HookServers::None),
        (Some(" ,, "), HookServers::None),
        (Some("*"), HookServers::All),
        (Some(" * "), HookServers::All),
        (Some("a, b ,"), named(&["a", "b"])),
        (Some("*,a"), named(&["*", "a"])),
    ] {
        let config = read("openai", &[("MCP_HOOK_SERVERS", value)]).expect("legal");
        assert_eq!(config.hook_servers, wanted, "{value:?}");
    }
    assert!(HookServers::All.allows("a") && !HookServers::None.allows("a"));
    assert!(named(&["*", "a"]).allows("a") && !named(&["*", "a"]).allows("b"));
}

#[test]
fn effort_is_a_word_in_any_case_or_unset() {
    let effort = |value| with("BUZZ_AGENT_THINKING_EFFORT", value).map(|config| config.effort);
    assert_eq!(effort(" HIGH "), Ok(Some(Effort::High)));
    assert_eq!(effort("  "), Ok(None));
    for word in Effort::ALL {
        assert_eq!(effort(word.as_str()), Ok(Some(word)));
    }
    let text = text(with("BUZZ_AGENT_THINKING_EFFORT", "Extreme"));
    assert!(text.contains("BUZZ_AGENT_THINKING_EFFORT=extreme"), "{text}");
    assert!(text.contains("none|minimal|low|medium|high|xhigh|max"), "{text}");
}

#[test]
fn anthropic_knows_no_effort_below_low() {
    let effort = |word| read("anthropic", &[("BUZZ_AGENT_THINKING_EFFORT", Some(word))]);
    for word in ["none", "minimal"] {
        let text = text(effort(word));
        assert!(text.contains("not valid for Anthropic"), "{text}");
        assert!(text.contains("low|medium|high|xhigh|max"), "{text}");
    }
    assert!(effort("xhigh").is_ok() && effort("max").is_ok());
}

#[test]
fn the_home_of_logs_is_named_or_found() {
    let home = |waxlog, state, home| {
        let changes = [("WAXLOG_HOME", waxlog), ("XDG_STATE_HOME", state), ("HOME", home)];
        read("openai", &changes).map(|config| config.home)
    };
    let path = |text| Ok(Path::new(text).to_owned());
    assert_eq!(home(Some("/logs"), Some("/state"), Some("/h")), path("/logs"));
    assert_eq!(home(Some(""), Some("/state"), Some("/h")), path("/state/waxlog"));
    assert_eq!(home(None, None, Some("/h")), path("/h/.local/state/waxlog"));
    assert_eq!(home(None, None, None), Err(ConfigError::NoHome));
}

#[test]
fn durability_is_process_or_power() {
    let durability = |value| with("WAXLOG_DURABILITY", value).map(|config| config.durability);
    assert_eq!(read("openai", &[]).map(|c| c.durability), Ok(Durability::Process));
    assert_eq!(durability("process"), Ok(Durability::Process));
    assert_eq!(durability("power"), Ok(Durability::Power));
    assert!(text(with("WAXLOG_DURABILITY", "none")).contains("WAXLOG_DURABILITY=none"));
}

#[test]
fn the_debug_form_shows_no_key() {
    for provider in ["anthropic", "openai", "openrouter"] {
        let config = read(provider, &[]).expect("legal");
        let shown = format!("{config:?} {config:#?}");
        assert!(!shown.contains("canary") && shown.contains("***"), "{shown}");
    }
}
