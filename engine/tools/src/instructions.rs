//! What a client is told at the start: where it is, what kind of project that is, and which shell runs.

use std::collections::BTreeSet;
use std::path::Path;

use crate::git::RELAY_VARIABLE;
use crate::shell::SHELL_VARIABLE;
use crate::variables::Variables;

/// Files that tell what a project is made with.
const MARKS: [(&str, &str); 9] = [
    ("Cargo.toml", "rust (cargo)"),
    ("package.json", "node"),
    ("go.mod", "go"),
    ("pyproject.toml", "python (pyproject)"),
    ("requirements.txt", "python"),
    ("Gemfile", "ruby"),
    ("pom.xml", "java (maven)"),
    ("build.gradle", "java (gradle)"),
    ("build.gradle.kts", "kotlin (gradle)"),
];

/// The text for `initialize`.
pub(crate) fn instructions(cwd: &Path, shell: &str, variables: &Variables) -> String {
    let mut text = format!(
        "Working directory: {}\nProject: {}\nShell: {shell} (set {SHELL_VARIABLE} for another)\n\
         Give `workdir` to a tool instead of `cd` in a command: each call starts anew.",
        cwd.display(),
        stack(cwd),
    );
    let is_set = |name| variables.text(name).is_some_and(|value| !value.is_empty());
    if is_set(RELAY_VARIABLE) && is_set("BUZZ_PRIVATE_KEY") {
        text.push_str("\nA relay is configured: `buzz --help` in the shell lists what can be done on it.");
    }
    text
}

fn stack(cwd: &Path) -> String {
    let found: BTreeSet<_> =
        MARKS.iter().filter(|(file, _)| cwd.join(file).exists()).map(|(_, name)| *name).collect();
    match found.is_empty() {
        true => "unknown".to_owned(),
        false => found.into_iter().collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_known_by_its_files() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(stack(folder.path()), "unknown");
        for name in ["package.json", "Cargo.toml", "unrelated"] {
            std::fs::write(folder.path().join(name), "").expect("a file");
        }
        assert_eq!(stack(folder.path()), "node, rust (cargo)");
    }

    #[test]
    fn the_relay_is_told_of_only_where_it_can_be_used() {
        let text = |given: &[(&str, &str)]| {
            let variables = given.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
            instructions(Path::new("/work"), "/bin/bash", &variables)
        };
        assert!(text(&[]).contains("/work") && text(&[]).contains("BUZZ_SHELL"));
        assert!(!text(&[("BUZZ_RELAY_URL", "ws://a")]).contains("buzz --help"));
        assert!(!text(&[("BUZZ_RELAY_URL", "ws://a"), ("BUZZ_PRIVATE_KEY", "")]).contains("buzz --help"));
        assert!(text(&[("BUZZ_RELAY_URL", "ws://a"), ("BUZZ_PRIVATE_KEY", "k")]).contains("buzz --help"));
    }
}
