//! `tree`: folders and files with their number of lines, without what git ignores.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

use super::{Printed, DEPTH_MAX, USAGE_EXIT_CODE};

/// Files beyond this are not counted, in bytes.
const COUNTED_MAX_BYTES: u64 = 10 * 1024 * 1024;
const USAGE: &str = "usage: tree [-d N | --depth N] [--] [PATH]";

/// What the arguments ask for.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    depth: usize,
    root: PathBuf,
}

/// A file or a folder.
struct Entry {
    path: PathBuf,
    depth: usize,
    is_folder: bool,
    /// Its lines, or those below it.
    lines: u64,
}

/// Lists what the arguments name on `out`; complaints go to stderr. Gives the exit code.
pub fn run(arguments: &[OsString], out: impl Write) -> io::Result<u8> {
    let asked = match Asked::read(arguments) {
        Ok(asked) => asked,
        Err(why) => {
            eprintln!("tree: {why}\n{USAGE}");
            return Ok(USAGE_EXIT_CODE);
        }
    };
    if let Some(why) = unusable(&asked.root) {
        eprintln!("tree: {}: {why}", asked.root.display());
        return Ok(USAGE_EXIT_CODE);
    }
    print(&asked, out)?;
    Ok(0)
}

impl Asked {
    fn read(arguments: &[OsString]) -> Result<Self, String> {
        let (mut depth, mut root) = (DEPTH_MAX, None);
        let mut rest = arguments.iter();
        let mut only_paths = false;
        while let Some(argument) = rest.next() {
            match argument.to_str() {
                Some("--") if !only_paths => only_paths = true,
                Some("-d" | "--depth") if !only_paths => {
                    let number = rest.next().and_then(|number| number.to_str()?.parse::<usize>().ok());
                    depth = number.ok_or("-d needs a number")?.min(DEPTH_MAX);
                }
                Some(flag) if !only_paths && flag.starts_with('-') && flag.len() > 1 => {
                    return Err(format!("unknown flag {flag}"));
                }
                _ if root.is_some() => return Err("more than one path".to_owned()),
                _ => root = Some(PathBuf::from(argument)),
            }
        }
        Ok(Self { depth, root: root.unwrap_or_else(|| PathBuf::from(".")) })
    }
}

fn unusable(root: &Path) -> Option<String> {
    match root.metadata() {
        Ok(metadata) if metadata.is_dir() => None,
        Ok(_) => Some("not a directory".to_owned()),
        Err(error) => Some(error.to_string()),
    }
}

fn print(asked: &Asked, out: impl Write) -> io::Result<()> {
    let entries = entries(asked);
    let total: u64 = entries.iter().filter(|entry| !entry.is_folder).map(|entry| entry.lines).sum();
    let mut out = Printed::new(out);
    let root = asked.root.as_os_str().as_bytes();
    let root = root.strip_suffix(b"/").unwrap_or(root);
    out.line(&[root, format!("/  [{total}]").as_bytes()].concat())?;
    for entry in &entries {
        if !out.line(&entry.line(asked.depth))? {
            return writeln!(out.out, "[truncated]");
        }
    }
    Ok(())
}

/// What is below the root, in the order of the listing.
fn entries(asked: &Asked) -> Vec<Entry> {
    let walk = WalkBuilder::new(&asked.root)
        .max_depth(Some(asked.depth))
        .require_git(false)
        .sort_by_file_name(OsStr::cmp)
        .build();
    let mut entries: Vec<Entry> = Vec::new();
    for found in walk {
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                eprintln!("tree: {error}");
                continue;
            }
        };
        let is_folder = found.file_type().is_some_and(|kind| kind.is_dir());
        if found.depth() == 0 || found.path_is_symlink() {
            continue;
        }
        let lines = if is_folder { 0 } else { count_lines(found.path()) };
        entries.push(Entry { depth: found.depth(), is_folder, lines, path: found.into_path() });
    }
    add_up(&mut entries);
    entries
}

