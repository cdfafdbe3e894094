//! What is shown of a stream: the whole, or its end with a notice, and a file that holds all that was kept.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use super::capture::{Stream, CAPTURE_MAX_BYTES, NAMES};

/// More than this is cut, in bytes.
const WHOLE_MAX_BYTES: usize = 51_200;
/// More than this is cut, in line feeds.
const WHOLE_MAX_LINES: usize = 2000;
/// What is shown of a stream that is cut, in bytes: its end.
pub(crate) const TAIL_BYTES: usize = 8192;
/// Files that are kept; the oldest goes first.
const ARTIFACTS_MAX: usize = 8;

/// A stream as it is shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) text: String,
    pub(super) is_truncated: bool,
    /// The file with all that was kept.
    pub(super) artifact: Option<String>,
    /// What is to be said about it.
    pub(super) note: Option<String>,
}

/// The files of streams that were cut.
#[derive(Debug)]
pub(super) struct Artifacts {
    folder: PathBuf,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    files: VecDeque<PathBuf>,
    calls: u64,
}

impl Artifacts {
    /// Files go to `folder`, which need not be there yet.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, kept: Mutex::default() }
    }

    /// Shows the streams of a call that has ended.
    pub(super) fn shorten(&self, streams: [Stream; 2]) -> [Shown; 2] {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.calls += 1;
        let call = kept.calls;
        let [stdout, stderr] = streams;
        [(NAMES[0], stdout), (NAMES[1], stderr)].map(|(name, stream)| {
            if !is_long(&stream) {
                let text = String::from_utf8_lossy(&stream.kept).into_owned();
                return Shown { text, is_truncated: false, artifact: None, note: None };
            }
            let file = self.folder.join(format!("{call:06}.{name}.txt"));
            let (artifact, note) = match kept.write(&self.folder, file, &stream.kept) {
                Ok(file) => (Some(file), None),
                Err(error) => (None, Some(format!("the whole {name} could not be kept in a file: {error}"))),
            };
            let text = format!("{}\n{}", notice(&stream, artifact.as_deref()), tail(&stream.kept));
            Shown { text, is_truncated: true, artifact, note }
        })
    }
}

impl Kept {
    fn write(&mut self, folder: &PathBuf, file: PathBuf, content: &[u8]) -> io::Result<String> {
        fs::create_dir_all(folder)?;
        fs::write(&file, content)?;
        let shown = file.display().to_string();
        self.files.push_back(file);
        if self.files.len() > ARTIFACTS_MAX {
            if let Some(Err(error)) = self.files.pop_front().map(fs::remove_file) {
                log::warn!("an old artifact cannot be removed: {error}");
            }
        }
        Ok(shown)
    }
}

fn is_long(stream: &Stream) -> bool {
    stream.is_capped() || stream.kept.len() > WHOLE_MAX_BYTES || line_feeds(&stream.kept) > WHOLE_MAX_LINES
}

fn line_feeds(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

fn notice(stream: &Stream, artifact: Option<&str>) -> String {
    let shown = tail_bytes(&stream.kept).len();
    let (kept, lines, total) = (stream.kept.len(), line_feeds(&stream.kept), stream.total_bytes);
    let capped = match stream.is_capped() {
        true => {
            format!("; only the first {CAPTURE_MAX_BYTES} bytes were captured, the end is not among them")
        }
        false => String::new(),
    };
    let artifact = match artifact {
        Some(file) => format!("captured output (first 10MB) at {file}"),
        None => "artifact unavailable".to_owned(),
    };
    format!(
        "[truncated: showing last {shown} bytes; {kept} bytes captured / {lines} lines / {total} bytes \
         total{capped}; {artifact}]"
    )
}

fn tail(bytes: &[u8]) -> String {
    String::from_utf8_lossy(tail_bytes(bytes)).into_owned()
}

/// The end, without the rest of a character that began before it.
fn tail_bytes(bytes: &[u8]) -> &[u8] {
    let tail = &bytes[bytes.len().saturating_sub(TAIL_BYTES)..];
    let is_continuation = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    let cut =
        if tail.len() < bytes.len() { tail.iter().take(3).take_while(is_continuation).count() } else { 0 };
    &tail[cut..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(bytes: impl Into<Vec<u8>>) -> Stream {
        let kept: Vec<u8> = bytes.into();
        Stream { total_bytes: kept.len() as u64, kept }
    }

    #[test]
    fn the_limit_is_whole_and_one_more_is_cut() {
        let folder = tempfile::tempdir().expect("a folder");
        let artifacts = Artifacts::new(folder.path().join("artifacts"));
        let lines = "\n".repeat(WHOLE_MAX_LINES);
        let [whole, also] = artifacts.shorten([stream("x".repeat(WHOLE_MAX_BYTES)), stream(lines.clone())]);
        assert!(!whole.is_truncated && !also.is_truncated);
        let [cut, also] = artifacts.shorten([stream("x".repeat(WHOLE_MAX_BYTES + 1)), stream(lines + "\n")]);
        let file = cut.artifact.expect("a file");
        assert!(file.ends_with("000002.stdout.txt"), "{file}");
        assert_eq!(fs::read(&file).expect("readable").len(), WHOLE_MAX_BYTES + 1);
        let (notice, tail) = cut.text.split_once('\n').expect("a notice");
        assert!(
            notice.contains("last 8192 bytes; 51201 bytes captured / 0 lines / 51201 bytes total;"),
            "{notice}"
        );
        assert_eq!(tail.len(), TAIL_BYTES);
        assert!(also.is_truncated && also.text.contains("2001 lines"));
    }

    #[test]
    fn a_tail_begins_with_a_whole_character() {
        let bytes = "\u{20ac}".repeat(20_000);
        let shown = tail(bytes.as_bytes());
        assert!(shown.chars().all(|c| c == '\u{20ac}'), "{}", &shown[..9]);
        assert_eq!(shown.len(), TAIL_BYTES - TAIL_BYTES % 3);
        assert_eq!(tail(b"\x80\x80a"), "\u{fffd}\u{fffd}a", "nothing was cut");
    }

    #[test]
    fn the_ninth_file_takes_the_place_of_the_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let artifacts = Artifacts::new(folder.path().to_owned());
        for _ in 0..5 {
            let long = || stream("x".repeat(WHOLE_MAX_BYTES + 1));
            artifacts.shorten([long(), long()]);
        }
        let mut names: Vec<_> =
            fs::read_dir(folder.path()).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        assert_eq!(names.len(), ARTIFACTS_MAX);
        assert_eq!(names[0], "000002.stderr.txt");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_a_note_and_no_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "").expect("a file");
        let [shown, _] = Artifacts::new(file).shorten([stream("x".repeat(WHOLE_MAX_BYTES + 1)), stream("")]);
        assert!(shown.artifact.is_none() && shown.text.contains("artifact unavailable"));
        assert!(shown.note.expect("a note").contains("could not be kept"));
    }
}
