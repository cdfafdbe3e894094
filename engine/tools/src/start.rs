//! The start of a server: secrets put away, folders made, a guard set up, then serving until stdin ends.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use waxlog_nostr::Secret;

use crate::git;
use crate::guard::{Guard, MARK_VARIABLE};
use crate::server::{Place, Served, Server};
use crate::shims::{hold, session_folder, sweep, Shims};
use crate::variables::{is_withheld, Variables, GIT_KEY_VARIABLE};

/// Names the folder that this process has made before it started itself anew.
const SHIMS_VARIABLE: &str = "WAXLOG_MCP_SHIMS";
/// Signals that end the server in order.
const END_SIGNALS: [i32; 3] = [SIGHUP, SIGINT, SIGTERM];
/// Where commands find programs if nobody says.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";

/// Why a server could not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Something that it stands on is not there.
    #[error("cannot start: {what}: {error}")]
    Start {
        /// What was being done.
        what: &'static str,
        /// What went wrong.
        error: io::Error,
    },
    /// stdin broke.
    #[error("stdin cannot be read: {0}")]
    Stdin(io::Error),
}

/// Serves on stdin and stdout until stdin ends. `arguments` are those of this process: it may have to start itself
/// once more.
pub fn serve(arguments: &[OsString]) -> Result<Served, ServeError> {
    let program = env::current_exe().map_err(starting("finding this program"))?;
    let shims = shims(&program, arguments)?;
    let place = Place::set(&program, shims)?;
    let server = Arc::new(Server::start(place, io::stdout()).map_err(starting("starting threads"))?);
    end_by_signals(&server).map_err(starting("watching signals"))?;
    server.serve(io::stdin().lock()).map_err(ServeError::Stdin)
}

fn starting(what: &'static str) -> impl Fn(io::Error) -> ServeError {
    move |error| ServeError::Start { what, error }
}

/// The shim folder. Where this process was given a secret, it has started itself anew without, before this returns.
fn shims(program: &Path, arguments: &[OsString]) -> Result<Shims, ServeError> {
    if let Some(shims) = env::var_os(SHIMS_VARIABLE).map(PathBuf::from).and_then(Shims::adopt) {
        return Ok(shims);
    }
    let shims = Shims::create(program).map_err(starting("making the shim folder"))?;
    let key = env::var(GIT_KEY_VARIABLE).ok().filter(|key| !key.trim().is_empty()).map(Secret::new);
    if let Some(Err(error)) = key.map(|key| shims.keep_key(&key)) {
        log::warn!("git gets no identity from {GIT_KEY_VARIABLE}: {error}");
    }
    let withheld: Vec<_> = env::vars_os().map(|(name, _)| name).filter(|name| is_withheld(name)).collect();
    if !withheld.is_empty() {
        let error = start_anew(program, arguments, &withheld, &shims);
        log::warn!("cannot start anew without secrets, commands can find them in /proc: {error}");
    }
    Ok(shims)
}

/// Puts this program in its own place, with the same number and pipes. Returns only if that fails.
fn start_anew(program: &Path, arguments: &[OsString], withheld: &[OsString], shims: &Shims) -> io::Error {
    let mut command = Command::new(program);
    if let Some((name, arguments)) = arguments.split_first() {
        command.arg0(name).args(arguments);
    }
    for name in withheld {
        command.env_remove(name);
    }
    command.env(SHIMS_VARIABLE, shims.folder()).exec()
}

impl Place {
    fn set(program: &Path, shims: Shims) -> Result<Self, ServeError> {
        sweep(&env::temp_dir());
        let cwd = env::current_dir().map_err(starting("finding the working directory"))?;
        let session = session_folder().map_err(starting("making the session's folder"))?;
        let guard = Guard::start(program, shims.mark(), &Place::folders(&session, &shims));
        let variables = variables(&shims);
        let held = [shims.folder(), &session].map(hold);
        Ok(Self { cwd, variables, shims, session, guard, _held: held })
    }
}

/// What commands get.
fn variables(shims: &Shims) -> Variables {
    let mut variables = Variables::of_process();
    variables.remove(SHIMS_VARIABLE);
    let rest = variables.remove("PATH").unwrap_or_else(|| PATH_DEFAULT.into());
    let mut path = OsString::from(shims.folder());
    path.push(":");
    path.push(rest);
    variables.set("PATH", path);
    variables.set(MARK_VARIABLE, shims.mark());
    if let Some((file, keys)) = shims.key() {
        git::settings(&mut variables, &file, &keys.public_key());
    }
    variables
}

/// Takes the server down at a signal, and then lets the signal have its way.
fn end_by_signals(server: &Arc<Server>) -> io::Result<()> {
    let mut signals = Signals::new(END_SIGNALS)?;
    let server = Arc::clone(server);
    let watcher = move || {
        if let Some(signal) = signals.forever().next() {
            log::info!("signal {signal}: the server ends");
            server.close();
            if let Err(error) = emulate_default_handler(signal) {
                log::error!("signal {signal}: {error}");
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(watcher).map(drop)
}