/// Gives each folder the lines of the files below it, which follow it in the listing.
fn add_up(entries: &mut [Entry]) {
    let mut below = vec![0; DEPTH_MAX + 2];
    for entry in entries.iter_mut().rev() {
        if entry.is_folder {
            entry.lines = std::mem::take(&mut below[entry.depth + 1]);
        }
        below[entry.depth] += entry.lines;
    }
}

impl Entry {
    fn line(&self, depth_max: usize) -> Vec<u8> {
        let indent = "  ".repeat(self.depth - 1);
        let name = self.path.file_name().unwrap_or_default().as_bytes();
        let end = match (self.is_folder, self.depth == depth_max) {
            // What is below it was not looked at.
            (true, true) => "/".to_owned(),
            (true, false) => format!("/  [{}]", self.lines),
            (false, _) => format!("  [{}]", self.lines),
        };
        [indent.as_bytes(), name, end.as_bytes()].concat()
    }
}

/// Line feeds, and one more for a last line without. 0 for what cannot be read or is too large.
fn count_lines(path: &Path) -> u64 {
    let is_small =
        |file: &File| file.metadata().is_ok_and(|data| data.is_file() && data.len() <= COUNTED_MAX_BYTES);
    let mut content = Vec::new();
    let file =
        path.symlink_metadata().ok().filter(std::fs::Metadata::is_file).and_then(|_| File::open(path).ok());
    let read = file.filter(is_small).map(|file| file.take(COUNTED_MAX_BYTES).read_to_end(&mut content));
    if !matches!(read, Some(Ok(_))) {
        return 0;
    }
    let feeds = memchr::memchr_iter(b'\n', &content).count() as u64;
    feeds + u64::from(content.last().is_some_and(|last| *last != b'\n'))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn listing(files: &[(&str, &str)], arguments: &[&str]) -> (String, u8) {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, content) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, content).expect("a file");
        }
        let root = folder.path().as_os_str().to_owned();
        let arguments: Vec<_> = arguments.iter().map(OsString::from).chain([root.clone()]).collect();
        let mut out = Vec::new();
        let code = run(&arguments, &mut out).expect("printed");
        let text = String::from_utf8(out).expect("UTF-8");
        (text.replace(&*root.to_string_lossy(), "ROOT"), code)
    }

    #[test]
    fn what_git_ignores_and_what_is_hidden_is_left_out_also_without_git() {
        let files = [
            (".gitignore", "skip\n*.log\n"),
            (".dot", "x"),
            ("skip/x", "1\n"),
            ("a.log", "1\n"),
            ("sub/deep/z", "1\n2\n"),
            ("sub/empty", ""),
            ("b", "1\n2\n3"),
        ];
        let (text, code) = listing(&files, &[]);
        assert_eq!(text, "ROOT/  [5]\nb  [3]\nsub/  [2]\n  deep/  [2]\n    z  [2]\n  empty  [0]\n");
        assert_eq!(code, 0);
        assert_eq!(listing(&files, &["-d", "1"]).0, "ROOT/  [3]\nb  [3]\nsub/\n");
        assert_eq!(listing(&files, &["--depth", "1", "--"]).0, "ROOT/  [3]\nb  [3]\nsub/\n");
    }

    #[test]
    fn a_long_listing_says_that_it_is_cut() {
        let names: Vec<_> = (0..2100).map(|n| format!("{n:04}")).collect();
        let files: Vec<_> = names.iter().map(|name| (name.as_str(), "")).collect();
        let (text, _) = listing(&files, &[]);
        assert_eq!(text.lines().count(), 2001);
        assert!(text.ends_with("\n1998  [0]\n[truncated]\n"), "{}", &text[text.len() - 40..]);
    }

    #[test]
    fn a_wrong_command_line_has_its_own_exit_code() {
        for wrong in [["-x"].as_slice(), &["-d"], &["-d", "x"], &["a", "b"]] {
            assert_eq!(listing(&[], wrong).1, 2, "{wrong:?}");
        }
        let nowhere = run(&["/nowhere/at/all".into()], Vec::new()).expect("said");
        assert_eq!(nowhere, 2);
    }
}
