//! Pictures and videos on a relay (Blossom): what may be uploaded, and how it gets there and back.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::Engine;
use serde_json::Value;
use sha2::{Digest, Sha256};
use url::Url;
use waxlog_http::{Client, Limits, Method};

use super::http::{now, read, HttpError, RelayHttp, MAX_ERROR_BYTES};
use super::retry::Call;
use crate::event::{Draft, Tag};
use crate::kind::BLOB_AUTH;
use crate::Secret;

/// Largest picture, in bytes.
pub const MAX_IMAGE_BYTES: u64 = 50 * 1024 * 1024;
/// Largest video, in bytes.
pub const MAX_VIDEO_BYTES: u64 = 500 * 1024 * 1024;
/// How long a picture's upload, or any download, may take.
pub const IMAGE_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a video's upload may take.
pub const VIDEO_TIMEOUT: Duration = Duration::from_secs(600);
const IMAGE_PROOF_SECONDS: u64 = 600;
const VIDEO_PROOF_SECONDS: u64 = 3600;
const VIDEO: &str = "video/mp4";
/// How much of a file is held in one piece, in bytes.
const CHUNK_BYTES: usize = 256 * 1024;
/// Longest extension of a blob's name, in bytes.
const MAX_EXTENSION_BYTES: usize = 8;

/// A picture or video that may be uploaded.
#[derive(Debug, Clone)]
pub struct Media {
    mime: &'static str,
    sha256: String,
    bytes: u64,
    chunks: Vec<Arc<[u8]>>,
}

