//! The shim folder: first on a command's `PATH`, it makes `buzz`, `rg`, `tree` and git's helpers this program,
//! and it holds git's key.
//!
//! A variable that a process was started with stays readable in `/proc` however often it is removed, and the
//! server is the parent of every command. So a server that was given a secret to withhold makes the folder,
//! starts itself anew without that secret, under the same process number, and adopts the folder.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{symlink, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{flock, FlockOperation};
use tempfile::TempDir;
use waxlog_nostr::{Keys, Secret};

/// The names that lead to this program, beside git's: the commands that a model is told of.
pub(crate) const COMMAND_LINKS: [&str; 3] = ["buzz", "rg", "tree"];
/// The names under which git calls its helpers.
pub(crate) const GIT_LINKS: [&str; 2] = ["git-credential-nostr", "git-sign-nostr"];
/// How the folder's name begins.
const FOLDER_PREFIX: &str = "buzz-dev-mcp-";
/// How the name of the folder for a session's files begins.
const SESSION_PREFIX: &str = "buzz-dev-mcp-session-";
/// The file with git's key.
const KEY_FILE: &str = ".nostr-key";
/// The file with the number of the process that made the folder. It is locked while the folder is in use.
const OWNER_FILE: &str = ".owner";
/// A folder that nobody has locked is left alone for this long: its server may be about to.
const UNLOCKED_MAX_AGE: Duration = Duration::from_secs(60);

/// The folder. It is removed by [`Shims::remove`] only: a server that starts itself anew keeps it.
#[derive(Clone, Debug)]
pub(crate) struct Shims {
    folder: PathBuf,
}

impl Shims {
    /// Makes the folder with links to `program`.
    pub(crate) fn create(program: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix(FOLDER_PREFIX)
            .permissions(Permissions::from_mode(0o700))
            .tempdir()?;
        for name in COMMAND_LINKS.into_iter().chain(GIT_LINKS) {
            symlink(program, folder.path().join(name))?;
        }
        Ok(Self { folder: owned(folder)? })
    }

    /// Takes over the folder that this process has made before it started itself anew, and no other.
    pub(crate) fn adopt(folder: PathBuf) -> Option<Self> {
        let owner = fs::read_to_string(folder.join(OWNER_FILE)).ok()?;
        let is_named = folder.file_name()?.to_str()?.starts_with(FOLDER_PREFIX);
        (is_named && owner == std::process::id().to_string()).then_some(Self { folder })
    }

    /// Where it is.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What tells the commands of this server from all others: the folder is its alone.
    pub(crate) fn mark(&self) -> &OsStr {
        self.folder.as_os_str()
    }

    /// Keeps git's key as it was given, for its owner's eyes only, if it is one.
    pub(crate) fn keep_key(&self, key: &Secret<String>) -> Result<(), KeyFileError> {
        Keys::parse(key.expose().trim()).map_err(|_| KeyFileError::NoKey)?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        options.open(self.key_file()).and_then(|mut file| file.write_all(key.expose().as_bytes()))?;
        Ok(())
    }

    /// The file with git's key, and whose key it is, if there is one.
    pub(crate) fn key(&self) -> Option<(PathBuf, Keys)> {
        let file = self.key_file();
        let text = Secret::new(fs::read_to_string(&file).ok()?);
        Some((file, Keys::parse(text.expose().trim()).ok()?))
    }

    fn key_file(&self) -> PathBuf {
        self.folder.join(KEY_FILE)
    }

    /// Removes the folder and all in it.
    pub(crate) fn remove(&self) {
        remove(&self.folder);
    }
}

/// Why git gets no key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyFileError {
    /// The text is none.
    #[error("it must be 64 hex digits or an nsec1... text")]
    NoKey,
    /// There is no file for it.
    #[error("its file cannot be written: {0}")]
    File(#[from] io::Error),
}

/// A new folder for what a session's calls leave.
pub(crate) fn session_folder() -> io::Result<PathBuf> {
    owned(
        tempfile::Builder::new()
            .prefix(SESSION_PREFIX)
            .permissions(Permissions::from_mode(0o700))
            .tempdir()?,
    )
}

/// Makes a folder one of this process.
fn owned(folder: TempDir) -> io::Result<PathBuf> {
    fs::write(folder.path().join(OWNER_FILE), std::process::id().to_string())?;
    Ok(folder.keep())
}

