//! The lock that makes one process the log's only user of sled, and the file with its format.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::FlockOperation;
use sha2::{Digest, Sha256};

use crate::error::{IoContext as _, OpenError};
use crate::files;
use crate::frame::FORMAT_VERSION;

const LOCK_FILE: &str = "lock";
const FORMAT_FILE: &str = "format";
const FORMAT_LEAD: &str = "waxlog log format ";
/// A process id and a newline; more than that in a lock file is not ours.
const MAX_LOCK_FILE_BYTES: u64 = 32;
const MAX_FORMAT_FILE_BYTES: u64 = 256;

/// The held lock. The kernel gives it back when the process ends, however it ends.
pub(crate) struct Lock {
    file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a process that is just being spawned shares the open file until
        // it runs its own program.
        if let Err(error) = rustix::fs::flock(&self.file, FlockOperation::Unlock) {
            log::warn!("a log's lock was not given back: {error}");
        }
    }
}

impl Lock {
    /// Takes the lock at once or says who has it.
    pub(crate) fn take(dir: &Path) -> Result<Lock, OpenError> {
        let path = dir.join(LOCK_FILE);
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .context("open", &path)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(OpenError::Locked { path: dir.to_path_buf(), pid: holder_pid(&mut file) });
            }
            Err(error) => return Err(io::Error::from(error)).context("lock", &path),
        }
        write_pid(&mut file).context("write", &path)?;
        Ok(Lock { file })
    }
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn holder_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    let _ = file.take(MAX_LOCK_FILE_BYTES).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// What the format file says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Known,
    Missing,
    Damaged,
}

/// Writes the format file, the last step of making a log.
pub(crate) fn write_format(dir: &Path) -> io::Result<()> {
    files::write_whole(&dir.join(FORMAT_FILE), format_text(u32::from(FORMAT_VERSION)).as_bytes())
}

/// Refuses a log of a newer format. The file carries a checksum so that a flipped bit is damage
/// and does not look like a version to come.
pub(crate) fn read_format(dir: &Path) -> Result<Format, OpenError> {
    let path = dir.join(FORMAT_FILE);
    let mut bytes = Vec::new();
    match File::open(&path) {
        Ok(file) => file.take(MAX_FORMAT_FILE_BYTES).read_to_end(&mut bytes).context("read", &path)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Format::Missing),
        Err(error) => return Err(error).context("read", &path),
    };
    let Some(found) = parse_format(&bytes) else {
        return Ok(Format::Damaged);
    };
    let known = u32::from(FORMAT_VERSION);
    if found > known {
        return Err(OpenError::NewerFormat { path: dir.to_path_buf(), found, known });
    }
    Ok(Format::Known)
}

fn parse_format(bytes: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(bytes).ok()?;
    let version = text.strip_prefix(FORMAT_LEAD)?.split_whitespace().next()?.parse().ok()?;
    (text == format_text(version)).then_some(version)
}

fn format_text(version: u32) -> String {
    let line = format!("{FORMAT_LEAD}{version}");
    let checksum = hex::encode(Sha256::digest(&line));
    format!("{line} {checksum}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_format_is_refused_and_a_flipped_bit_is_not_taken_for_one() {
        let dir = tempfile::tempdir().expect("temp dir");
        let path = dir.path().join(FORMAT_FILE);
        std::fs::write(&path, format_text(2)).expect("write");
        assert!(matches!(read_format(dir.path()), Err(OpenError::NewerFormat { found: 2, known: 1, .. })));
        std::fs::write(&path, format_text(1).replace("format 1", "format 3")).expect("write");
        assert_eq!(read_format(dir.path()).expect("read"), Format::Damaged);
    }

    #[test]
    fn the_second_taker_is_told_who_holds_the_lock() {
        let dir = tempfile::tempdir().expect("temp dir");
        let _lock = Lock::take(dir.path()).expect("first");
        let own = std::process::id();
        assert!(
            matches!(Lock::take(dir.path()), Err(OpenError::Locked { pid: Some(pid), .. }) if pid == own)
        );
    }
}