/// Why something is no picture or video that may be uploaded.
#[derive(Debug, thiserror::Error)]
pub enum MediaError {
    /// By its first bytes it is something else.
    #[error("not a JPEG, PNG, GIF or WebP picture and not an MP4 video; convert it")]
    Type,
    /// It is too large.
    #[error("a {what} may have {limit} bytes at most; make it smaller")]
    TooLarge {
        /// Picture or video.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// It cannot be read.
    #[error("cannot be read: {0}")]
    Read(#[from] io::Error),
}

impl Media {
    /// Reads a picture or video to its end, or to where it is too large.
    pub fn read(mut from: impl Read) -> Result<Self, MediaError> {
        let first = chunk(&mut from)?;
        let mime = sniff(&first).ok_or(MediaError::Type)?;
        let (what, limit) = match mime {
            VIDEO => ("video", MAX_VIDEO_BYTES),
            _ => ("picture", MAX_IMAGE_BYTES),
        };
        let (mut hash, mut bytes, mut chunks, mut next) = (Sha256::new(), 0, Vec::new(), first);
        while !next.is_empty() {
            bytes += next.len() as u64;
            if bytes > limit {
                return Err(MediaError::TooLarge { what, limit });
            }
            hash.update(&next);
            chunks.push(Arc::from(next));
            next = chunk(&mut from)?;
        }
        Ok(Self { mime, sha256: hex::encode(hash.finalize()), bytes, chunks })
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn is_video(&self) -> bool {
        self.mime == VIDEO
    }
}

fn chunk(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(CHUNK_BYTES as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The type by the first bytes; nothing for one that is not taken.
fn sniff(start: &[u8]) -> Option<&'static str> {
    match start {
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => Some(VIDEO),
        _ => None,
    }
}

/// What a relay says of a blob that it keeps.
#[derive(Debug, Clone, PartialEq)]
pub struct Blob(Value);

impl Blob {
    /// The descriptor as it came.
    pub fn descriptor(&self) -> &Value {
        &self.0
    }

    fn text(&self, field: &str) -> String {
        match &self.0[field] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        }
    }

    /// The tag that a message has for it.
    pub fn imeta(&self) -> Tag {
        let mut tag = vec!["imeta".to_owned()];
        for (word, field) in [("url", "url"), ("m", "type"), ("x", "sha256"), ("size", "size")] {
            tag.push(format!("{word} {}", self.text(field)));
        }
        for field in ["dim", "blurhash", "thumb", "duration"] {
            if !self.0[field].is_null() {
                tag.push(format!("{field} {}", self.text(field)));
            }
        }
        tag
    }

    /// The link that a message has for it.
    pub fn markdown(&self) -> String {
        let word = if self.text("type").starts_with("video/") { "video" } else { "image" };
        format!("![{word}]({})", self.text("url"))
    }
}

impl RelayHttp {
    /// Uploads a picture or video.
    pub async fn upload(&self, media: &Media) -> Result<Blob, HttpError> {
        let first = format!("{}/upload", self.base);
        match self.put(&first, media).await {
            Err(HttpError::Status { status: 404 | 405, .. }) => {
                self.put(&format!("{}/media/upload", self.base), media).await
            }
            done => done,
        }
    }

    async fn put(&self, url: &str, media: &Media) -> Result<Blob, HttpError> {
        let timeout = if media.is_video() { VIDEO_TIMEOUT } else { IMAGE_TIMEOUT };
        let answer = self
            .attempts(Call::Read, async || {
                let mut headers = vec![
                    ("authorization", self.upload_proof(media)),
                    ("content-type", Secret::new(media.mime.to_owned())),
                    ("x-sha-256", Secret::new(media.sha256.clone())),
                ];
                headers.extend(self.owner_header());
                self.client
                    .send_body(Method::Put, url, &headers, &media.chunks.iter().cloned().collect(), timeout)
                    .await
            })
            .await?;
        read(url, "a blob's descriptor", &answer).map(|object: serde_json::Map<_, _>| Blob(object.into()))
    }

    /// The bytes of a blob; `segment` is what [`segment`] gave.
    pub async fn download(&self, segment: &str) -> Result<Vec<u8>, HttpError> {
        let url = format!("{}/media/{segment}", self.base);
        let client = Client::with_limits(Limits {
            connect_timeout: self.settings.connect_timeout,
            silence_max: IMAGE_TIMEOUT,
            success_body_max_bytes: MAX_VIDEO_BYTES as usize,
            error_body_max_bytes: MAX_ERROR_BYTES,
            keeps_connections: false,
        })
        .map_err(|error| HttpError::Network { text: error.to_string(), retryable: false })?;
        let answer = self
            .attempts(Call::Read, async || {
                let mut headers = vec![("authorization", self.download_proof())];
                headers.extend(self.owner_header());
                client.get(&url, &headers, IMAGE_TIMEOUT).await
            })
            .await?;
        Ok(answer.body)
    }

    fn upload_proof(&self, media: &Media) -> Secret<String> {
        let seconds = if media.is_video() { VIDEO_PROOF_SECONDS } else { IMAGE_PROOF_SECONDS };
        let draft =
            Draft::new(BLOB_AUTH, "Upload file", now()).tag(["t", "upload"]).tag(["x", &media.sha256]);
        self.blob_proof(draft, seconds)
    }

    fn download_proof(&self) -> Secret<String> {
        self.blob_proof(Draft::new(BLOB_AUTH, "Get media", now()).tag(["t", "get"]), IMAGE_PROOF_SECONDS)
    }

    fn blob_proof(&self, draft: Draft, seconds: u64) -> Secret<String> {
        let expiration = (now() + seconds).to_string();
        let draft = draft.tag(["expiration", &expiration]).tag(["server", &server(&self.base)]);
        let event = self.settings.keys.sign(draft);
        Secret::new(format!("Nostr {}", URL_SAFE_NO_PAD.encode(event.to_json())))
    }
}

/// A relay's host, with its port unless that is the usual one.
fn server(base: &str) -> String {
    let Ok(url) = Url::parse(base) else { return String::new() };
    match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (host, _) => host.unwrap_or_default().to_owned(),
    }
}

/// The last part of a blob's path on the relay at `base`: from its URL there, from `/media/...`, or as it is.
/// Nothing for any other text.
pub fn segment<'a>(base: &str, input: &'a str) -> Option<&'a str> {
    let path = match input.split_once("://") {
        Some((_, rest)) if has_same_origin(base, input) => &rest[rest.find('/')?..],
        Some(_) => return None,
        None => input,
    };
    let segment = match path.strip_prefix("/media/") {
        Some(segment) => segment,
        None if path.contains('/') => return None,
        None => path,
    };
    is_segment(segment).then_some(segment)
}

fn has_same_origin(one: &str, other: &str) -> bool {
    match (Url::parse(one), Url::parse(other)) {
        (Ok(one), Ok(other)) => {
            other.username().is_empty()
                && other.password().is_none()
                && one.scheme() == other.scheme()
                && one.host_str() == other.host_str()
                && one.port_or_known_default() == other.port_or_known_default()
        }
        _ => false,
    }
}

/// 64 digits of lower-case hex, and perhaps an extension or `.thumb.jpg`.
fn is_segment(text: &str) -> bool {
    let Some((hash, rest)) = text.split_at_checked(64) else { return false };
    let is_hash = hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_extension = |extension: &str| {
        (1..=MAX_EXTENSION_BYTES).contains(&extension.len())
            && extension.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'z'))
    };
    is_hash && (rest.is_empty() || rest == ".thumb.jpg" || rest.strip_prefix('.').is_some_and(is_extension))
}

#[cfg(test)]
#[path = "media_tests.rs"]
mod tests;
