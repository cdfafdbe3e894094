//! Blobs on the disk, each under its hash, with a description beside it.
//!
//! A blob is there once its description is: that is put in place last, by a rename.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use url::Url;

use super::super::names::Names;
use super::super::random_hex;
use super::sniff::{sniff, Sniffed, HEAD_BYTES};
use crate::desk::Blobs;

const INCOMING: &str = "incoming";

/// What is known of a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Description {
    pub(super) sha256: String,
    pub(super) size: u64,
    #[serde(rename = "type")]
    pub(super) mime: String,
    pub(super) ending: String,
    /// Seconds since 1970.
    pub(super) uploaded: u64,
    /// Width and height in pixels, as `WxH`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) dim: Option<String>,
}

/// The folder of all blobs.
pub(crate) struct BlobStore {
    folder: PathBuf,
    names: Names,
}

/// A blob that is coming in. Dropped, it is gone.
pub(super) struct Incoming {
    path: PathBuf,
    file: File,
    hash: Sha256,
    head: Vec<u8>,
    size: u64,
}

impl BlobStore {
    /// Opens or creates the folder. What an earlier run left unfinished is removed.
    pub(crate) fn open(folder: &Path, names: Names) -> io::Result<Self> {
        let incoming = folder.join(INCOMING);
        match fs::remove_dir_all(&incoming) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        make_folder(&incoming)?;
        Ok(Self { folder: folder.to_path_buf(), names })
    }

    /// Where a blob and its description lie.
    fn paths(&self, sha256: &str) -> (PathBuf, PathBuf) {
        let folder = self.folder.join(sha256.get(..2).unwrap_or_default());
        (folder.join(sha256), folder.join(format!("{sha256}.json")))
    }

    /// Begins a blob.
    pub(super) fn begin(&self) -> io::Result<Incoming> {
        let path = self.folder.join(INCOMING).join(random_hex());
        let file = new_file(&path)?;
        Ok(Incoming { path, file, hash: Sha256::new(), head: Vec::new(), size: 0 })
    }

    /// Puts a whole blob in its place, unless it is there. Gives the description that counts.
    pub(super) fn finish(
        &self,
        incoming: &Incoming,
        sha256: &str,
        dim: Option<String>,
        now: u64,
    ) -> io::Result<Description> {
        if let Some(known) = self.find(sha256)? {
            return Ok(known);
        }
        let Sniffed { mime, ending, .. } = incoming.sniffed();
        let description = Description {
            sha256: sha256.to_owned(),
            size: incoming.size,
            mime: mime.to_owned(),
            ending: ending.to_owned(),
            uploaded: now,
            dim,
        };
        let (blob, described) = self.paths(sha256);
        if let Some(folder) = blob.parent() {
            make_folder(folder)?;
        }
        incoming.file.sync_all()?;
        fs::rename(&incoming.path, &blob)?;
        let draft = self.folder.join(INCOMING).join(random_hex());
        let mut file = new_file(&draft)?;
        file.write_all(&serde_json::to_vec(&description)?)?;
        file.sync_all()?;
        fs::rename(&draft, &described)?;
        Ok(description)
    }

    /// What is known of a blob, if it is here. `sha256` is 64 lower-case hex digits.
    pub(super) fn find(&self, sha256: &str) -> io::Result<Option<Description>> {
        match fs::read(self.paths(sha256).1) {
            Ok(json) => Ok(Some(serde_json::from_slice(&json)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The file of a blob.
    pub(super) fn file(&self, sha256: &str) -> PathBuf {
        self.paths(sha256).0
    }
}

impl Blobs for BlobStore {
    fn holds(&self, url: &str, sha256: &str) -> bool {
        let Ok(url) = Url::parse(url) else { return false };
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let host = url.host_str().map(|host| format!("{host}{port}")).unwrap_or_default();
        let is_web = matches!(url.scheme(), "http" | "https");
        let named = url.path().strip_prefix("/media/").and_then(|name| name.split_once('.'));
        let Some((hash, ending)) = named else { return false };
        if !is_web || self.names.host(&host).is_none() || hash != sha256 || !is_hash(hash) {
            return false;
        }
        match self.find(hash) {
            Ok(found) => found.is_some_and(|found| found.ending == ending),
            Err(error) => {
                log::error!("the description of blob {hash} cannot be read: {error}");
                false
            }
        }
    }
}

impl Incoming {
    /// Adds a piece.
    pub(super) fn add(&mut self, piece: &[u8]) -> io::Result<()> {
        self.file.write_all(piece)?;
        self.hash.update(piece);
        let missing = HEAD_BYTES.saturating_sub(self.head.len());
        self.head.extend_from_slice(&piece[..missing.min(piece.len())]);
        self.size += piece.len() as u64;
        Ok(())
    }

    /// How many bytes have come.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Whether enough has come to tell what it is.
    pub(super) fn has_head(&self) -> bool {
        self.head.len() >= HEAD_BYTES
    }

    /// What it is, by what has come so far.
    pub(super) fn sniffed(&self) -> Sniffed {
        sniff(&self.head)
    }

    /// The hash of what has come, in hex.
    pub(super) fn sha256(&self) -> String {
        hex::encode(self.hash.clone().finalize())
    }

    /// Width and height of an image; none if it cannot be read.
    pub(super) fn dim(&self) -> Option<String> {
        let size = imagesize::size(&self.path).ok()?;
        Some(format!("{}x{}", size.width, size.height))
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                log::warn!("{} could not be removed: {error}", self.path.display());
            }
            _ => {}
        }
    }
}

/// Whether a text is a hash as blobs are named by.
pub(super) fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}
