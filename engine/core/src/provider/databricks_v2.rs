//! The Databricks AI gateway, which has a door for each family of models.

use super::{databricks, Models, Route, Spec, Target};
use crate::dialect::Dialect;

pub(super) const SPEC: Spec = Spec {
    name: "databricks_v2",
    words: &["databricks_v2", "databricks-v2"],
    route,
    models: Models::AiGateway,
    ..databricks::SPEC
};

fn route(target: &Target<'_>) -> Route {
    let name = target.model.to_lowercase();
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let is_gpt = |word: &str| word.starts_with("gpt") || matches!(word, "sol" | "luna" | "terra");
    let is_claude = |word: &str| matches!(word, "claude" | "opus" | "sonnet" | "haiku" | "mythos" | "fable");
    if words.clone().any(is_gpt) {
        Route::new("/ai-gateway/openai/v1/responses", Dialect::Responses, false)
    } else if words.any(is_claude) {
        Route::new("/ai-gateway/anthropic/v1/messages", Dialect::Anthropic, target.prompt_caching)
    } else {
        Route::new("/ai-gateway/mlflow/v1/chat/completions", Dialect::Chat, false)
    }
}
