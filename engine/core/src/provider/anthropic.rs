//! Anthropic's own endpoint.

use super::{Credential, Models, Retry, Route, Spec, Target};
use crate::dialect::Dialect;
use crate::effort::Effort;

pub(super) const SPEC: Spec = Spec {
    name: "anthropic",
    words: &["anthropic"],
    key_variable: "ANTHROPIC_API_KEY",
    key_required: true,
    model_variable: "ANTHROPIC_MODEL",
    base_url_variable: "ANTHROPIC_BASE_URL",
    default_base_url: Some("https://api.anthropic.com"),
    credential: Credential::ApiKey,
    headers: &[],
    has_api_modes: false,
    has_mesh: false,
    least_effort: Effort::Low,
    retry: Retry::Common { repeats_auth: false },
    route,
    models: Models::Configured,
};

fn route(target: &Target<'_>) -> Route {
    Route::new("/v1/messages", Dialect::Anthropic, target.prompt_caching)
}
