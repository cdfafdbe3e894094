//! Uploads and downloads of blobs over HTTP (Blossom).

mod proof;
mod sniff;
mod store;

use std::collections::HashMap;
use std::io::SeekFrom;
use std::sync::{Arc, Mutex};

use async_std::fs::File;
use futures_lite::{AsyncReadExt, AsyncSeekExt};
use serde_json::json;
use waxlog_nostr::{Event, PublicKey};

use super::gauge::{Counted, Gauge};
use super::http::{header, unknown_host, Answer, BodyError, HttpConn, RequestBody};
use super::limits::Limits;
use super::rate::{Exceeded, Use};
use super::{lock, now_seconds, Relay};
use sniff::Sort;
pub(crate) use store::BlobStore;
use store::{is_hash, Description, Incoming};

/// What an upload's address takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// Images, videos and files.
    Any,
    /// Images and videos.
    Pictures,
}

/// When a client should come again that finds all places taken.
const BUSY: Exceeded = Exceeded { retry_in_seconds: 1 };

/// Who is uploading.
pub(crate) struct Uploads {
    all: Arc<Gauge>,
    max_per_key: usize,
    of_keys: Arc<Mutex<HashMap<PublicKey, usize>>>,
}

/// An upload's place, until dropped.
struct Place {
    _counted: Counted,
    key: PublicKey,
    of_keys: Arc<Mutex<HashMap<PublicKey, usize>>>,
}