/// Says to other servers that a folder is in use, for as long as the value lives.
pub(crate) fn hold(folder: &Path) -> Option<File> {
    let file = File::open(folder.join(OWNER_FILE)).and_then(|file| {
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(file)
    });
    if let Err(error) = &file {
        log::warn!("{} cannot be locked: {error}; another server may remove it", folder.display());
    }
    file.ok()
}

/// Removes the folders below `temporary` of servers that could not do it: of those that were killed together with
/// their guard, or by a loss of power.
pub(crate) fn sweep(temporary: &Path) {
    let entries = fs::read_dir(temporary).into_iter().flatten().flatten();
    let is_ours = |name: &OsStr| name.as_encoded_bytes().starts_with(FOLDER_PREFIX.as_bytes());
    for folder in entries.filter(|entry| is_ours(&entry.file_name())).map(|entry| entry.path()) {
        if is_left(&folder) {
            log::info!("{}, left by a server that was killed, is removed", folder.display());
            remove(&folder);
        }
    }
}

/// Whether a folder was made by a server that runs no more.
fn is_left(folder: &Path) -> bool {
    let Ok(file) = File::open(folder.join(OWNER_FILE)) else { return false };
    let made = file.metadata().and_then(|metadata| metadata.modified());
    let is_old = made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > UNLOCKED_MAX_AGE));
    is_old && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Removes a folder of ours.
pub(crate) fn remove(folder: &Path) {
    match fs::remove_dir_all(folder) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => log::warn!("{} cannot be removed: {error}", folder.display()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    const KEY: &str = "0000000000000000000000000000000000000000000000000000000000000003";

    fn secret(key: &str) -> Secret<String> {
        Secret::new(key.to_owned())
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("there").permissions().mode() & 0o777
    }

    #[test]
    fn the_folder_and_the_key_in_it_are_their_owners_alone() {
        let shims = Shims::create(Path::new("/bin/true")).expect("a folder");
        assert_eq!(mode(shims.folder()), 0o700);
        shims.keep_key(&secret(KEY)).expect("a key");
        let (file, keys) = shims.key().expect("a key");
        assert_eq!(mode(&file), 0o600);
        assert_eq!(keys.secret_hex().expose(), KEY);
        for name in ["buzz", "rg", "tree", "git-credential-nostr", "git-sign-nostr"] {
            assert_eq!(fs::read_link(shims.folder().join(name)).expect("a link"), Path::new("/bin/true"));
        }
        shims.remove();
        assert!(!shims.folder().exists());
    }

    #[test]
    fn what_is_no_key_leaves_no_file() {
        let shims = Shims::create(Path::new("/bin/true")).expect("a folder");
        let error = shims.keep_key(&secret("not-a-key")).expect_err("refused").to_string();
        assert!(!error.contains("not-a-key"), "{error}");
        assert!(shims.key().is_none() && !shims.key_file().exists());
        shims.remove();
    }

    #[test]
    fn only_a_folder_of_this_process_is_adopted() {
        let shims = Shims::create(Path::new("/bin/true")).expect("a folder");
        assert!(Shims::adopt(shims.folder().to_owned()).is_some());
        fs::write(shims.folder().join(OWNER_FILE), "1").expect("written");
        assert!(Shims::adopt(shims.folder().to_owned()).is_none());
        assert!(Shims::adopt(PathBuf::from("/")).is_none());
        shims.remove();
    }

    #[test]
    fn a_folder_that_is_old_and_that_nobody_holds_is_swept() {
        let temporary = tempfile::tempdir().expect("a folder");
        let make = |name: &str, age: Duration| {
            let folder = temporary.path().join(name);
            fs::create_dir(&folder).expect("a folder");
            let file = File::create(folder.join(OWNER_FILE)).expect("a file");
            file.set_modified(SystemTime::now() - age).expect("a time");
            folder
        };
        let old = UNLOCKED_MAX_AGE * 2;
        let (left, held, new) = (
            make("buzz-dev-mcp-a", old),
            make("buzz-dev-mcp-session-b", old),
            make("buzz-dev-mcp-c", Duration::ZERO),
        );
        let (other, unknown) = (make("other", old), temporary.path().join("buzz-dev-mcp-d"));
        fs::create_dir(&unknown).expect("a folder");
        let lock = hold(&held).expect("locked");
        sweep(temporary.path());
        assert!(!left.exists());
        for folder in [&held, &new, &other, &unknown] {
            assert!(folder.exists(), "{}", folder.display());
        }
        drop(lock);
        sweep(temporary.path());
        assert!(!held.exists());
    }
}
