//! What a tool takes and what it gives: arguments by their schema, and the three shapes of a failure.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use waxlog_core::mcp::answer;

/// What a tool has to say when it succeeds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Said {
    /// One block of text.
    Text(String),
    /// A caption and a picture.
    Picture {
        /// What there is to know of it, in words.
        caption: String,
        /// The bytes in base64.
        data: String,
        /// Their media type.
        mime: &'static str,
    },
}

/// How a call fails. The text says what was wrong, what the limit is and what to do next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ToolError {
    /// What was asked cannot be done: a path, a size, a text that is not there.
    #[error("{0}")]
    Invalid(String),
    /// It could be done, but the machine did not let us.
    #[error("{0}")]
    Trouble(String),
    /// The tool's own refusal, which the model reads as a failed result.
    #[error("{0}")]
    Refused(String),
    /// The server ends: there is nobody to answer.
    #[error("the server is closing")]
    Closing,
}

impl ToolError {
    /// An I/O error, with what was being done.
    pub(crate) fn io(what: impl std::fmt::Display, error: &std::io::Error) -> Self {
        ToolError::Trouble(format!("{what}: {error}"))
    }

    /// The result of a call that was taken back.
    pub(crate) fn cancelled() -> Self {
        ToolError::Refused("cancelled".to_owned())
    }
}

/// What came of a call.
pub(crate) type Outcome = Result<Said, ToolError>;

/// Reads arguments in the shape of a tool.
pub(crate) fn arguments<T: DeserializeOwned>(given: Map<String, Value>) -> Result<T, ToolError> {
    serde_json::from_value(Value::Object(given))
        .map_err(|error| ToolError::Refused(format!("failed to deserialize parameters: {error}")))
}

/// The line that answers a call, if it is to be answered.
pub(crate) fn line(id: &Value, outcome: Outcome) -> Option<Vec<u8>> {
    Some(match outcome {
        Ok(Said::Text(text)) => answer::result(id, answer::text_result(&text, false)),
        Ok(Said::Picture { caption, data, mime }) => {
            let mut result = answer::text_result(&caption, false);
            if let Some(blocks) = result["content"].as_array_mut() {
                blocks.push(serde_json::json!({ "data": data, "mimeType": mime, "type": "image" }));
            }
            answer::result(id, result)
        }
        Err(ToolError::Invalid(text)) => answer::error(Some(id), answer::INVALID_PARAMS, &text),
        Err(ToolError::Trouble(text)) => answer::error(Some(id), answer::INTERNAL_ERROR, &text),
        Err(ToolError::Refused(text)) => answer::result(id, answer::text_result(&text, true)),
        Err(ToolError::Closing) => return None,
    })
}
