//! Texts that come from a file or from stdin.

use std::fs::File;
use std::path::Path;

use super::context::read_text;
use super::failure::Failure;

/// The whole text of a file, or of stdin for `-`.
pub(crate) fn file_or_stdin(path: &Path) -> Result<String, Failure> {
    if path == Path::new("-") {
        return read_text("stdin", std::io::stdin().lock());
    }
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| Failure::Usage(format!("cannot read {name}: {error}")))?;
    read_text(&name, file)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_is_read_whole_and_a_missing_one_is_named() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"a\n").unwrap();
        assert_eq!(file_or_stdin(file.path()).unwrap(), "a\n");
        let missing = Path::new("/nowhere/absent.patch");
        let Err(Failure::Usage(text)) = file_or_stdin(missing) else { panic!("was read") };
        assert!(text.contains("/nowhere/absent.patch"), "{text}");
    }
}
