//! Messages that show a diff: kind 40008.

use super::{check_http_url, in_channel, BuildError};
use crate::channel::ChannelId;
use crate::event::Draft;
use crate::kind::DIFF_MESSAGE;
use crate::thread::Thread;

/// Longest diff, in bytes.
pub const MAX_DIFF_BYTES: usize = 61_440;
/// Shortest name of a commit, in hex digits.
pub const MIN_COMMIT_DIGITS: usize = 7;
/// Longest address of a repository, in bytes.
const MAX_REPO_BYTES: usize = 2048;
/// What stands below a diff that was cut.
const NOTICE: &str = "\n[diff cut: it is too long for a message]\n";

/// A diff and where it comes from.
#[derive(Debug, Clone)]
pub struct Diff<'a> {
    /// Where it is shown.
    pub channel: ChannelId,
    /// The diff as it is; cut if it is too long.
    pub text: &'a str,
    /// The repository's address.
    pub repo: &'a str,
    /// The commit, at least [`MIN_COMMIT_DIGITS`] hex digits.
    pub commit: &'a str,
    /// The file that it is about.
    pub file: Option<&'a str>,
    /// The commit before.
    pub parent_commit: Option<&'a str>,
    /// Source and target branch.
    pub branches: Option<(&'a str, &'a str)>,
    /// The pull request's number.
    pub pull_request: Option<u64>,
    /// The language; found by the file's extension if absent.
    pub language: Option<&'a str>,
    /// What it does, in words.
    pub description: Option<&'a str>,
    /// What it answers.
    pub thread: Option<Thread>,
    /// Seconds since 1970.
    pub now: u64,
}

/// The message that shows a diff.
pub fn diff(diff: &Diff<'_>) -> Result<Draft, BuildError> {
    check_http_url("the repository", diff.repo, MAX_REPO_BYTES)?;
    check_commit(diff.commit)?;
    diff.parent_commit.map_or(Ok(()), check_commit)?;
    if diff.pull_request == Some(0) {
        return Err(BuildError::invalid("the pull request", "a number from 1", "0"));
    }
    let cut = shorten(diff.text);
    let mut draft = in_channel(DIFF_MESSAGE, &diff.channel, cut.as_deref().unwrap_or(diff.text), diff.now)
        .tag(["repo", diff.repo])
        .tag(["commit", diff.commit]);
    let mut tag = |values: &[&str]| draft.tags.push(values.iter().map(|&value| value.to_owned()).collect());
    if let Some(file) = diff.file {
        tag(&["file", file]);
    }
    if let Some(parent) = diff.parent_commit {
        tag(&["parent-commit", parent]);
    }
    if let Some((source, target)) = diff.branches {
        tag(&["branch", source, target]);
    }
    if let Some(number) = diff.pull_request {
        tag(&["pr", &number.to_string()]);
    }
    if let Some(language) = diff.language.or_else(|| language(diff.file?)) {
        tag(&["l", language]);
    }
    if let Some(description) = diff.description {
        tag(&["description", description]);
    }
    if cut.is_some() {
        tag(&["truncated", "true"]);
    }
    tag(&["alt", &alt(diff.file, diff.description)]);
    draft.tags.extend(diff.thread.as_ref().map(Thread::tags).unwrap_or_default());
    Ok(draft)
}

fn check_commit(commit: &str) -> Result<(), BuildError> {
    let is_commit = commit.len() >= MIN_COMMIT_DIGITS && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    match is_commit {
        true => Ok(()),
        false => Err(BuildError::invalid("a commit", "at least 7 hex digits", commit)),
    }
}

fn alt(file: Option<&str>, description: Option<&str>) -> String {
    match (file, description) {
        (Some(file), Some(description)) => format!("Diff: {file} \u{2014} {description}"),
        (Some(file), None) => format!("Diff: {file}"),
        (None, _) => "Diff".to_owned(),
    }
}

/// A diff that is too long, cut with a notice: before a hunk if there is one, else after a line, else at a
/// character.
fn shorten(text: &str) -> Option<String> {
    if text.len() <= MAX_DIFF_BYTES {
        return None;
    }
    let room = &text[..text.floor_char_boundary(MAX_DIFF_BYTES - NOTICE.len())];
    let end = room.rfind("\n@@").filter(|at| *at > 0).or_else(|| room.rfind('\n')).unwrap_or(room.len());
    Some(format!("{}{NOTICE}", &room[..end]))
}

