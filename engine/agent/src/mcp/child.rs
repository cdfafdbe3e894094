//! A server's process, with everything it starts in its own process group.
//!
//! If the agent itself is killed, nothing here runs: what is left of a server then is its stdin at its end,
//! which every MCP server must take as its own. (Asking the kernel for more needs code between fork and
//! exec, which cannot be had safely.)

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use async_process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use rustix::process::{kill_process_group, Pid, Signal};

use crate::config::Environment;
use crate::secret::Secret;

/// What a server inherits of the agent's environment. Keys of model providers are not among it.
pub const INHERITED_VARIABLES: [&str; 27] = [
    "PATH",
    "HOME",
    "TERM",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GIT_ASKPASS",
    "GIT_SSH_COMMAND",
    "GIT_CONFIG_GLOBAL",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NOSTR_PRIVATE_KEY",
    "BUZZ_PRIVATE_KEY",
    "BUZZ_RELAY_URL",
    "BUZZ_AUTH_TAG",
    "BUZZ_ACP_DISPLAY_NAME",
];

/// How a server is started.
#[derive(Clone, Debug)]
pub struct ServerSpec {
    /// Its name in the session.
    pub name: String,
    /// The program: a path, or a name to be found on `PATH`.
    pub command: String,
    /// The program's arguments.
    pub args: Vec<String>,
    /// Variables on top of the inherited ones; of two with one name the later counts. They may hold keys.
    pub env: Vec<(String, Secret<String>)>,
    /// Where it runs: the session's folder.
    pub cwd: PathBuf,
}

/// A running server. Dropping it kills the whole group.
#[derive(Debug)]
pub(super) struct ChildGroup {
    child: Child,
    group: Option<Pid>,
}

impl ChildGroup {
    /// Starts the program of `spec` at the head of a new process group.
    pub(super) fn spawn(spec: &ServerSpec, env: &Environment) -> io::Result<(Self, ChildStdin, ChildStdout)> {
        let mut command = std::process::Command::new(&spec.command);
        command
            .args(&spec.args)
            .env_clear()
            .envs(inherited(env))
            .envs(spec.env.iter().map(|(name, value)| (name, value.expose())))
            .current_dir(&spec.cwd)
            .process_group(0);
        let mut child = Command::from(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let group = Self { group: i32::try_from(child.id()).ok().and_then(Pid::from_raw), child };
        let (stdin, stdout) = pipes.ok_or_else(|| io::Error::other("no pipes to the process"))?;
        Ok((group, stdin, stdout))
    }

    /// Kills the group and waits until its head is no more.
    pub(super) async fn kill_and_reap(mut self) {
        self.kill();
        if let Err(error) = self.child.status().await {
            log::warn!("mcp: waiting for process {}: {error}", self.child.id());
        }
    }

    /// Kills the group, once: its head is not reaped before, so its number cannot belong to others yet.
    fn kill(&mut self) {
        if let Some(group) = self.group.take() {
            // The one way to fail is that nobody is left.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for ChildGroup {
    fn drop(&mut self) {
        // The process itself is reaped in the background by async-process.
        self.kill();
    }
}

fn inherited(env: &Environment) -> impl Iterator<Item = (&'static str, &str)> {
    let inherited = |name: &'static str| Some((name, env.get(name)?));
    INHERITED_VARIABLES.into_iter().filter_map(inherited)
}
