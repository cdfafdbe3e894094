//! `rg`: ripgrep where it is installed, else a plain search of our own for a piece of text.

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ignore::WalkBuilder;

use super::{Printed, DEPTH_MAX, USAGE_EXIT_CODE};

/// Folders that nobody wants to search.
const SKIPPED_FOLDERS: [&str; 4] = ["target", "node_modules", "dist", "build"];
/// Most lines around a match.
const CONTEXT_MAX: usize = 100;
/// Longest line that is searched, in bytes.
const LINE_MAX_BYTES: u64 = 1024 * 1024;
/// What ripgrep's end by a signal counts as.
const KILLED_EXIT_CODE: u8 = 2;
const USAGE: &str =
    "usage: rg [-n] [-i] [-l] [-C N] [-g GLOB] [--] TEXT [PATH...], or rg --files [-g GLOB] [PATH...]\n\
     This rg finds plain text, not regular expressions; install ripgrep for more.";

/// What the arguments ask for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    pattern: Option<String>,
    paths: Vec<PathBuf>,
    numbers: bool,
    ignore_case: bool,
    names_only: bool,
    /// Lines shown around a match.
    context: usize,
    globs: Vec<String>,
    list_files: bool,
}

/// Searches for what the arguments name, with the ripgrep that is installed if there is one. Gives the exit code:
/// 0 found, 1 not found, 2 wrong.
pub fn run(arguments: &[OsString], out: impl Write) -> io::Result<u8> {
    if let Some(program) = installed() {
        let status = Command::new(program).args(arguments).status()?;
        return Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(KILLED_EXIT_CODE));
    }
    match Asked::read(arguments) {
        Ok(asked) => asked.search(out),
        Err(why) => {
            eprintln!("rg: {why}\n{USAGE}");
            Ok(USAGE_EXIT_CODE)
        }
    }
}

/// A ripgrep on `PATH` that is not this program.
fn installed() -> Option<PathBuf> {
    let own = env::current_exe().and_then(fs::canonicalize).ok();
    let path = env::var_os("PATH")?;
    let programs =
        env::split_paths(&path).filter_map(|folder| crate::shell::find(OsStr::new("rg"), folder.as_os_str()));
    programs.into_iter().find(|program| fs::canonicalize(program).ok() != own)
}

impl Asked {
    fn read(arguments: &[OsString]) -> Result<Self, String> {
        let mut asked = Self::default();
        let mut rest = arguments.iter();
        let mut only_words = false;
        while let Some(argument) = rest.next() {
            let mut value =
                |flag: &str| rest.next().and_then(|v| v.to_str()).ok_or(format!("{flag} needs a value"));
            match argument.to_str() {
                Some("--") if !only_words => only_words = true,
                Some(flag) if !only_words && flag.starts_with('-') && flag.len() > 1 => match flag {
                    "-n" | "--line-number" => asked.numbers = true,
                    "-i" | "--ignore-case" => asked.ignore_case = true,
                    "-l" | "--files-with-matches" => asked.names_only = true,
                    "--files" => asked.list_files = true,
                    "-g" | "--glob" => asked.globs.push(value(flag)?.to_owned()),
                    "-C" | "--context" => {
                        let lines: usize =
                            value(flag)?.parse().map_err(|_| format!("{flag} needs a number"))?;
                        asked.context = lines.min(CONTEXT_MAX);
                    }
                    _ => return Err(format!("unknown flag {flag}")),
                },
                Some(word) if asked.pattern.is_none() && !asked.list_files => {
                    asked.pattern = Some(word.to_owned())
                }
                _ => asked.paths.push(PathBuf::from(argument)),
            }
        }
        if asked.list_files {
            // What came before --files was no pattern.
            asked.paths.splice(0..0, asked.pattern.take().map(PathBuf::from));
        }
        match asked.list_files || asked.pattern.is_some() {
            true => Ok(asked),
            false => Err("no text to search for".to_owned()),
        }
    }

    fn search(&self, out: impl Write) -> io::Result<u8> {
        let mut out = Printed::new(out);
        let mut is_found = false;
        if self.paths.is_empty() && !self.list_files && is_stdin_for_us() {
            is_found = self.search_lines(io::stdin().lock(), None, &mut out)?;
        } else {
            for file in self.files() {
                is_found |= self.search_file(&file, &mut out)?;
            }
        }
        Ok(u8::from(!is_found))
    }

