//! What can go wrong with a log, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::damage::{Damage, Problem};

/// Why a log could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process, or another handle in this one, has the log open.
    #[error(
        "the log {} is locked by {}; stop it, use another log, or read this one through it",
        .path.display(), holder(*.pid)
    )]
    Locked {
        /// The log's folder.
        path: PathBuf,
        /// The holder's process id, when its lock file says so.
        pid: Option<u32>,
    },
    /// The log was written by a newer version.
    #[error(
        "the log {} has format version {found}, this build knows up to {known}; use a newer waxlog",
        .path.display()
    )]
    NewerFormat {
        /// The log's folder.
        path: PathBuf,
        /// The version the log has.
        found: u32,
        /// The newest version this build knows.
        known: u32,
    },
    /// There is no log in the folder.
    #[error("{} is not a log: it has no segments; check the path", .path.display())]
    NotALog {
        /// The folder.
        path: PathBuf,
    },
    /// There is something where a new log should be made.
    #[error("{} already holds a log; give the path of a new folder", .path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// Acknowledged records are lost or changed. Nothing was written.
    #[error("{0}")]
    Damaged(Box<Damage>),
    /// A file could not be read or written.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// Reading or appending failed after the log was open.
    #[error(transparent)]
    Log(#[from] LogError),
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

/// Why an append, a flush or a read failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// Something is larger than the log takes.
    #[error("the {what} has {bytes} bytes, the limit is {limit_bytes}; split it or store it elsewhere")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// How large it is.
        bytes: u64,
        /// How large it may be.
        limit_bytes: u64,
    },
    /// A stream or kind has a name that the log cannot keep.
    #[error("the {what} name {name:?} ({bytes} bytes) must have 1 to {limit_bytes} bytes and no NUL")]
    BadName {
        /// Whose name it is.
        what: &'static str,
        /// The start of the name.
        name: String,
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        limit_bytes: usize,
    },
    /// A write failed. What was acknowledged before is safe; nothing more is written.
    #[error(
        "the log {} stopped: {reason}; what was flushed before is safe, free space or fix the disk and open \
         the log again",
        .path.display()
    )]
    Stopped {
        /// The log's folder.
        path: PathBuf,
        /// The failure that stopped it.
        reason: Arc<str>,
    },
    /// The log was closed while this handle was still in use.
    #[error("the log {} is closed; open it again", .path.display())]
    Closed {
        /// The log's folder.
        path: PathBuf,
    },
    /// A record that was acknowledged is lost or changed.
    #[error("{0}")]
    Damaged(Box<Problem>),
    /// A file or the store under the log could not be read.
    #[error("cannot read the log {}: {reason}; run `waxlog log verify`", .path.display())]
    Unreadable {
        /// What was read.
        path: PathBuf,
        /// Why it failed.
        reason: String,
    },
    /// The process that holds the log did not answer as expected.
    #[error("the process that holds the log {} gave no answer: {reason}; open the log again", .path.display())]
    Holder {
        /// The log's folder.
        path: PathBuf,
        /// What went wrong.
        reason: String,
    },
}

/// Adds to an I/O error what was tried on which path.
pub(crate) trait IoContext<T> {
    fn context(self, action: &'static str, path: &Path) -> Result<T, OpenError>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn context(self, action: &'static str, path: &Path) -> Result<T, OpenError> {
        self.map_err(|source| OpenError::Io { action, path: path.to_path_buf(), source })
    }
}
