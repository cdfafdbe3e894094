//! `view_image`: a picture from a file, an address or the call itself, in a size that a model can take.

mod fetch;
mod kinds;
mod shrink;
mod source;

use std::path::Path;
use std::sync::Mutex;

use async_channel::Receiver;
use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use serde::Deserialize;
use serde_json::{Map, Value};

use self::source::Source;
use crate::server::Stop;
use crate::tool::{arguments, Outcome, Said, ToolError};
use crate::variables::Variables;

/// Longest edge unless the caller says otherwise, in pixels.
pub(crate) const EDGE_DEFAULT: u32 = 1568;
/// What the caller may ask of the longest edge, in pixels; what is beyond is brought within.
pub(crate) const EDGE_RANGE: (u32, u32) = (64, 2048);
/// Largest source, in bytes: of a file, of a download, of a data URL's text.
pub(crate) const SOURCE_MAX_BYTES: usize = 20 * 1024 * 1024;

#[derive(Deserialize)]
struct Arguments {
    source: String,
    #[serde(default)]
    max_dim: Option<u64>,
    #[serde(default)]
    workdir: Option<String>,
}

/// Shows pictures.
#[derive(Debug)]
pub(crate) struct Images {
    variables: Variables,
    /// One picture is decoded at a time: it may take much memory.
    decoding: Mutex<()>,
}

impl Images {
    /// Fetches with what `variables` say of the relay.
    pub(crate) fn new(variables: Variables) -> Self {
        Self { variables, decoding: Mutex::new(()) }
    }

    /// Shows a picture, unless `stop` comes while it is fetched.
    pub(crate) fn call(&self, cwd: &Path, given: Map<String, Value>, stop: &Receiver<Stop>) -> Outcome {
        let wanted: Arguments = arguments(given)?;
        let source = Source::read(&wanted.source)?;
        let bytes = match &source {
            Source::File(path) => source::read_file(cwd, wanted.workdir.as_deref(), path)?,
            Source::Data(data) => source::decode(data)?,
            Source::Url(url) => fetch::fetch(url, &self.variables, stop)?,
        };
        let edge = wanted.max_dim.map_or(EDGE_DEFAULT, |edge| u32::try_from(edge).unwrap_or(u32::MAX));
        let edge = edge.clamp(EDGE_RANGE.0, EDGE_RANGE.1);
        let _one_at_a_time = self.decoding.lock();
        let shown = shrink::shrink(bytes, edge)?;
        let resized = match shown.original {
            Some((width, height)) => format!(" (resized from {width}\u{d7}{height})"),
            None => String::new(),
        };
        let (width, height) = shown.size;
        let caption = format!(
            "{width}\u{d7}{height}, {}{resized} ({} from {source})",
            readable_size(shown.bytes.len()),
            shown.mime
        );
        Ok(Said::Picture { caption, data: STANDARD.encode(&shown.bytes), mime: shown.mime })
    }
}

impl ToolError {
    /// Bad input, named by its source.
    fn of_image(what: impl std::fmt::Display) -> Self {
        ToolError::Invalid(what.to_string())
    }
}

fn readable_size(bytes: usize) -> String {
    const KIB: f64 = 1024.0;
    match bytes as f64 {
        size if size < KIB => format!("{bytes} B"),
        size if size < KIB * KIB => format!("{:.1} KiB", size / KIB),
        size => format!("{:.2} MiB", size / KIB / KIB),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_in_their_unit() {
        assert_eq!(readable_size(1023), "1023 B");
        assert_eq!(readable_size(1536), "1.5 KiB");
        assert_eq!(readable_size(3 * 1024 * 1024), "3.00 MiB");
    }
}
