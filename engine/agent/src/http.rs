//! HTTP as the agent uses it: for models, lists of models and logins.

pub use waxlog_http::{
    without_user, Answer, Client as ModelClient, Failure, FailureKind, Outcome, SetupError,
};
