//! Keeps a process's environment from others of its user.
//!
//! An agent's environment holds keys, and the commands that its tools run are processes of the same user. The
//! kernel shows such processes neither the environment nor the memory of one that may not be dumped. Root sees
//! both all the same.

/// Hides the environment and the memory of this process, and only of this one: not of those it starts.
#[cfg(target_os = "linux")]
pub(crate) fn hide() {
    use rustix::process::{set_dumpable_behavior, DumpableBehavior};
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        log::warn!("commands of tools can find this process's keys in /proc: {error}");
    }
}

/// Elsewhere there is no `/proc` that would show them.
#[cfg(not(target_os = "linux"))]
pub(crate) fn hide() {}
