//! Files: where a path leads, what counts as a text file, and the tools that read and change one.
//!
//! A path may lead anywhere the user may go, as in the shell: there is no fence, and none is claimed.

mod diff;
mod read;
mod replace;

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

pub(crate) use self::read::{read_file, LINES_DEFAULT};
pub(crate) use self::replace::str_replace;

use crate::tool::ToolError;

/// Largest text file that is read or written, in bytes.
pub(crate) const FILE_MAX_BYTES: usize = 10 * 1024 * 1024;

/// Where `path` leads, links resolved, seen from `workdir`, which is itself seen from `cwd`.
pub(crate) fn locate(cwd: &Path, workdir: Option<&str>, path: &str) -> Result<PathBuf, ToolError> {
    let candidate = cwd.join(workdir.unwrap_or_default()).join(path);
    fs::canonicalize(&candidate).map_err(|error| {
        ToolError::Invalid(format!("path not accessible: {}: {error}; check it with ls", candidate.display()))
    })
}

/// The whole of a text file. `shown` is its name in errors.
fn read_text(path: &Path, shown: &str) -> Result<String, ToolError> {
    let reading = |error| ToolError::io(format_args!("cannot read {shown}"), &error);
    let metadata = fs::metadata(path).map_err(reading)?;
    if !metadata.is_file() {
        return Err(ToolError::Invalid(format!("not a regular file: {shown}; name a text file")));
    }
    let bytes = metadata.len();
    if bytes > FILE_MAX_BYTES as u64 {
        return Err(ToolError::Invalid(format!(
            "too large: {shown} has {bytes} bytes, the limit is {FILE_MAX_BYTES}; use the shell for a part of it"
        )));
    }
    let mut content = Vec::with_capacity(usize::try_from(bytes).unwrap_or_default());
    let file = File::open(path).map_err(reading)?;
    file.take(FILE_MAX_BYTES as u64 + 1).read_to_end(&mut content).map_err(reading)?;
    if content.len() > FILE_MAX_BYTES {
        return Err(ToolError::Invalid(format!(
            "{shown} grew past {FILE_MAX_BYTES} bytes while it was read"
        )));
    }
    String::from_utf8(content).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        ToolError::Trouble(format!("not valid UTF-8: {shown}, at byte {at}; use the shell to look at it"))
    })
}
