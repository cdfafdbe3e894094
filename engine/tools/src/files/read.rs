//! `read_file`: numbered lines of a text file.

use std::fmt::Write;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{locate, read_text};
use crate::tool::{arguments, Outcome, Said};

/// How many lines are shown unless the caller says otherwise.
pub(crate) const LINES_DEFAULT: u64 = 2000;

#[derive(Deserialize)]
struct Arguments {
    path: String,
    /// Lines passed over.
    #[serde(default)]
    offset: Option<u64>,
    #[serde(default)]
    limit: Option<u64>,
    #[serde(default)]
    workdir: Option<String>,
}

/// Shows lines of a file.
pub(crate) fn read_file(cwd: &Path, given: Map<String, Value>) -> Outcome {
    let wanted: Arguments = arguments(given)?;
    let path = locate(cwd, wanted.workdir.as_deref(), &wanted.path)?;
    let text = read_text(&path, &wanted.path)?;
    let offset = wanted.offset.unwrap_or(0);
    Ok(Said::Text(numbered(&wanted.path, &text, offset, wanted.limit.unwrap_or(LINES_DEFAULT))))
}

fn numbered(path: &str, text: &str, offset: u64, limit: u64) -> String {
    let total = text.lines().count() as u64;
    if total == 0 {
        return format!("{path} is empty (0 lines)");
    }
    let last = offset.saturating_add(limit).min(total);
    if offset >= last {
        return format!("{path} (no lines in range, file has {total} lines)");
    }
    let mut out = format!("{path} (lines {}-{last} of {total})\n", offset + 1);
    for (number, line) in (1..=last).zip(text.lines()).skip(usize::try_from(offset).unwrap_or(usize::MAX)) {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{number}:{line}");
    }
    if last < total {
        let _ =
            write!(out, "[showing lines {}-{last} of {total}; use offset={last} to continue]", offset + 1);
    } else {
        out.pop();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_from_one_and_a_rest_is_announced() {
        assert_eq!(numbered("f", "a\nb\n", 0, 9), "f (lines 1-2 of 2)\n1:a\n2:b");
        let ten: String = (1..=10).map(|n| format!("l{n}\n")).collect();
        assert_eq!(
            numbered("f", &ten, 3, 2),
            "f (lines 4-5 of 10)\n4:l4\n5:l5\n[showing lines 4-5 of 10; use offset=5 to continue]"
        );
        assert!(!numbered("f", &ten, 8, u64::MAX).contains("showing"));
    }

    #[test]
    fn an_empty_range_is_said_in_words() {
        assert_eq!(numbered("f", "", 0, 9), "f is empty (0 lines)");
        assert_eq!(numbered("f", "a\nb", 100, 9), "f (no lines in range, file has 2 lines)");
        assert_eq!(numbered("f", "a\nb", 0, 0), "f (no lines in range, file has 2 lines)");
    }

    #[test]
    fn a_carriage_return_goes_only_before_a_line_feed() {
        assert_eq!(numbered("f", "a\r\nb\rc\n\n", 0, 9), "f (lines 1-3 of 3)\n1:a\n2:b\rc\n3:");
    }
}
