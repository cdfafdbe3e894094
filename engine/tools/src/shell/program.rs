//! Which shell runs the commands.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::variables::Variables;

/// The variable that chooses another shell: a path, or a name on `PATH`.
pub(crate) const SHELL_VARIABLE: &str = "BUZZ_SHELL";
/// The shell unless another is chosen.
const SHELL_DEFAULT: &str = "bash";

/// A shell and how a command is passed to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    path: PathBuf,
    flag: &'static str,
}

impl Program {
    /// The shell for commands that get `variables`, or why there is none.
    pub(crate) fn choose(variables: &Variables, cwd: &Path) -> Result<Self, String> {
        let path = variables.get("PATH").unwrap_or_default();
        let wanted = variables.get(SHELL_VARIABLE).filter(|wanted| !wanted.is_empty());
        let chosen = wanted.and_then(|wanted| match Path::new(wanted).components().count() {
            1 => find(wanted, path),
            _ => Some(cwd.join(wanted)).filter(|shell| shell.is_file()),
        });
        match chosen.or_else(|| find(OsStr::new(SHELL_DEFAULT), path)) {
            Some(path) => Ok(Self { flag: flag(&path), path }),
            None => Err(format!(
                "no shell: {SHELL_DEFAULT} is not on PATH; install it, or set {SHELL_VARIABLE} to a shell's path"
            )),
        }
    }

    /// Its path, for people.
    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }

    pub(super) fn command(&self, command: &str) -> Command {
        let mut shell = Command::new(&self.path);
        shell.arg(self.flag).arg(command);
        shell
    }
}

fn flag(shell: &Path) -> &'static str {
    match shell.file_stem().and_then(OsStr::to_str) {
        Some("cmd") => "/C",
        Some("powershell" | "pwsh") => "-Command",
        _ => "-c",
    }
}

/// The program of this name on `path`.
pub(crate) fn find(name: &OsStr, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join(name)).find(|program| is_program(program))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A folder with a `bash` and an `odd`, and the variables that lead to it.
    fn chosen(wanted: Option<&str>) -> (tempfile::TempDir, Result<Program, String>) {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["bash", "odd"] {
            let file = folder.path().join(name);
            fs::write(&file, "").expect("a file");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a mode");
        }
        let path = [("PATH".into(), folder.path().into())];
        let wanted = wanted.map(|wanted| (SHELL_VARIABLE.into(), wanted.into()));
        let variables: Variables = path.into_iter().chain(wanted).collect();
        let program = Program::choose(&variables, folder.path());
        (folder, program)
    }

    #[test]
    fn a_shell_is_chosen_by_path_or_by_name_and_else_is_bash() {
        for (wanted, expected) in [
            (None, "bash"),
            (Some(""), "bash"),
            (Some("odd"), "odd"),
            (Some("./odd"), "./odd"),
            (Some("absent"), "bash"),
            (Some("/no/such/shell"), "bash"),
        ] {
            let (folder, program) = chosen(wanted);
            let program = program.expect("a shell");
            assert_eq!(program.path, folder.path().join(expected), "{wanted:?}");
            assert_eq!(program.flag, "-c");
        }
    }

    #[test]
    fn without_any_shell_the_reason_names_the_way_out() {
        let error = Program::choose(&Variables::default(), Path::new("/")).expect_err("none");
        assert!(error.contains("install it") && error.contains(SHELL_VARIABLE), "{error}");
    }

    #[test]
    fn each_family_of_shells_has_its_flag() {
        for (shell, expected) in [("/a/cmd.exe", "/C"), ("/a/pwsh", "-Command"), ("/bin/zsh", "-c")] {
            assert_eq!(flag(Path::new(shell)), expected);
        }
    }
}
