//! Applying a unified diff to a memory. What was read decides: each hunk must stand exactly where it says, on
//! exactly the lines that it shows. Nothing is searched for and nothing is guessed.

use diffy::{Hunk, Line, ParsePatchError, Patch};

/// Why a diff does not apply.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PatchError {
    /// More than one file.
    #[error("the diff has {0} lines that start with \"--- \", at most one is taken: send one file's diff, and no removed line that looks like a header")]
    Headers(usize),
    /// No unified diff.
    #[error("the diff is malformed: {0}")]
    Malformed(#[from] ParsePatchError),
    /// Lines that no hunk counts.
    #[error("the diff has {0} lines behind its last hunk, whose header counts fewer lines than follow")]
    Leftover(usize),
    /// A hunk that begins past the end.
    #[error("hunk {hunk} starts at line {start}, but the memory has {lines} lines")]
    PastEnd {
        /// Which hunk, from 1.
        hunk: usize,
        /// Where it says that it stands.
        start: usize,
        /// How many lines there are.
        lines: usize,
    },
    /// A hunk that is not where it says.
    #[error("hunk {hunk} does not match line {line}: the diff has {wanted:?}, the memory has {found:?}; read it again and make a new diff")]
    Mismatch {
        /// Which hunk, from 1.
        hunk: usize,
        /// Which line, from 1.
        line: usize,
        /// What the diff says is there.
        wanted: String,
        /// What is there.
        found: Option<String>,
    },
    /// A hunk that does not show where it belongs.
    #[error("hunk {0} only adds lines and shows none of those around them; that is taken for an empty memory at -0,0 only")]
    NoPreimage(usize),
}

/// The text after the diff.
pub(crate) fn apply(text: &str, diff: &str) -> Result<String, PatchError> {
    let headers = diff.lines().filter(|line| line.starts_with("--- ")).count();
    if headers > 1 {
        return Err(PatchError::Headers(headers));
    }
    let patch = Patch::from_str(diff)?;
    check_leftover(diff, patch.hunks())?;
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (mut result, mut next) = (String::with_capacity(text.len()), 0);
    for (index, hunk) in patch.hunks().iter().enumerate() {
        let start = start_of(hunk, index + 1, text.is_empty())?;
        let Some(between) = lines.get(next..start) else {
            return Err(PatchError::PastEnd { hunk: index + 1, start: start + 1, lines: lines.len() });
        };
        result.extend(between.iter().copied());
        next = take(hunk, index + 1, &lines, start, &mut result)?;
    }
    result.extend(lines.iter().skip(next).copied());
    Ok(result)
}

/// How many lines of the text stand before the hunk.
fn start_of(hunk: &Hunk<'_, str>, number: usize, is_empty: bool) -> Result<usize, PatchError> {
    let range = hunk.old_range();
    match range.len() {
        0 if is_empty && range.start() == 0 => Ok(0),
        0 => Err(PatchError::NoPreimage(number)),
        _ => Ok(range.start().saturating_sub(1)),
    }
}

/// Writes what the hunk makes of its lines. Gives the index of the first line after them.
fn take(
    hunk: &Hunk<'_, str>,
    number: usize,
    lines: &[&str],
    start: usize,
    result: &mut String,
) -> Result<usize, PatchError> {
    let mut next = start;
    for line in hunk.lines() {
        let (wanted, is_kept) = match line {
            Line::Context(wanted) => (wanted, true),
            Line::Delete(wanted) => (wanted, false),
            Line::Insert(added) => {
                result.push_str(added);
                continue;
            }
        };
        let found = lines.get(next).copied();
        if found != Some(*wanted) {
            return Err(PatchError::Mismatch {
                hunk: number,
                line: next + 1,
                wanted: (*wanted).to_owned(),
                found: found.map(str::to_owned),
            });
        }
        if is_kept {
            result.push_str(wanted);
        }
        next += 1;
    }
    Ok(next)
}