/// The language of a file by its extension, or by its name where that says it.
fn language(file: &str) -> Option<&'static str> {
    let name = file.rsplit('/').next()?;
    let extension = name.rsplit('.').next()?.to_ascii_lowercase();
    Some(match extension.as_str() {
        "rs" => "rust",
        "ts" | "tsx" => "typescript",
        "js" | "jsx" => "javascript",
        "py" => "python",
        "go" => "go",
        "java" => "java",
        "rb" => "ruby",
        "c" | "h" => "c",
        "cpp" | "cc" | "cxx" | "hpp" => "cpp",
        "cs" => "csharp",
        "swift" => "swift",
        "kt" | "kts" => "kotlin",
        "scala" => "scala",
        "sh" | "bash" | "zsh" => "bash",
        "sql" => "sql",
        "html" | "htm" => "html",
        "css" => "css",
        "scss" | "sass" => "scss",
        "json" => "json",
        "yaml" | "yml" => "yaml",
        "toml" => "toml",
        "xml" => "xml",
        "md" | "markdown" => "markdown",
        "dockerfile" => "dockerfile",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Diff<'_> {
        Diff {
            channel: "99999999-9999-4999-8999-999999999999".parse().unwrap(),
            text,
            repo: "https://example.org/r",
            commit: "0123456",
            file: None,
            parent_commit: None,
            branches: None,
            pull_request: None,
            language: None,
            description: None,
            thread: None,
            now: 5,
        }
    }

    #[test]
    fn tags_stand_in_their_order() {
        let full = Diff {
            file: Some("src/x.rs"),
            parent_commit: Some("abcdef0"),
            branches: Some(("topic", "main")),
            pull_request: Some(7),
            description: Some("fix it"),
            ..plain("d")
        };
        let draft = diff(&full).unwrap();
        let wanted: [&[&str]; 9] = [
            &["repo", "https://example.org/r"],
            &["commit", "0123456"],
            &["file", "src/x.rs"],
            &["parent-commit", "abcdef0"],
            &["branch", "topic", "main"],
            &["pr", "7"],
            &["l", "rust"],
            &["description", "fix it"],
            &["alt", "Diff: src/x.rs \u{2014} fix it"],
        ];
        assert_eq!(draft.tags[1..], wanted);
        assert_eq!(diff(&plain("d")).unwrap().tags[3], ["alt", "Diff"]);
    }

    #[test]
    fn a_diff_names_a_web_repository_a_real_commit_and_a_pull_request_from_1() {
        assert!(diff(&Diff { repo: "ftp://example.org/r", ..plain("") }).is_err());
        for commit in ["01234", "", "0123456z"] {
            assert!(diff(&Diff { commit, ..plain("") }).is_err(), "{commit}");
            assert!(diff(&Diff { parent_commit: Some(commit), ..plain("") }).is_err(), "{commit}");
        }
        assert!(diff(&Diff { pull_request: Some(0), ..plain("") }).is_err());
    }

    #[test]
    fn a_long_diff_is_cut_at_a_hunk_else_a_line_else_a_character() {
        let just = "x".repeat(MAX_DIFF_BYTES);
        assert_eq!(diff(&plain(&just)).unwrap().content, just);
        let hunk = format!("@@ -1 +1 @@\n-{}\n+b\n", "a".repeat(1000));
        for (piece, end) in [(hunk.as_str(), "\n+b"), ("line of some words\n", "words"), ("é", "é")] {
            let draft = diff(&plain(&piece.repeat(MAX_DIFF_BYTES))).unwrap();
            assert!(draft.content.len() <= MAX_DIFF_BYTES);
            assert!(draft.content.len() > MAX_DIFF_BYTES - 2 * hunk.len());
            let shown = draft.content.strip_suffix(NOTICE).unwrap();
            assert!(shown.ends_with(end), "{}", &shown[shown.len() - 20..]);
            assert_eq!(draft.tags[3], ["truncated", "true"]);
        }
    }

    #[test]
    fn the_language_is_the_given_one_else_the_files() {
        let l = |file, language| {
            let draft = diff(&Diff { file: Some(file), language, ..plain("") }).unwrap();
            draft.tags.iter().find(|tag| tag[0] == "l").map(|tag| tag[1].clone())
        };
        assert_eq!(l("a/notes.unknown", Some("rust")).as_deref(), Some("rust"));
        assert_eq!(l("a.b/Dockerfile", None).as_deref(), Some("dockerfile"));
        assert_eq!(l("x.TS", None).as_deref(), Some("typescript"));
        assert_eq!(l("notes.unknown", None), None);
    }
}
