//! `str_replace`: puts one text in the place of another, in one step or not at all.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{diff, locate, read_text, FILE_MAX_BYTES};
use crate::tool::{arguments, Outcome, Said, ToolError};

/// Longest text to find or to put in its place, in bytes.
const TEXT_MAX_BYTES: usize = 1024 * 1024;
/// How much of a text that was not found is repeated, in characters.
const SHOWN_MAX_CHARS: usize = 80;
/// The bits of a mode that a file keeps.
const MODE_BITS: u32 = 0o7777;

#[derive(Deserialize)]
struct Arguments {
    path: String,
    old_str: String,
    new_str: String,
    #[serde(default)]
    replace_all: bool,
    #[serde(default)]
    workdir: Option<String>,
}

/// Changes a file. Calls must not run beside each other: each reads, changes and writes the whole file.
pub(crate) fn str_replace(cwd: &Path, given: Map<String, Value>) -> Outcome {
    let wanted: Arguments = arguments(given)?;
    check_texts(&wanted)?;
    let path = locate(cwd, wanted.workdir.as_deref(), &wanted.path)?;
    let old = read_text(&path, &wanted.path)?;
    let count = count(&wanted, &old)?;
    let bytes = old.len() - count * wanted.old_str.len() + count * wanted.new_str.len();
    if bytes > FILE_MAX_BYTES {
        return Err(ToolError::Invalid(format!(
            "the file would have {bytes} bytes, the limit is {FILE_MAX_BYTES}; replace less, or use the shell"
        )));
    }
    let new = old.replace(&wanted.old_str, &wanted.new_str);
    write(&path, &new)
        .map_err(|error| ToolError::io(format_args!("cannot write {}", wanted.path), &error))?;
    let occurrences = if count == 1 { "1 occurrence".to_owned() } else { format!("{count} occurrence(s)") };
    let diff = diff::unified(&path, &old, &new);
    Ok(Said::Text(format!("Replaced {occurrences} in {}.\n\n{diff}", path.display())))
}

fn check_texts(wanted: &Arguments) -> Result<(), ToolError> {
    if wanted.old_str.is_empty() {
        let text = "old_str is empty; give the text to replace, or write a new file with the shell";
        return Err(ToolError::Invalid(text.to_owned()));
    }
    for (name, text) in [("old_str", &wanted.old_str), ("new_str", &wanted.new_str)] {
        if text.len() > TEXT_MAX_BYTES {
            return Err(ToolError::Invalid(format!(
                "{name} has {} bytes, the limit is {TEXT_MAX_BYTES}; use the shell for more",
                text.len()
            )));
        }
    }
    Ok(())
}

fn count(wanted: &Arguments, text: &str) -> Result<usize, ToolError> {
    match text.matches(&wanted.old_str).count() {
        0 => {
            let shown: String = wanted.old_str.chars().take(SHOWN_MAX_CHARS).collect();
            let hint = diff::nearest_line(text, &wanted.old_str).map(|hint| format!("; {hint}"));
            let hint = hint.unwrap_or_default();
            Err(ToolError::Invalid(format!("old_str not found in {}: {shown:?}{hint}", wanted.path)))
        }
        count if count > 1 && !wanted.replace_all => Err(ToolError::Invalid(format!(
            "old_str matched multiple locations ({count}) in {}; add lines around it, or set replace_all",
            wanted.path
        ))),
        count => Ok(count),
    }
}

/// Puts `content` in the file's place by a rename, so that nobody ever reads half of it. The mode stays.
fn write(path: &Path, content: &str) -> std::io::Result<()> {
    let mode = fs::metadata(path)?.permissions().mode() & MODE_BITS;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::Builder::new().prefix(".waxlog-").tempfile_in(folder)?;
    file.write_all(content.as_bytes())?;
    file.flush()?;
    file.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
    file.persist(path)?;
    Ok(())
}
