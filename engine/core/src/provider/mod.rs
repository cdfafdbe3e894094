//! Providers: who serves models, under which names and variables, over which wire.
//!
//! A provider is one file with a [`Spec`] and one row of the table; nothing else names one.

mod anthropic;
mod databricks;
mod databricks_v2;
mod openai;
mod openrouter;

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::dialect::Dialect;
use crate::effort::Effort;

/// Every provider, in the order in which error texts list them.
const PROVIDERS: &[&Spec] =
    &[&anthropic::SPEC, &openai::SPEC, &openrouter::SPEC, &databricks::SPEC, &databricks_v2::SPEC];

/// What there is to know of a provider.
#[derive(Debug)]
pub struct Spec {
    /// Its name in records.
    pub name: &'static str,
    /// The words that choose it, in lower case.
    pub words: &'static [&'static str],
    /// The variable that holds its key.
    pub key_variable: &'static str,
    /// Whether it needs a key; without one, the user logs in.
    pub key_required: bool,
    /// The variable that names the model.
    pub model_variable: &'static str,
    /// The variable that holds the base URL.
    pub base_url_variable: &'static str,
    /// The base URL if that is not set; without one it must be.
    pub default_base_url: Option<&'static str>,
    /// How requests show who pays.
    pub credential: Credential,
    /// Headers that go with every request.
    pub headers: &'static [(&'static str, &'static str)],
    /// Whether the user may choose between the two OpenAI wires.
    pub has_api_modes: bool,
    /// Whether there may be a relay mesh behind its model `auto`.
    pub has_mesh: bool,
    /// The least effort that may be configured.
    pub least_effort: Effort,
    /// Which failures are tried again.
    pub retry: Retry,
    /// Where requests for a model go.
    pub route: fn(&Target<'_>) -> Route,
    /// Where its list of models comes from.
    pub models: Models,
}

/// How requests show who pays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential {
    /// `x-api-key`, with the API's version beside it.
    ApiKey,
    /// `authorization: Bearer`.
    Bearer,
}

/// Which rules a failed attempt goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The common rules.
    Common {
        /// Whether refused credentials are tried once more, in case they were renewed meanwhile.
        repeats_auth: bool,
    },
    /// OpenRouter's, which tell more of a failure's reason.
    Openrouter,
}

/// Where a list of models comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Models {
    /// It is the configured model.
    Configured,
    /// The serving endpoints of a Databricks workspace.
    ServingEndpoints,
    /// The AI gateway of a Databricks workspace.
    AiGateway,
}

/// What a route depends on.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The model asked.
    pub model: &'a str,
    /// Which of the two OpenAI wires the user chose.
    pub api: ApiMode,
    /// The base URL.
    pub base_url: &'a str,
    /// Whether the endpoint has told that it wants the Responses wire.
    pub upgraded: bool,
    /// Whether cache marks are wanted.
    pub prompt_caching: bool,
}

/// Where and how a request is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The path below the base URL.
    pub path: String,
    /// The shape of its body.
    pub form: Form,
}

/// The shape of a request's body: two requests of one form differ only in what is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// The wire format.
    pub dialect: Dialect,
    /// Whether the body names the model.
    pub names_model: bool,
    /// Whether cache marks are set.
    pub marks: bool,
}

impl Route {
    fn new(path: impl Into<String>, dialect: Dialect, marks: bool) -> Route {
        Route { path: path.into(), form: Form { dialect, names_model: true, marks } }
    }
}

/// Which of the two OpenAI wires is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiMode {
    /// Responses at OpenAI itself, Chat elsewhere until the endpoint asks for the other.
    Auto,
    /// Chat Completions.
    Chat,
    /// Responses.
    Responses,
}

/// A provider of the table. In records it is its name.
#[derive(Clone, Copy)]
pub struct Provider(&'static Spec);

impl Provider {
    /// The provider that a user's word chooses: trimmed, in any case.
    pub fn of_word(word: &str) -> Option<Provider> {
        let word = word.trim().to_lowercase();
        PROVIDERS.iter().find(|spec| spec.words.contains(&word.as_str())).map(|spec| Provider(spec))
    }

    /// What there is to know of it.
    pub fn spec(self) -> &'static Spec {
        self.0
    }

    /// All of them, in the order of the table.
    pub fn all() -> impl Iterator<Item = Provider> {
        PROVIDERS.iter().map(|spec| Provider(spec))
    }

    /// The words that choose a provider, for error texts.
    pub fn words() -> String {
        let words: Vec<&str> = PROVIDERS.iter().map(|spec| spec.words[0]).collect();
        words.join(", ")
    }
}