    /// The files below the paths. A path that was typed is searched whatever its name.
    fn files(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let here = [PathBuf::from(".")];
        let typed = if self.paths.is_empty() { here.to_vec() } else { self.paths.clone() };
        let mut seen = BTreeSet::new();
        let is_here = self.paths.is_empty();
        typed.into_iter().flat_map(walk).filter_map(move |file| {
            let shown = if is_here { file.strip_prefix(".").unwrap_or(&file).to_owned() } else { file };
            (self.is_wanted(&shown) && seen.insert(shown.clone())).then_some(shown)
        })
    }

    fn is_wanted(&self, file: &Path) -> bool {
        let whole = file.to_string_lossy();
        let whole = whole.strip_prefix("./").unwrap_or(&whole);
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let matches = |glob: &String| {
            is_glob_match(glob.as_bytes(), name.as_bytes())
                || is_glob_match(glob.as_bytes(), whole.as_bytes())
        };
        self.globs.is_empty() || self.globs.iter().any(matches)
    }

    fn search_file<W: Write>(&self, file: &Path, out: &mut Printed<W>) -> io::Result<bool> {
        if self.list_files {
            out.line(file.as_os_str().as_bytes())?;
            return Ok(true);
        }
        match File::open(file) {
            Ok(content) => self.search_lines(BufReader::new(content), Some(file), out),
            Err(error) => {
                eprintln!("rg: {}: {error}", file.display());
                Ok(false)
            }
        }
    }

    /// Prints the lines that match, with those around. What follows a line that is no text is left out.
    fn search_lines<W: Write>(
        &self,
        content: impl BufRead,
        file: Option<&Path>,
        out: &mut Printed<W>,
    ) -> io::Result<bool> {
        let lines = text_lines(content);
        let found: Vec<_> = (0..lines.len()).filter(|at| self.is_match(&lines[*at])).collect();
        if self.names_only && !found.is_empty() {
            out.line(file.map_or(b"<stdin>".as_slice(), |file| file.as_os_str().as_bytes()))?;
            return Ok(true);
        }
        let mut next = 0;
        for at in &found {
            let first = at.saturating_sub(self.context).max(next);
            next = (at + self.context + 1).min(lines.len()).max(next);
            for (at, line) in lines.iter().enumerate().take(next).skip(first) {
                let path = file.map(|file| [file.as_os_str().as_bytes(), b":"].concat()).unwrap_or_default();
                let number = if self.numbers { format!("{}:", at + 1) } else { String::new() };
                out.line(&[&path, number.as_bytes(), line.as_bytes()].concat())?;
            }
        }
        Ok(!found.is_empty())
    }

    fn is_match(&self, line: &str) -> bool {
        let pattern = self.pattern.as_deref().unwrap_or_default();
        match self.ignore_case {
            true => line.to_lowercase().contains(&pattern.to_lowercase()),
            false => line.contains(pattern),
        }
    }
}

/// Whether something is piped in to be searched.
fn is_stdin_for_us() -> bool {
    fs::metadata("/dev/stdin").is_ok_and(|stdin| stdin.file_type().is_fifo() || stdin.is_file())
}

fn walk(root: PathBuf) -> impl Iterator<Item = PathBuf> {
    let is_wanted = |entry: &ignore::DirEntry| {
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        entry.depth() == 0 || !(is_folder && SKIPPED_FOLDERS.iter().any(|name| entry.file_name() == *name))
    };
    // Only dot names and those folders are passed over: this search knows no .gitignore.
    let walk = WalkBuilder::new(root)
        .standard_filters(false)
        .hidden(true)
        .max_depth(Some(DEPTH_MAX))
        .filter_entry(is_wanted)
        .build();
    walk.filter_map(|found| match found {
        Ok(found) => {
            let is_file = match found.depth() {
                0 => found.path().is_file(),
                _ => found.file_type().is_some_and(|kind| kind.is_file()),
            };
            is_file.then(|| found.into_path())
        }
        Err(error) => {
            eprintln!("rg: {error}");
            None
        }
    })
}

/// The lines up to the first that is no text or too long.
fn text_lines(mut content: impl BufRead) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        let mut line = Vec::new();
        let read = (&mut content).take(LINE_MAX_BYTES + 1).read_until(b'\n', &mut line);
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        match (read, line.len() as u64 > LINE_MAX_BYTES, String::from_utf8(line)) {
            (Ok(1..), false, Ok(line)) => lines.push(line.strip_suffix('\r').unwrap_or(&line).to_owned()),
            _ => return lines,
        }
    }
}