impl Uploads {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { all: Gauge::new(limits.uploads), max_per_key: limits.uploads_per_key, of_keys: Arc::default() }
    }

    fn enter(&self, key: PublicKey) -> Result<Place, Exceeded> {
        let counted = self.all.try_enter().ok_or(BUSY)?;
        let mut of_keys = lock(&self.of_keys);
        let own = of_keys.entry(key).or_default();
        if *own >= self.max_per_key {
            return Err(BUSY);
        }
        *own += 1;
        Ok(Place { _counted: counted, key, of_keys: self.of_keys.clone() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut of_keys = lock(&self.of_keys);
        if let Some(own) = of_keys.get_mut(&self.key) {
            *own -= 1;
            if *own == 0 {
                of_keys.remove(&self.key);
            }
        }
    }
}

fn unauthenticated() -> Answer {
    Answer::error(401, "authentication failed")
}

fn too_large() -> Answer {
    Answer::error(413, "the blob is too large for its type")
}

fn internal(what: impl std::fmt::Display) -> Answer {
    log::error!("a blob could not be kept or read: {what}");
    Answer::error(500, "internal error")
}

/// `PUT /upload` and `PUT /media/upload`
pub(crate) async fn upload(relay: &Arc<Relay>, conn: &mut HttpConn, takes: Takes) -> Answer {
    match uploaded(relay, conn, takes).await {
        Ok(answer) | Err(answer) => answer,
    }
}

async fn uploaded(relay: &Arc<Relay>, conn: &mut HttpConn, takes: Takes) -> Result<Answer, Answer> {
    let host = header(conn, "host").and_then(|host| relay.names.host(host)).ok_or_else(unknown_host)?;
    let sha256 = header(conn, "x-sha-256").unwrap_or_default().to_owned();
    let given = header(conn, "authorization").unwrap_or_default().to_owned();
    let (now, checked_hash, checked_host) = (now_seconds(), sha256.clone(), host.clone());
    let check =
        move || proof::check(&given, &checked_hash, &checked_host, now).filter(|_| is_hash(&checked_hash));
    let proof = relay.checks.run(check).await.map_err(internal)?.ok_or_else(unauthenticated)?;
    let spent = relay.rates.spend(&proof.pubkey, false, Use::Upload, now);
    let entered = spent.and_then(|()| relay.uploads.enter(proof.pubkey));
    let _place = entered.map_err(|exceeded| Answer::error(429, exceeded))?;
    let incoming = receive(relay, conn, takes).await?;
    let keeper = relay.clone();
    let keep = move || keep(&keeper, &incoming, takes, &proof, &sha256, now);
    let description = relay.reads.run(keep).await.map_err(internal)??;
    let url = relay.names.http_url(&host, &format!("/media/{}.{}", description.sha256, description.ending));
    let mut descriptor = json!({
        "url": url,
        "sha256": description.sha256,
        "size": description.size,
        "type": description.mime,
        "uploaded": description.uploaded,
    });
    if let Some(dim) = description.dim {
        descriptor["dim"] = dim.into();
    }
    Ok(Answer::json(200, &descriptor))
}

/// How large a blob of this sort may be, if it is taken at all.
fn max_bytes(limits: &Limits, sort: Sort, takes: Takes) -> Result<usize, Answer> {
    match sort {
        Sort::Image => Ok(limits.image_bytes),
        Sort::Gif => Ok(limits.gif_bytes),
        Sort::Video => Ok(limits.video_bytes),
        Sort::File if takes == Takes::Any => Ok(limits.file_bytes),
        Sort::File | Sort::Audio | Sort::OtherPicture => {
            Err(Answer::error(415, "blobs of this type are not taken"))
        }
    }
}

/// Reads the body into a file of its own. Its sort, and with it its limit, is known after the first bytes.
async fn receive(relay: &Arc<Relay>, conn: &mut HttpConn, takes: Takes) -> Result<Incoming, Answer> {
    let told = |error| match error {
        BodyError::TooLong => too_large(),
        BodyError::Broken => Answer::error(400, "the body ended early"),
    };
    let limits = &relay.limits;
    let most = limits.image_bytes.max(limits.gif_bytes).max(limits.video_bytes).max(limits.file_bytes);
    let mut incoming = relay.blobs.begin().map_err(internal)?;
    let mut body = RequestBody::of(conn, most).await.map_err(told)?;
    loop {
        let piece = body.next().await.map_err(told)?;
        if piece.is_empty() {
            return Ok(incoming);
        }
        let add = move || incoming.add(&piece).map(|()| incoming);
        incoming = relay.reads.run(add).await.map_err(internal)?.map_err(internal)?;
        let max_bytes = match incoming.has_head() {
            true => max_bytes(limits, incoming.sniffed().sort, takes)?,
            false => most,
        };
        if incoming.size() > max_bytes as u64 {
            return Err(too_large());
        }
    }
}

/// Checks a whole blob and keeps it.
fn keep(
    relay: &Relay,
    incoming: &Incoming,
    takes: Takes,
    proof: &Event,
    sha256: &str,
    now: u64,
) -> Result<Description, Answer> {
    let sort = incoming.sniffed().sort;
    if incoming.size() > max_bytes(&relay.limits, sort, takes)? as u64 {
        return Err(too_large());
    }
    let is_fresh = sort == Sort::Video || now.saturating_sub(proof.created_at) <= proof::MAX_AGE_SECONDS;
    if incoming.sha256() != sha256 || !is_fresh {
        return Err(unauthenticated());
    }
    let dim = match sort {
        Sort::Image | Sort::Gif => {
            Some(incoming.dim().ok_or_else(|| Answer::error(422, "the image cannot be read"))?)
        }
        _ => None,
    };
    relay.blobs.finish(incoming, sha256, dim, now).map_err(internal)
}

/// `GET` and `HEAD /media/<sha256>.<ext>`
pub(crate) async fn download(relay: &Arc<Relay>, conn: &mut HttpConn, name: &str) -> Answer {
    let (sha256, ending) = name.split_once('.').unwrap_or((name, ""));
    if !is_hash(sha256) {
        return Answer::empty(404);
    }
    let (finder, wanted) = (relay.clone(), sha256.to_owned());
    let found = match relay.reads.run(move || finder.blobs.find(&wanted)).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => return internal(error),
        Err(error) => return internal(error),
    };
    let Some(found) = found.filter(|found| ending.is_empty() || found.ending == ending) else {
        return Answer::empty(404);
    };
    let (status, from, len) = match header(conn, "range").map(|range| read_range(range, found.size)) {
        None => (200, 0, found.size),
        Some(Some((from, len))) => (206, from, len.min(relay.limits.range_bytes)),
        Some(None) => return Answer::empty(416).header("content-range", format!("bytes */{}", found.size)),
    };
    let opened = async {
        let mut file = File::open(relay.blobs.file(sha256)).await?;
        file.seek(SeekFrom::Start(from)).await?;
        std::io::Result::Ok(file.take(len))
    };
    let content = match opened.await {
        Ok(content) => content,
        Err(error) => return internal(error),
    };
    let answer = Answer::stream(status, content, len)
        .header("content-type", &found.mime)
        .header("accept-ranges", "bytes")
        .header("cache-control", "public, max-age=31536000, immutable")
        .header("x-content-type-options", "nosniff")
        .header("content-security-policy", "sandbox; default-src 'none'");
    let answer = match status {
        206 => {
            let last = (from + len).saturating_sub(1);
            answer.header("content-range", format!("bytes {from}-{last}/{}", found.size))
        }
        _ => answer,
    };
    match found.mime.starts_with("image/") || found.mime.starts_with("video/") {
        true => answer,
        false => answer.header("content-disposition", "attachment"),
    }
}

/// The begin and length of a single range within `size` bytes; none if it is none or lies outside.
fn read_range(range: &str, size: u64) -> Option<(u64, u64)> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let (from, to) = match (first.trim(), last.trim()) {
        ("", last) => (size.saturating_sub(last.parse().ok().filter(|last| *last > 0)?), size),
        (first, "") => (first.parse().ok()?, size),
        (first, last) => (first.parse().ok()?, last.parse::<u64>().ok()?.saturating_add(1).min(size)),
    };
    (from < to).then(|| (from, to - from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_range_is_cut_to_the_blob() {
        for (range, expected) in [
            ("bytes=0-0", Some((0, 1))),
            ("bytes=2-", Some((2, 8))),
            ("bytes=-3", Some((7, 3))),
            ("bytes=-30", Some((0, 10))),
            ("bytes=5-99", Some((5, 5))),
            ("bytes=10-", None),
            ("bytes=4-3", None),
            ("bytes=-0", None),
            ("bytes=0-1,3-4", None),
            ("items=0-1", None),
        ] {
            assert_eq!(read_range(range, 10), expected, "{range}");
        }
    }
}
