//! Who is asked, with which key, model and address.

use waxlog_core::provider::ApiMode;

use super::*;

#[test]
fn no_or_a_blank_provider_names_the_variable() {
    for value in [None, Some(""), Some("  ")] {
        let text = text(read("", &[("BUZZ_AGENT_PROVIDER", value)]));
        assert!(text.starts_with("config: BUZZ_AGENT_PROVIDER is required"), "{text}");
    }
}

#[test]
fn an_unknown_provider_is_named_as_typed() {
    let text = text(read("MistralAI", &[]));
    assert!(text.starts_with("config: BUZZ_AGENT_PROVIDER=MistralAI not supported"), "{text}");
}

#[test]
fn providers_are_known_padded_in_any_case_and_by_alias() {
    for (word, name) in [
        (" Anthropic ", "anthropic"),
        (" OpenAI ", "openai"),
        ("openai-compat", "openai"),
        ("OPENROUTER", "openrouter"),
        ("databricks", "databricks"),
        ("databricks_v2", "databricks_v2"),
        ("databricks-v2", "databricks_v2"),
    ] {
        assert_eq!(read(word, &[]).map(|c| c.provider.provider.spec().name), Ok(name), "{word}");
    }
}

#[test]
fn a_missing_or_blank_key_is_named() {
    for (provider, key) in [
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("openai", "OPENAI_COMPAT_API_KEY"),
        ("openrouter", "OPENROUTER_API_KEY"),
    ] {
        for value in [None, Some(" ")] {
            assert_eq!(text(read(provider, &[(key, value)])), format!("config: {key} required"));
        }
    }
}

#[test]
fn databricks_needs_a_model_then_a_host_and_no_token() {
    let without = |names: &[&'static str]| {
        let changes: Vec<_> = names.iter().map(|name| (*name, None)).collect();
        read("databricks", &changes)
    };
    assert_eq!(text(without(&["DATABRICKS_MODEL", "DATABRICKS_HOST"])), "config: DATABRICKS_MODEL required");
    assert_eq!(text(without(&["DATABRICKS_HOST"])), "config: DATABRICKS_HOST required");
    assert_eq!(without(&[]).map(|c| c.provider.key), Ok(None));
    let config = read("databricks", &[("DATABRICKS_TOKEN", Some("dapi"))]).expect("legal");
    assert_eq!(config.provider.key.map(|key| key.expose().clone()).as_deref(), Some("dapi"));
}

#[test]
fn the_general_model_beats_the_one_of_the_provider() {
    let model = |general, own| {
        let changes = [("BUZZ_AGENT_MODEL", general), ("OPENAI_COMPAT_MODEL", own)];
        read("openai", &changes).map(|config| config.provider.model)
    };
    assert_eq!(model(Some("general"), Some("own")).as_deref(), Ok("general"));
    assert_eq!(model(None, Some("own")).as_deref(), Ok("own"));
    assert_eq!(model(Some(" "), Some("own")).as_deref(), Ok("own"));
    assert_eq!(model(None, Some(" own ")).as_deref(), Ok(" own "));
    for own in [None, Some("")] {
        let name = "OPENAI_COMPAT_MODEL";
        assert_eq!(model(None, own), Err(ConfigError::Required { name }));
    }
}

#[test]
fn a_base_url_loses_its_slashes_and_a_blank_one_is_the_default() {
    let url = |value| {
        let config = read("anthropic", &[("ANTHROPIC_BASE_URL", value)]);
        config.map(|config| config.provider.base_url)
    };
    assert_eq!(url(None).as_deref(), Ok("https://api.anthropic.com"));
    assert_eq!(url(Some("")).as_deref(), Ok("https://api.anthropic.com"));
    assert_eq!(url(Some("http://h/x//")).as_deref(), Ok("http://h/x"));
}

#[test]
fn the_api_form_is_read_for_openai_only() {
    for (word, api) in [
        (" AUTO ", ApiMode::Auto),
        ("", ApiMode::Auto),
        ("chat-completions", ApiMode::Chat),
        ("chat_completions", ApiMode::Chat),
        ("Responses", ApiMode::Responses),
    ] {
        assert_eq!(with("OPENAI_COMPAT_API", word).map(|c| c.provider.api), Ok(api), "{word}");
    }
    let text = text(with("OPENAI_COMPAT_API", "Soap"));
    assert!(text.starts_with("config: OPENAI_COMPAT_API=Soap not supported ("), "{text}");
    assert!(read("anthropic", &[("OPENAI_COMPAT_API", Some("Soap"))]).is_ok());
}