/// Whether a name is one of the glob's: `*` stands for any text, `/` included, and `?` for one character.
fn is_glob_match(glob: &[u8], name: &[u8]) -> bool {
    let (mut at, mut glob_at) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while at < name.len() {
        match glob.get(glob_at) {
            Some(b'*') => {
                star = Some((glob_at, at));
                glob_at += 1;
            }
            Some(b'?') => {
                at += char_bytes(name[at]);
                glob_at += 1;
            }
            Some(byte) if *byte == name[at] => {
                at += 1;
                glob_at += 1;
            }
            _ => {
                let Some((star_at, from)) = star else { return false };
                star = Some((star_at, from + 1));
                (glob_at, at) = (star_at + 1, from + 1);
            }
        }
    }
    glob[glob_at..].iter().all(|byte| *byte == b'*')
}

/// How many bytes the character that begins with this one has.
fn char_bytes(first: u8) -> usize {
    match first {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(words: &[&str]) -> Result<Asked, String> {
        Asked::read(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    /// A folder with some files, and what a search in it prints.
    fn search(words: &[&str]) -> (String, u8) {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, content) in [
            ("src/a.rs", "fn alpha() {}\nlet x = 1;\n// Alpha\n"),
            ("src/b.txt", "alpha beta\n"),
            (".hidden", "alpha\n"),
            ("target/t.rs", "alpha\n"),
        ] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, content).expect("a file");
        }
        fs::write(folder.path().join("bad"), b"alpha\n\xff\nalpha\n").expect("a file");
        let mut asked = asked(words).expect("understood");
        asked.paths.push(folder.path().to_owned());
        let mut out = Vec::new();
        let code = asked.search(&mut out).expect("printed");
        let root = format!("{}/", folder.path().display());
        let text = String::from_utf8(out).expect("UTF-8").replace(&root, "");
        let mut lines: Vec<_> = text.lines().collect();
        lines.sort_unstable();
        (lines.join("\n"), code)
    }

    #[test]
    fn lines_are_shown_with_their_file() {
        assert_eq!(search(&["alpha"]).0, "bad:alpha\nsrc/a.rs:fn alpha() {}\nsrc/b.txt:alpha beta");
        assert_eq!(
            search(&["-n", "-i", "ALPHA", "-g", "*.rs"]).0,
            "src/a.rs:1:fn alpha() {}\nsrc/a.rs:3:// Alpha"
        );
        assert_eq!(search(&["-l", "alpha"]).0, "bad\nsrc/a.rs\nsrc/b.txt");
        assert_eq!(search(&["-C", "1", "let x"]).0.lines().count(), 3);
        assert_eq!(search(&["--files", "-g", "*/src/*"]).0, "src/a.rs\nsrc/b.txt");
        assert_eq!(search(&["a.pha"]), (String::new(), 1));
        assert_eq!(search(&["alpha"]).1, 0);
    }

    #[test]
    fn a_wrong_command_line_is_told_from_no_match() {
        for wrong in [["--no-such-flag", "x"].as_slice(), &[], &["-C", "x", "y"], &["-g"], &["-ni", "x"]] {
            assert!(asked(wrong).is_err(), "{wrong:?}");
        }
        let words = asked(&["--", "-n", "p"]).expect("understood");
        assert_eq!((words.pattern.as_deref(), words.paths), (Some("-n"), vec![PathBuf::from("p")]));
        assert_eq!(asked(&["-C", "1000", "x"]).expect("understood").context, CONTEXT_MAX);
    }

    #[test]
    fn a_glob_crosses_folders() {
        for (glob, name, expected) in [
            ("*.rs", "a.rs", true),
            ("*.rs", "a.rsx", false),
            ("src/*.rs", "src/deep/a.rs", true),
            ("a?c", "abc", true),
            ("a?c", "a\u{e9}c", true),
            ("a?c", "ac", false),
            ("*a*b*", "xxaxxbxx", true),
            ("", "a", false),
            ("**", "", true),
        ] {
            assert_eq!(is_glob_match(glob.as_bytes(), name.as_bytes()), expected, "{glob} {name}");
        }
    }

    #[test]
    fn output_ends_at_its_limits() {
        let many = "alpha\n".repeat(3000);
        let long = format!("alpha{}\n", "x".repeat(1000)).repeat(100);
        let asked = asked(&["alpha"]).expect("understood");
        for (content, lines) in [(many, 2000), (long, 50)] {
            let mut out = Vec::new();
            asked.search_lines(content.as_bytes(), None, &mut Printed::new(&mut out)).expect("printed");
            assert_eq!(memchr::memchr_iter(b'\n', &out).count(), lines);
        }
    }
}
