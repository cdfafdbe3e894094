//! What changed in a file, and which line was probably meant.

use std::path::Path;
use std::time::{Duration, Instant};

use similar::{capture_diff_slices_deadline, Algorithm, DiffOp, TextDiff};

/// Longest diff that is shown, in bytes.
const DIFF_MAX_BYTES: usize = 64 * 1024;
/// Lines shown around a change.
const CONTEXT_LINES: usize = 3;
/// After this long a diff is finished less finely.
const DIFF_TIMEOUT: Duration = Duration::from_secs(2);
/// How many lines are looked at for one that was probably meant.
const HINT_LINES_MAX: usize = 200;
/// How much of a line is compared, in bytes.
const HINT_LINE_MAX_BYTES: usize = 512;
/// How alike a line must be, of 1, to be named.
const HINT_SCORE_MIN: f64 = 0.6;

/// The unified diff, as far as it fits.
pub(super) fn unified(path: &Path, old: &str, new: &str) -> String {
    let diff = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_lines(old, new);
    let mut unified = diff.unified_diff();
    unified.context_radius(CONTEXT_LINES);
    let path = path.display();
    let mut text = String::new();
    for hunk in unified.iter_hunks() {
        if text.is_empty() {
            text = format!("--- a/{path}\n+++ b/{path}\n");
        }
        let hunk = hunk.to_string();
        if text.len() + hunk.len() > DIFF_MAX_BYTES {
            text.push_str("[diff truncated]\n");
            break;
        }
        text.push_str(&hunk);
    }
    text
}

/// The line of `text` that is most like the first line of `wanted`, in words.
pub(super) fn nearest_line(text: &str, wanted: &str) -> Option<String> {
    let wanted = first_bytes(wanted.lines().next()?.trim());
    if wanted.is_empty() {
        return None;
    }
    let deadline = Instant::now() + DIFF_TIMEOUT;
    let lines = (1..).zip(text.lines().take(HINT_LINES_MAX).map(|line| first_bytes(line.trim())));
    let scored = lines.map(|(number, line)| (likeness(wanted, line, deadline), number, line));
    let (score, number, line) = scored.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))?;
    (score > HINT_SCORE_MIN).then(|| {
        format!("the nearest line is {number} (score {score:.2}): {line:?}, where {wanted:?} was wanted")
    })
}

/// Matching characters by the longer length in bytes.
fn likeness(a: &str, b: &str, deadline: Instant) -> f64 {
    let longer = a.len().max(b.len());
    if longer == 0 {
        return 0.0;
    }
    let (a, b): (Vec<_>, Vec<_>) = (a.chars().collect(), b.chars().collect());
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &a, &b, Some(deadline));
    let equal = |op: &DiffOp| if let DiffOp::Equal { len, .. } = op { *len } else { 0 };
    ops.iter().map(equal).sum::<usize>() as f64 / longer as f64
}

fn first_bytes(text: &str) -> &str {
    &text[..text.floor_char_boundary(HINT_LINE_MAX_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_diff_ends_in_whole_hunks_and_says_so() {
        let old: String = (0..4000).map(|n| format!("line {n} of a long file\n")).collect();
        let new: String = old
            .lines()
            .enumerate()
            .map(|(n, line)| match n % 10 {
                0 => format!("{line}!\n"),
                _ => format!("{line}\n"),
            })
            .collect();
        let diff = unified(Path::new("/f"), &old, &new);
        assert!(diff.len() <= DIFF_MAX_BYTES + 20, "{}", diff.len());
        assert!(diff.ends_with("[diff truncated]\n"));
        assert!(diff.contains("-line 0 of a long file\n+line 0 of a long file!\n"));
    }

    #[test]
    fn the_nearest_line_is_named_when_it_is_near_enough() {
        let text = "fn f() {\n    let total = count + 2;\n}\n";
        let hint = nearest_line(text, "  let total = count + 1;\nmore").expect("a hint");
        assert!(hint.contains("line is 2") && hint.contains("let total = count + 2;"), "{hint}");
        assert_eq!(nearest_line(text, "nothing like it at all"), None);
        assert_eq!(nearest_line("", "x"), None);
    }
}
