//! OpenAI, and everything else that speaks one of its two wires.

use super::{ApiMode, Credential, Models, Retry, Route, Spec, Target};
use crate::dialect::Dialect;
use crate::effort::Effort;

pub(super) const SPEC: Spec = Spec {
    name: "openai",
    words: &["openai", "openai-compat"],
    key_variable: "OPENAI_COMPAT_API_KEY",
    key_required: true,
    model_variable: "OPENAI_COMPAT_MODEL",
    base_url_variable: "OPENAI_COMPAT_BASE_URL",
    default_base_url: Some("https://api.openai.com/v1"),
    credential: Credential::Bearer,
    headers: &[],
    has_api_modes: true,
    has_mesh: true,
    least_effort: Effort::None,
    retry: Retry::Common { repeats_auth: true },
    route,
    models: Models::Configured,
};

fn route(target: &Target<'_>) -> Route {
    let responses = match target.api {
        ApiMode::Chat => false,
        ApiMode::Responses => true,
        ApiMode::Auto => target.upgraded || is_openai_host(target.base_url),
    };
    if responses {
        Route::new("/responses", Dialect::Responses, false)
    } else {
        Route::new("/chat/completions", Dialect::Chat, false)
    }
}

/// Whether a base URL leads to OpenAI itself: by the host, not by what the text happens to contain.
fn is_openai_host(base_url: &str) -> bool {
    let rest = ["https://", "http://"].iter().find_map(|scheme| base_url.strip_prefix(scheme));
    let host = rest.and_then(|rest| rest.split(['/', ':']).next());
    host.is_some_and(|host| host == "api.openai.com" || host.ends_with(".openai.com"))
}
