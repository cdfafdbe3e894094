//! Where a picture comes from, and the bytes of those that need no network.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use base64::engine::general_purpose::STANDARD;
use base64::Engine;

use super::SOURCE_MAX_BYTES;
use crate::files::locate;
use crate::tool::ToolError;

/// Where a picture comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A path.
    File(String),
    /// The base64 of a data URL.
    Data(String),
    /// An address on the web.
    Url(String),
}

impl Source {
    /// Reads what the caller wrote.
    pub(super) fn read(given: &str) -> Result<Self, ToolError> {
        let given = given.trim();
        if let Some(data) = strip_word(given, "data:") {
            return data_url(data);
        }
        match given.split_once("://") {
            Some((scheme, _)) if is_web(scheme) => Ok(Source::Url(given.to_owned())),
            Some((scheme, _)) if is_scheme(scheme) => {
                let text =
                    format!("unsupported URL scheme {scheme:?}; use http, https, a data URL or a path");
                Err(ToolError::of_image(text))
            }
            _ => Ok(Source::File(given.to_owned())),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::File(path) => f.write_str(path),
            Source::Data(_) => f.write_str("a data URL"),
            Source::Url(url) => f.write_str(&waxlog_http::without_user(url)),
        }
    }
}

fn data_url(rest: &str) -> Result<Source, ToolError> {
    if rest.len() > SOURCE_MAX_BYTES {
        return Err(ToolError::of_image(format!(
            "the data URL has {} bytes, the limit is {SOURCE_MAX_BYTES}; save the picture to a file and make it smaller",
            rest.len()
        )));
    }
    let Some((head, data)) = rest.split_once(',') else {
        return Err(ToolError::of_image("the data URL has no comma; write data:image/png;base64,..."));
    };
    let (mime, flags) = head.split_once(';').unwrap_or((head, ""));
    if strip_word(mime, "image/").is_none() {
        return Err(ToolError::of_image(format!("the data URL is not an image but {mime:?}")));
    }
    if !flags.split(';').any(|flag| flag.eq_ignore_ascii_case("base64")) {
        return Err(ToolError::of_image("the data URL is not base64; write data:image/png;base64,..."));
    }
    Ok(Source::Data(data.to_owned()))
}

fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let (head, rest) = text.split_at_checked(word.len())?;
    head.eq_ignore_ascii_case(word).then_some(rest)
}

fn is_web(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

fn is_scheme(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// The bytes behind the base64 of a data URL.
pub(super) fn decode(data: &str) -> Result<Vec<u8>, ToolError> {
    STANDARD
        .decode(data)
        .map_err(|error| ToolError::of_image(format!("the data URL's base64 is broken: {error}")))
}

/// The bytes of a file.
pub(super) fn read_file(cwd: &Path, workdir: Option<&str>, shown: &str) -> Result<Vec<u8>, ToolError> {
    let path = locate(cwd, workdir, shown)?;
    let reading = |error| ToolError::io(format_args!("cannot read {shown}"), &error);
    let metadata = path.metadata().map_err(reading)?;
    if !metadata.is_file() {
        return Err(ToolError::of_image(format!("not a regular file: {shown}")));
    }
    let too_large = |bytes: u64| {
        ToolError::of_image(format!(
            "{shown} has {bytes} bytes, the limit is {SOURCE_MAX_BYTES}; make the picture smaller first"
        ))
    };
    if metadata.len() > SOURCE_MAX_BYTES as u64 {
        return Err(too_large(metadata.len()));
    }
    let mut bytes = Vec::new();
    let file = File::open(&path).map_err(reading)?;
    file.take(SOURCE_MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(reading)?;
    match bytes.len() > SOURCE_MAX_BYTES {
        true => Err(too_large(bytes.len() as u64)),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(given: &str) -> String {
        Source::read(given).expect_err("refused").to_string()
    }

    #[test]
    fn a_source_is_a_path_unless_it_says_otherwise() {
        assert_eq!(Source::read("  a.png "), Ok(Source::File("a.png".to_owned())));
        assert_eq!(Source::read("HTTPS://a/b"), Ok(Source::Url("HTTPS://a/b".to_owned())));
        assert_eq!(Source::read("data:image/png;charset=x;base64,AA=="), Ok(Source::Data("AA==".to_owned())));
    }

    #[test]
    fn what_is_no_picture_is_refused_with_a_way_out() {
        assert!(refused("ftp://a/b").contains("unsupported URL scheme"));
        assert!(refused("data:text/plain;base64,AA==").contains("not an image"));
        assert!(refused("data:image/png,abc").contains("base64"));
        assert!(refused("data:image/png;base64").contains("comma"));
        let long = format!("data:image/png;base64,{}", "A".repeat(30 * 1024 * 1024));
        assert!(refused(&long).contains("the limit is 20971520"));
        assert!(decode("!!!!").expect_err("refused").to_string().contains("base64"));
    }

    #[test]
    fn a_url_is_shown_without_its_password() {
        let source = Source::read("https://user:canary@host/a.png").expect("a source");
        assert!(!source.to_string().contains("canary"));
    }
}
