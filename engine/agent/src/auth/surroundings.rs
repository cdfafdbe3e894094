//! What a login needs of the machine: the time, randomness, and a browser in front of the user.

use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

use async_process::Command;

/// The command that opens a URL.
#[cfg(target_os = "macos")]
const OPENER: &str = "open";
/// The command that opens a URL.
#[cfg(not(target_os = "macos"))]
const OPENER: &str = "xdg-open";

/// The machine, as far as logins are concerned.
pub(crate) trait Surroundings: Send + Sync {
    /// Seconds since 1970.
    fn now_secs(&self) -> u64;

    /// Fills `bytes` with randomness that nobody can guess, or says why not.
    fn fill(&self, bytes: &mut [u8]) -> Result<(), String>;

    /// Brings `url` before the user.
    fn show(&self, url: &str);
}

/// The machine itself.
#[derive(Debug)]
pub(crate) struct Machine;

impl Surroundings for Machine {
    fn now_secs(&self) -> u64 {
        // A clock before 1970 makes every token fresh; the endpoint's refusal renews it all the same.
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
    }

    fn fill(&self, bytes: &mut [u8]) -> Result<(), String> {
        getrandom::fill(bytes).map_err(|error| format!("no randomness: {error}"))
    }

    /// Prints it, for a machine without a browser, and opens it if there is one. A client may be listening
    /// on stdout, so stderr it is.
    fn show(&self, url: &str) {
        eprintln!("Log in with a browser on this machine:\n{url}");
        let opened = Command::new(OPENER)
            .arg(url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        if let Err(error) = opened {
            log::info!("{OPENER} cannot be started ({error}); open the address by hand");
        }
    }
}
