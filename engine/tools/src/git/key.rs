//! The key that git's helpers sign with: from a variable, or from the file that git's settings name.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use waxlog_nostr::{Keys, PublicKey, Secret};

use crate::variables::GIT_KEY_VARIABLE;

/// git's setting that names the file.
const KEY_FILE_SETTING: &str = "nostr.keyfile";
/// The variable with the key for the relay, which serves if it is the one that is asked for.
pub(crate) const RELAY_KEY_VARIABLE: &str = "BUZZ_PRIVATE_KEY";
/// Longest key file, in bytes.
const KEY_FILE_MAX_BYTES: u64 = 256;
/// The bits of a mode that let others than the owner near a file.
const OTHERS_BITS: u32 = 0o077;

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// None is configured.
    #[error("no key: set {GIT_KEY_VARIABLE}, or git's {KEY_FILE_SETTING}")]
    None,
    /// What is configured is none.
    #[error("{0} holds no key; it must be 64 hex digits or an nsec1... text")]
    Malformed(String),
    /// Others can read it.
    #[error("{file} has mode {mode:o}, others may read it; run chmod 600 on it")]
    Open {
        /// The file.
        file: String,
        /// Its mode.
        mode: u32,
    },
    /// It is something else.
    #[error("{file} has {bytes} bytes, a key has at most {KEY_FILE_MAX_BYTES}")]
    TooLong {
        /// The file.
        file: String,
        /// Its size.
        bytes: u64,
    },
    /// It cannot be read.
    #[error("{file}: {error}")]
    Io {
        /// The file, or what was run.
        file: String,
        /// What went wrong.
        error: io::Error,
    },
    /// There are keys, and another one is asked for.
    #[error("the key at hand is not that of {0}; check user.signingkey")]
    Other(PublicKey),
}

/// The key: the one of `wanted` if that is said, else the first there is.
pub(super) fn load(wanted: Option<PublicKey>) -> Result<Keys, KeyError> {
    let mut is_other = false;
    for source in [of_variable(GIT_KEY_VARIABLE), of_file(), of_variable(RELAY_KEY_VARIABLE)] {
        match (source?, wanted) {
            (Some(keys), Some(wanted)) if keys.public_key() != wanted => is_other = true,
            (Some(keys), _) => return Ok(keys),
            (None, _) => {}
        }
    }
    Err(match (is_other, wanted) {
        (true, Some(wanted)) => KeyError::Other(wanted),
        _ => KeyError::None,
    })
}

fn of_variable(name: &str) -> Result<Option<Keys>, KeyError> {
    match std::env::var(name).map(Secret::new) {
        Ok(key) if !key.expose().trim().is_empty() => parse(&key, name).map(Some),
        _ => Ok(None),
    }
}

fn of_file() -> Result<Option<Keys>, KeyError> {
    match setting(KEY_FILE_SETTING)? {
        Some(file) => read(Path::new(&file)).map(Some),
        None => Ok(None),
    }
}

/// A setting of git's, if it is set.
pub(super) fn setting(name: &str) -> Result<Option<String>, KeyError> {
    let asked = Command::new("git").args(["config", "--get", name]).output();
    let output = asked.map_err(|error| KeyError::Io { file: "git config".to_owned(), error })?;
    let value = String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned();
    Ok(Some(value).filter(|value| output.status.success() && !value.is_empty()))
}

fn read(file: &Path) -> Result<Keys, KeyError> {
    let shown = file.display().to_string();
    let io = |error| KeyError::Io { file: shown.clone(), error };
    let metadata = fs::metadata(file).map_err(io)?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & OTHERS_BITS != 0 {
        return Err(KeyError::Open { file: shown, mode });
    }
    if metadata.len() > KEY_FILE_MAX_BYTES {
        return Err(KeyError::TooLong { file: shown, bytes: metadata.len() });
    }
    parse(&Secret::new(fs::read_to_string(file).map_err(io)?), &shown)
}

fn parse(key: &Secret<String>, source: &str) -> Result<Keys, KeyError> {
    Keys::parse(key.expose().trim()).map_err(|_| KeyError::Malformed(source.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_is_short_and_its_owners_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("key");
        let write = |content: &str, mode: u32| {
            fs::write(&file, content).expect("written");
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("a mode");
            read(&file)
        };
        let key = "0000000000000000000000000000000000000000000000000000000000000003";
        assert!(write(&format!("{key}\n"), 0o600).is_ok());
        assert!(write(key, 0o400).is_ok());
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("a mode");
        assert!(matches!(write(key, 0o640), Err(KeyError::Open { mode: 0o640, .. })));
        assert!(matches!(write(&"0".repeat(257), 0o600), Err(KeyError::TooLong { bytes: 257, .. })));
        let error = write("sk-canary", 0o600).expect_err("refused").to_string();
        assert!(!error.contains("canary"), "{error}");
    }
}
