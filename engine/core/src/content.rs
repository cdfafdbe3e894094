//! Content parts: what a tool's result is made of once it is in history.

use serde::{Deserialize, Serialize};

/// One part of a tool result, in the order in which the tool gave it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Text as the model sees it, cut to the limits.
    Text(String),
    /// An image, never cut: base64 data and its MIME type.
    Image {
        /// The base64 text, untouched.
        data: String,
        /// The MIME type, untouched.
        mime: String,
    },
}

/// The text form of `parts`, as the client and a person see it: parts joined with one `\n`, an image as
/// `[image: <mime>, <n> base64 bytes]`.
pub fn text_form(parts: &[Part]) -> String {
    let mut out = String::new();
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Image { data, mime } => {
                out.push_str(&format!("[image: {mime}, {} base64 bytes]", data.len()));
            }
        }
    }
    out
}
