//! `shell`: runs a command in a process group of its own and tells how it ended.
//!
//! Whatever a command starts ends with its call, unless it leaves the group on purpose. Its exit status is
//! part of the answer; only what keeps a command from running at all is an error.

mod capture;
mod group;
mod output;
mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_channel::Receiver;
use serde::Deserialize;
use serde_json::{json, Map, Value};

use self::capture::Capture;
use self::group::{End, Group};
use self::output::Artifacts;
pub(crate) use self::output::TAIL_BYTES;
use self::program::Program;
pub(crate) use self::program::{find, SHELL_VARIABLE};
use crate::guard::Guard;
use crate::server::Stop;
use crate::tool::{arguments, Outcome, Said, ToolError};
use crate::variables::Variables;

/// Longest command, in bytes.
pub(crate) const COMMAND_MAX_BYTES: usize = 1_000_000;
/// How long a command may run unless the caller says otherwise, in milliseconds.
pub(crate) const TIMEOUT_DEFAULT_MS: u64 = 120_000;
/// How long a command may run whatever the caller says, in milliseconds.
pub(crate) const TIMEOUT_MAX_MS: u64 = 600_000;
/// Longest command that is passed as an argument, in bytes: the kernel's limit is one more. A longer one goes
/// through a file.
const COMMAND_ARGUMENT_MAX_BYTES: usize = 131_071;
/// The exit code of a command that ran out of time.
const TIMED_OUT_EXIT_CODE: i32 = 124;
/// The exit code of a command that a signal ended.
const KILLED_EXIT_CODE: i32 = -1;

#[derive(Deserialize)]
struct Arguments {
    command: String,
    #[serde(default)]
    workdir: Option<String>,
    #[serde(default)]
    timeout_ms: Option<u64>,
}

/// Runs commands for one session.
#[derive(Debug)]
pub(crate) struct Shell {
    program: Result<Program, String>,
    variables: Variables,
    cwd: PathBuf,
    /// Holds long commands while they run.
    scripts: PathBuf,
    scripts_written: AtomicU64,
    artifacts: Artifacts,
    guard: Guard,
}

impl Shell {
    /// A shell whose files go below `session`.
    pub(crate) fn new(variables: Variables, cwd: &Path, session: &Path, guard: Guard) -> Self {
        Self {
            program: Program::choose(&variables, cwd),
            variables,
            cwd: cwd.to_owned(),
            scripts: session.join("scripts"),
            scripts_written: AtomicU64::new(0),
            artifacts: Artifacts::new(session.join("artifacts")),
            guard,
        }
    }

    /// The shell's name, for people.
    pub(crate) fn name(&self) -> String {
        match &self.program {
            Ok(program) => program.name(),
            Err(_) => "none".to_owned(),
        }
    }

    /// Runs a command until it ends, its time is up, or `stop` says so.
    pub(crate) fn call(&self, given: Map<String, Value>, stop: &Receiver<Stop>) -> Outcome {
        let wanted: Arguments = arguments(given)?;
        let bytes = wanted.command.len();
        if bytes > COMMAND_MAX_BYTES {
            return Err(ToolError::Invalid(format!(
                "the command has {bytes} bytes, the limit is {COMMAND_MAX_BYTES}; write a file in parts and run it"
            )));
        }
        if wanted.command.contains('\0') {
            let text = "the command has a NUL byte, which no shell takes; write it as \\0 in printf";
            return Err(ToolError::Refused(text.to_owned()));
        }
        let workdir = self.workdir(wanted.workdir.as_deref())?;
        let program = self.program.as_ref().map_err(|why| ToolError::Refused(why.clone()))?;
        let script = Script::of(self, wanted.command)?;
        let timeout =
            Duration::from_millis(wanted.timeout_ms.unwrap_or(TIMEOUT_DEFAULT_MS).min(TIMEOUT_MAX_MS));
        let mut command = program.command(&script.command);
        command.current_dir(workdir).env_clear().envs(self.variables.iter());
        self.run(command, timeout, stop, program)
    }

    fn workdir(&self, wanted: Option<&str>) -> Result<PathBuf, ToolError> {
        let Some(wanted) = wanted else { return Ok(self.cwd.clone()) };
        let workdir = self.cwd.join(wanted);
        match fs::metadata(&workdir) {
            Ok(metadata) if metadata.is_dir() && !wanted.is_empty() => Ok(workdir),
            Ok(_) => Err(ToolError::Invalid(format!("workdir is not a directory: {wanted:?}"))),
            Err(error) => Err(ToolError::Invalid(format!("workdir not accessible: {wanted:?}: {error}"))),
        }
    }

    fn run(
        &self,
        command: std::process::Command,
        timeout: Duration,
        stop: &Receiver<Stop>,
        program: &Program,
    ) -> Outcome {
        let begun = Instant::now();
        let unable = |error| ToolError::Refused(format!("cannot run {}: {error}", program.name()));
        let (mut group, pipes) = Group::start(command, self.guard.clone()).map_err(unable)?;
        let capture = Capture::start(pipes).map_err(unable)?;
        let (exit_code, timed_out) = match group.wait(timeout, stop) {
            End::Exited => (group.end_leftovers().unwrap_or(KILLED_EXIT_CODE), false),
            End::TimedOut => {
                group.end();
                (TIMED_OUT_EXIT_CODE, true)
            }
            End::Stopped(reason) => {
                group.kill();
                return Err(match reason {
                    Stop::Cancelled => ToolError::cancelled(),
                    Stop::Closing => ToolError::Closing,
                });
            }
        };
        let duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let captured = capture.finish();
        let [stdout, stderr] = self.artifacts.shorten(captured.streams);
        let notes: Vec<_> =
            captured.notes.into_iter().chain([stdout.note, stderr.note].into_iter().flatten()).collect();
        let body = json!({
            "duration_ms": duration_ms,
            "exit_code": exit_code,
            "notes": notes,
            "stderr": stderr.text,
            "stderr_artifact": stderr.artifact,
            "stderr_truncated": stderr.is_truncated,
            "stdout": stdout.text,
            "stdout_artifact": stdout.artifact,
            "stdout_truncated": stdout.is_truncated,
            "timed_out": timed_out,
        });
        Ok(Said::Text(format!("{body:#}")))
    }
}

/// What is given to the shell: the command, or where it stands if it is too long for an argument.
struct Script {
    command: String,
    file: Option<PathBuf>,
}

impl Script {
    fn of(shell: &Shell, command: String) -> Result<Self, ToolError> {
        if command.len() <= COMMAND_ARGUMENT_MAX_BYTES {
            return Ok(Self { command, file: None });
        }
        let number = shell.scripts_written.fetch_add(1, Ordering::Relaxed);
        let file = shell.scripts.join(format!("{number:06}"));
        fs::create_dir_all(&shell.scripts)
            .and_then(|()| fs::write(&file, command))
            .map_err(|error| ToolError::io("cannot write the command to a file", &error))?;
        let quoted = file.display().to_string().replace('\'', r"'\''");
        Ok(Self { command: format!(". '{quoted}'"), file: Some(file) })
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.file.as_ref().map(fs::remove_file) {
            log::warn!("the file of a long command cannot be removed before the end: {error}");
        }
    }
}
