//! What the answer to a call means: content for the history, cut to its limits, or an error for the model.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::decode::{decode, Inbound, Outcome, RpcError};
use super::elide::{clamp, elide_middle, head};
use crate::content::Part;
use crate::json::compact;

/// Most bytes of one result, text and images together.
pub const RESULT_TOTAL_MAX_BYTES: usize = 8 * 1024 * 1024;

/// Most bytes of text in one result unless the settings say otherwise.
pub const RESULT_TEXT_DEFAULT_BYTES: usize = 50 * 1024;

/// How much of a MIME type or an address stands in a marker, in bytes.
const LABEL_MAX_BYTES: usize = 256;

/// The limits of one result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultLimits {
    /// For its text, in bytes.
    pub text_bytes: usize,
    /// For text and images together, in bytes.
    pub total_bytes: usize,
}

impl Default for ResultLimits {
    fn default() -> Self {
        Self { text_bytes: RESULT_TEXT_DEFAULT_BYTES, total_bytes: RESULT_TOTAL_MAX_BYTES }
    }
}

/// What a call gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallResult {
    /// What the model is shown, in order.
    pub parts: Vec<Part>,
    /// Whether it is an error to the model.
    pub is_error: bool,
    /// Whether the tool gave it. If not, the call failed on its way and `parts` say how.
    pub returned: bool,
}

impl CallResult {
    /// A call that failed on its way.
    pub fn not_returned(text: impl Into<String>) -> Self {
        Self { parts: vec![Part::Text(text.into())], is_error: true, returned: false }
    }
}

/// Reads the recorded answer `line` to a call of `tool` (its qualified name).
///
/// Total: a line that is no answer, or holds content of an unknown type, gives an error result.
pub fn shape_result(tool: &str, line: &[u8], limits: ResultLimits) -> CallResult {
    let Inbound::Response { outcome, .. } = decode(line) else {
        return unexpected(tool);
    };
    match outcome {
        Outcome::Error(error) => rejected(&error, limits),
        Outcome::Result(result) => convert(&result, limits).unwrap_or_else(|| unexpected(tool)),
    }
}

/// The result of a call whose server went away before it answered.
pub fn transport_closed(tool: &str) -> CallResult {
    CallResult::not_returned(format!("mcp: call {tool}: Transport closed"))
}

/// The result of a call that took longer than `after_secs` seconds.
pub fn timed_out(tool: &str, after_secs: u64) -> CallResult {
    CallResult::not_returned(format!(
        "tool: timeout after {after_secs}s: {tool} did not answer; its server was stopped and the effects \
         of the call are unknown. Split the work into faster calls, or run it in the background and look \
         later."
    ))
}

/// The result of a call that the client took back.
pub fn cancelled() -> CallResult {
    CallResult::not_returned("cancelled")
}

fn unexpected(tool: &str) -> CallResult {
    CallResult::not_returned(format!("mcp: call {tool}: unexpected response type"))
}

fn rejected(error: &RpcError, limits: ResultLimits) -> CallResult {
    let RpcError { code, message, .. } = error;
    let mut text = format!("Tool call rejected: Mcp error: {code}: {message}");
    if let Some(data) = &error.data {
        text.push_str(&format!("({})", compact(data)));
    }
    CallResult { parts: vec![Part::Text(clamp(&text, limits.text_bytes))], is_error: true, returned: true }
}

/// The result's content, or nothing if a part of it has an unknown shape.
fn convert(result: &Value, limits: ResultLimits) -> Option<CallResult> {
    let result = result.as_object()?;
    let is_error = match result.get("isError") {
        None | Some(Value::Null) => false,
        Some(flag) => flag.as_bool()?,
    };
    let blocks = match result.get("content") {
        None | Some(Value::Null) => &[],
        Some(content) => content.as_array()?.as_slice(),
    };
    let mut shaper = Shaper::new(limits);
    for block in blocks {
        shaper.take(block)?;
    }
    Some(CallResult { parts: shaper.finish(), is_error, returned: true })
}

/// Gathers text until an image or the end, and keeps both within their limits.
struct Shaper {
    limits: ResultLimits,
    parts: Vec<Part>,
    text: String,
    used_text_bytes: usize,
    used_bytes: usize,
}

impl Shaper {
    fn new(limits: ResultLimits) -> Self {
        Self { limits, parts: Vec::new(), text: String::new(), used_text_bytes: 0, used_bytes: 0 }
    }

    /// Takes one content block; nothing is returned if its shape is unknown.
    fn take(&mut self, block: &Value) -> Option<()> {
        let field = |name: &str| block.get(name).and_then(Value::as_str);
        match field("type")? {
            "text" => self.push_text(field("text")?),
            "image" => self.push_image(field("data")?, field("mimeType")?),
            "audio" => {
                let (data, mime) = (field("data")?, label(field("mimeType")?));
                self.push_text(&format!("[audio elided: {mime}, {} bytes]", data.len()));
            }
            "resource_link" => self.push_text(&format!("[resource: {}]", label(field("uri")?))),
            "resource" => {
                block.get("resource")?.as_object()?;
                self.push_text("[resource elided]");
            }
            _ => return None,
        }
        Some(())
    }

    fn push_text(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }

    fn push_image(&mut self, data: &str, mime: &str) {
        let image_bytes = data.len() + mime.len();
        let text_bytes = self.text.len().min(self.text_budget());
        let fits = self.used_bytes + text_bytes + image_bytes <= self.limits.total_bytes;
        if !fits {
            let (mime, bytes) = (label(mime), data.len());
            self.push_text(&format!(
                "[image elided: {mime}, {bytes} base64 bytes exceeds remaining tool-result budget]"
            ));
            return;
        }
        self.flush_text();
        self.used_bytes += image_bytes;
        self.parts.push(Part::Image { data: data.to_owned(), mime: mime.to_owned() });
    }

    fn text_budget(&self) -> usize {
        let text = self.limits.text_bytes.saturating_sub(self.used_text_bytes);
        let total = self.limits.total_bytes.saturating_sub(self.used_bytes);
        text.min(total)
    }

    fn flush_text(&mut self) {
        let text = elide_middle(&self.text, self.text_budget());
        self.text.clear();
        if text.is_empty() {
            return;
        }
        self.used_text_bytes += text.len();
        self.used_bytes += text.len();
        self.parts.push(Part::Text(text));
    }

    fn finish(mut self) -> Vec<Part> {
        self.flush_text();
        self.parts
    }
}

/// The start of a MIME type or an address: enough to recognise it in a marker.
fn label(text: &str) -> &str {
    head(text, LABEL_MAX_BYTES)
}

#[cfg(test)]
#[path = "result_tests.rs"]
mod tests;
