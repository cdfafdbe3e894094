//! Folders and files as the log needs them: private to their owner, written whole, made durable.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

const DIR_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Creates a folder, and those above it, that only its owner may enter.
pub(crate) fn create_private_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIR_MODE).create(dir)?;
    fs::set_permissions(dir, Permissions::from_mode(DIR_MODE))
}

/// Creates a private folder that must not be there yet.
pub(crate) fn create_new_private_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().mode(DIR_MODE).create(dir)
}

/// Takes the rights of others away from one file or socket.
pub(crate) fn make_file_private(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(FILE_MODE))
}

/// Takes the rights of others away from everything under `dir`.
pub(crate) fn make_private(dir: &Path) -> io::Result<()> {
    fs::set_permissions(dir, Permissions::from_mode(DIR_MODE))?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            make_private(&entry.path())?;
        } else {
            make_file_private(&entry.path())?;
        }
    }
    Ok(())
}

/// Puts `bytes` under `path` so that a reader, or a crash, sees all of them or none.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let staged = path.with_extension("new");
    let mut file = File::options().write(true).create(true).truncate(true).mode(FILE_MODE).open(&staged)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&staged, path)?;
    fsync_dir(parent_of(path))
}

/// The folder that `path` lies in.
pub(crate) fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes the names in a folder survive a loss of power.
pub(crate) fn fsync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Every file under `dir`, in a fixed order.
pub(crate) fn files_under(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Copies the folder `from` to the new folder `to`.
pub(crate) fn copy_dir(from: &Path, to: &Path) -> io::Result<()> {
    create_private_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_dir(&entry.path(), &target)?;
        } else {
            let _ = fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Removes a file or a folder with all in it; that it is not there is fine.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let result = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
