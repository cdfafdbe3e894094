//! Databricks serving endpoints: Chat Completions with the model in the path.

use super::{Credential, Form, Models, Retry, Route, Spec, Target};
use crate::dialect::Dialect;
use crate::effort::Effort;

pub(super) const SPEC: Spec = Spec {
    name: "databricks",
    words: &["databricks"],
    key_variable: "DATABRICKS_TOKEN",
    key_required: false,
    model_variable: "DATABRICKS_MODEL",
    base_url_variable: "DATABRICKS_HOST",
    default_base_url: None,
    credential: Credential::Bearer,
    headers: &[],
    has_api_modes: false,
    has_mesh: false,
    least_effort: Effort::None,
    retry: Retry::Common { repeats_auth: true },
    route,
    models: Models::ServingEndpoints,
};

fn route(target: &Target<'_>) -> Route {
    Route {
        path: format!("/serving-endpoints/{}/invocations", target.model),
        form: Form { dialect: Dialect::Chat, names_model: false, marks: false },
    }
}