impl PartialEq for Provider {
    fn eq(&self, other: &Provider) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Provider {}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl Serialize for Provider {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name)
    }
}

impl<'de> Deserialize<'de> for Provider {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Provider, D::Error> {
        let name = String::deserialize(deserializer)?;
        let found = Provider::all().find(|provider| provider.spec().name == name);
        found.ok_or_else(|| serde::de::Error::custom(format!("unknown provider `{name}`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(word: &str, model: &str) -> Route {
        let target = Target {
            model,
            api: ApiMode::Auto,
            base_url: "http://127.0.0.1:1/v1",
            upgraded: false,
            prompt_caching: true,
        };
        (Provider::of_word(word).expect("a provider").spec().route)(&target)
    }

    #[test]
    fn words_choose_providers_in_any_case_and_padding() {
        for (word, name) in [
            (" OpenAI ", "openai"),
            ("openai-compat", "openai"),
            ("databricks-v2", "databricks_v2"),
            ("ANTHROPIC", "anthropic"),
        ] {
            assert_eq!(Provider::of_word(word).expect(word).spec().name, name);
        }
        assert!(Provider::of_word("OpenAIish").is_none());
    }

    #[test]
    fn a_databricks_path_names_the_model_and_its_body_does_not() {
        let route = route("databricks", "goose-claude-4-6-sonnet");
        assert_eq!(route.path, "/serving-endpoints/goose-claude-4-6-sonnet/invocations");
        assert!(!route.form.names_model);
    }

    #[test]
    fn an_ai_gateway_routes_by_the_family_in_the_name() {
        for name in ["gpt-4o", "gpt5", "databricks-gpt-5-5", "x-luna", "team-sol", "terra"] {
            assert_eq!(route("databricks_v2", name).path, "/ai-gateway/openai/v1/responses", "{name}");
        }
        for name in ["databricks-claude-opus-4-7", "Opus", "SONNET", "haiku", "mythos", "fable"] {
            assert_eq!(route("databricks_v2", name).path, "/ai-gateway/anthropic/v1/messages", "{name}");
        }
        for name in
            ["gemini", "custom", "consolidated-llama", "terraform-coder", "corpus-reranker", "octopus-model"]
        {
            assert_eq!(route("databricks_v2", name).path, "/ai-gateway/mlflow/v1/chat/completions", "{name}");
        }
    }

    #[test]
    fn openrouter_marks_anthropic_models_only() {
        assert!(route("openrouter", "anthropic/claude-sonnet-4.5").form.marks);
        assert!(!route("openrouter", "Anthropic/claude").form.marks);
        assert!(!route("openrouter", "openai/gpt-5").form.marks);
    }

    #[test]
    fn openai_itself_is_asked_over_responses_unless_told_otherwise() {
        let dialect = |api, base_url, upgraded| {
            let target = Target { model: "m", api, base_url, upgraded, prompt_caching: true };
            (Provider::of_word("openai").expect("openai").spec().route)(&target).form.dialect
        };
        for host in ["https://api.openai.com/v1", "http://api.openai.com", "https://eu.api.openai.com:1/v1"] {
            assert_eq!(dialect(ApiMode::Auto, host, false), Dialect::Responses, "{host}");
        }
        for host in [
            "http://localhost:1/v1",
            "https://openrouter.ai/api/v1",
            "https://api.openai.com.evil.example/v1",
            "not a url",
        ] {
            assert_eq!(dialect(ApiMode::Auto, host, false), Dialect::Chat, "{host}");
            assert_eq!(dialect(ApiMode::Auto, host, true), Dialect::Responses, "{host}");
            assert_eq!(dialect(ApiMode::Responses, host, false), Dialect::Responses, "{host}");
        }
        assert_eq!(dialect(ApiMode::Chat, "https://api.openai.com/v1", false), Dialect::Chat);
    }
}
