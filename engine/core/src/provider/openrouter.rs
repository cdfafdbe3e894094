//! OpenRouter: Chat Completions with its own words for limits, reasoning and caching.

use super::{Credential, Models, Retry, Route, Spec, Target};
use crate::dialect::Dialect;
use crate::effort::Effort;

pub(super) const SPEC: Spec = Spec {
    name: "openrouter",
    words: &["openrouter"],
    key_variable: "OPENROUTER_API_KEY",
    key_required: true,
    model_variable: "OPENROUTER_MODEL",
    base_url_variable: "OPENROUTER_BASE_URL",
    default_base_url: Some("https://openrouter.ai/api/v1"),
    credential: Credential::Bearer,
    headers: &[("HTTP-Referer", "https://github.com/block/buzz"), ("X-OpenRouter-Title", "Buzz")],
    has_api_modes: false,
    has_mesh: false,
    least_effort: Effort::None,
    retry: Retry::Openrouter,
    route,
    models: Models::Configured,
};

fn route(target: &Target<'_>) -> Route {
    let marks = target.prompt_caching && target.model.starts_with("anthropic/");
    Route::new("/chat/completions", Dialect::Openrouter, marks)
}