/// Refuses lines behind the last hunk: the parser passes over them, and they may be a part of what was meant.
fn check_leftover(diff: &str, hunks: &[Hunk<'_, str>]) -> Result<(), PatchError> {
    let body: Vec<&str> = diff.lines().skip_while(|line| !line.starts_with("@@ ")).collect();
    let counted: usize = hunks.iter().map(|hunk| 1 + hunk.lines().len()).sum();
    let marks = body.iter().filter(|line| line.starts_with("\\ ")).count();
    let leftover = body.iter().skip(counted + marks).filter(|line| !line.trim().is_empty()).count();
    match leftover {
        0 => Ok(()),
        count => Err(PatchError::Leftover(count)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "one\ntwo\nthree\nfour\nfive\n";

    fn patched(hunks: &str) -> Result<String, PatchError> {
        apply(TEXT, &format!("--- a\n+++ b\n{hunks}"))
    }

    #[test]
    fn a_hunk_on_its_lines_is_applied() {
        let hunk = "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n";
        assert_eq!(patched(hunk).unwrap(), TEXT.replace("two", "TWO"));
        assert_eq!(apply(TEXT, hunk).unwrap(), TEXT.replace("two", "TWO"));
    }

    #[test]
    fn the_numbers_of_all_hunks_count_in_the_old_text() {
        let hunks = "@@ -1 +1,3 @@\n-one\n+1\n+1.1\n+1.2\n@@ -5 +7 @@\n-five\n+5\n";
        assert_eq!(patched(hunks).unwrap(), "1\n1.1\n1.2\ntwo\nthree\nfour\n5\n");
    }

    #[test]
    fn a_hunk_one_line_off_is_refused_though_its_lines_are_there() {
        let error = patched("@@ -2,2 +2,2 @@\n one\n-two\n+TWO\n").unwrap_err();
        assert!(matches!(error, PatchError::Mismatch { hunk: 1, line: 2, .. }), "{error}");
    }

    #[test]
    fn a_changed_line_is_refused_and_shown() {
        let error = patched("@@ -2,2 +2,2 @@\n-deux\n+TWO\n three\n").unwrap_err().to_string();
        assert!(error.contains(r#""deux\n""#) && error.contains(r#""two\n""#), "{error}");
    }

    #[test]
    fn a_hunk_past_the_end_is_refused() {
        assert!(matches!(patched("@@ -9 +9 @@\n-x\n+y\n"), Err(PatchError::PastEnd { start: 9, .. })));
        let last = "@@ -5,2 +5,2 @@\n five\n-six\n+6\n";
        assert!(matches!(patched(last), Err(PatchError::Mismatch { line: 6, found: None, .. })));
    }

    #[test]
    fn adding_without_context_is_for_an_empty_text_only() {
        assert_eq!(apply("", "@@ -0,0 +1,2 @@\n+a\n+b\n").unwrap(), "a\nb\n");
        for hunk in ["@@ -0,0 +1 @@\n+a\n", "@@ -5,0 +6 @@\n+a\n"] {
            assert!(matches!(patched(hunk), Err(PatchError::NoPreimage(1))), "{hunk}");
        }
        assert!(matches!(apply("", "@@ -1,0 +1 @@\n+a\n"), Err(PatchError::NoPreimage(1))));
    }

    #[test]
    fn a_missing_newline_at_the_end_is_a_difference() {
        let mark = "\\ No newline at end of file\n";
        let hunk = format!("@@ -2 +2 @@\n-b\n{mark}+B\n{mark}");
        assert_eq!(apply("a\nb", &hunk).unwrap(), "a\nB");
        assert!(apply("a\nb\n", &hunk).is_err());
        let hunk = format!("@@ -2 +2 @@\n-b\n{mark}+B\n");
        assert_eq!(apply("a\nb", &hunk).unwrap(), "a\nB\n");
    }

    #[test]
    fn two_files_are_refused() {
        let hunk = "--- a\n+++ b\n@@ -1 +1 @@\n-one\n+1\n";
        assert!(matches!(apply(TEXT, &hunk.repeat(2)), Err(PatchError::Headers(2))));
    }

    #[test]
    fn a_hunk_whose_header_counts_too_few_or_too_many_lines_is_refused() {
        assert!(matches!(patched("@@ -1 +1 @@\n-one\n+1\n+2\n"), Err(PatchError::Leftover(1))));
        assert!(matches!(patched("@@ -1,2 +1 @@\n-one\n+1\n"), Err(PatchError::Malformed(_))));
        assert!(matches!(patched("@@ -x +1 @@\n-one\n+1\n"), Err(PatchError::Malformed(_))));
        let late = "@@ -5 +5 @@\n-five\n+5\n@@ -1 +1 @@\n-one\n+1\n";
        assert!(matches!(patched(late), Err(PatchError::Malformed(_))));
    }

    #[test]
    fn blank_lines_behind_the_last_hunk_are_no_part_of_it() {
        assert_eq!(patched("@@ -1 +1 @@\n-one\n+1\n\n\n").unwrap(), TEXT.replace("one", "1"));
    }

    #[test]
    fn a_text_without_a_hunk_changes_nothing() {
        assert_eq!(apply(TEXT, "nonsense").unwrap(), TEXT);
    }
}
