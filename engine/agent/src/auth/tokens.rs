//! What a login gives, and the file that keeps it for every process of the user.
//!
//! The name and form of the file are those of buzz-agent, so that one login serves both.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use async_std::task;
use rustix::fs::{flock, FlockOperation};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::AuthError;
use crate::secret::Secret;

/// A token that is about to expire may have done so on arrival; so many seconds before, it is not used.
pub(super) const EXPIRY_MARGIN_SECS: u64 = 60;
/// Where token files lie, below the home.
const FOLDER: &str = ".config/buzz-agent/oauth/databricks";
/// Largest token file that is read, in bytes.
const FILE_MAX_BYTES: u64 = 256 * 1024;
/// How long it takes at most to notice that a lock is free.
const LOCK_POLL: Duration = Duration::from_millis(50);

/// What a login gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tokens {
    /// Goes with requests.
    pub(super) access: Secret<String>,
    /// Buys the next ones.
    pub(super) refresh: Option<Secret<String>>,
    /// When the access token expires, in seconds since 1970; never, if unknown.
    pub(super) expires_at: Option<u64>,
}

impl Tokens {
    /// Whether the access token can still be used at `now_secs`.
    pub(super) fn is_fresh(&self, now_secs: u64) -> bool {
        self.expires_at.is_none_or(|at| now_secs.saturating_add(EXPIRY_MARGIN_SECS) < at)
    }
}

/// The form of the file. It is the one place where tokens are written, so it has no debug form.
#[derive(Serialize, Deserialize)]
struct Stored {
    access_token: String,
    #[serde(default)]
    refresh_token: Option<String>,
    #[serde(default)]
    expires_at: Option<u64>,
}

/// The file of one login.
#[derive(Clone, Debug)]
pub(super) struct TokenFile {
    path: PathBuf,
}

/// The right to change the file, until it is dropped.
#[derive(Debug)]
pub(super) struct FileLock {
    _file: Option<File>,
}

impl TokenFile {
    /// The file below `home` for the login that these three make up.
    pub(super) fn new(home: &Path, discovery_url: &str, client_id: &str, scopes: &[&str]) -> TokenFile {
        let name = format!("{discovery_url}|{client_id}|{}", scopes.join(","));
        let name = hex::encode(Sha256::digest(name));
        TokenFile { path: home.join(FOLDER).join(format!("{name}.json")) }
    }

    /// Where it lies.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The tokens in it; a file that cannot be read or understood has none.
    pub(super) fn load(&self) -> Option<Tokens> {
        let mut text = Vec::new();
        File::open(&self.path).ok()?.take(FILE_MAX_BYTES).read_to_end(&mut text).ok()?;
        let stored: Stored = serde_json::from_slice(&text).ok()?;
        let filled = |token: String| (!token.is_empty()).then(|| Secret::new(token));
        Some(Tokens {
            access: filled(stored.access_token)?,
            refresh: stored.refresh_token.and_then(filled),
            expires_at: stored.expires_at,
        })
    }

    /// Puts `tokens` in the place of what was there, whole or not at all.
    pub(super) fn save(&self, tokens: &Tokens) -> io::Result<()> {
        let stored = Stored {
            access_token: tokens.access.expose().clone(),
            refresh_token: tokens.refresh.as_ref().map(|token| token.expose().clone()),
            expires_at: tokens.expires_at,
        };
        let text = serde_json::to_vec_pretty(&stored)?;
        self.make_folder()?;
        let draft = self.path.with_extension("json.new");
        // What a kill left behind may have other permissions than a new file gets.
        match std::fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = private_file().write(true).create_new(true).open(&draft)?;
        file.write_all(&text)?;
        file.sync_all()?;
        std::fs::rename(&draft, &self.path)
    }

    /// Waits for the right to change the file, for `wait_max` at most. Where files cannot be locked (a home
    /// that is read-only, some network file systems), it goes on without.
    pub(super) async fn lock(&self, wait_max: Duration) -> Result<FileLock, AuthError> {
        let path = self.path.with_extension("lock");
        let unlocked = |error: &dyn std::fmt::Display| {
            log::warn!(
                "{} cannot be locked ({error}); another process may renew the same login",
                path.display()
            );
            Ok(FileLock { _file: None })
        };
        let opened = self.make_folder().and_then(|()| private_file().write(true).create(true).open(&path));
        let file = match opened {
            Ok(file) => file,
            Err(error) => return unlocked(&error),
        };
        let since = Instant::now();
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(FileLock { _file: Some(file) }),
                Err(Errno::WOULDBLOCK | Errno::INTR) if since.elapsed() < wait_max => {
                    task::sleep(LOCK_POLL).await;
                }
                Err(Errno::WOULDBLOCK) => {
                    let file = path.display().to_string();
                    return Err(AuthError::Locked { file, seconds: wait_max.as_secs() });
                }
                Err(error) => return unlocked(&error),
            }
        }
    }

    /// The folder, closed to others even if it was there before.
    fn make_folder(&self) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(&self.path);
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        std::fs::set_permissions(folder, Permissions::from_mode(0o700))
    }
}

/// Options for a file that only its owner may read.
fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}
