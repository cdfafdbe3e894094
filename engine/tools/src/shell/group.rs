//! A command's process group: started, waited for, and ended whole.
//!
//! A group's number is used only while it is certain to be ours: its head is not reaped before, or a member
//! still holds the number.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use async_channel::Receiver;
use async_std::task;
use futures_lite::FutureExt;
use rustix::io::Errno;
use rustix::process::{
    kill_process_group, test_kill_process_group, waitid, Pid, Signal, WaitId, WaitIdOptions,
};

use crate::guard::Guard;
use crate::server::Stop;

/// How long a group may take to mind SIGTERM.
const TERMINATION_GRACE: Duration = Duration::from_millis(200);
/// How long the head of a killed group may take to be gone.
const REAP_TIMEOUT: Duration = Duration::from_secs(2);
/// How often a group that is to end is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Why a wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Exited,
    TimedOut,
    Stopped(Stop),
}

/// A command and whatever it has started. Dropping it kills them.
#[derive(Debug)]
pub(super) struct Group {
    pid: Pid,
    /// Taken when it is reaped.
    head: Option<Child>,
    exited: Receiver<()>,
    guard: Guard,
    is_ended: bool,
}

impl Group {
    /// Starts the command at the head of a new group.
    pub(super) fn start(
        mut command: Command,
        guard: Guard,
    ) -> io::Result<(Self, (ChildStdout, ChildStderr))> {
        let mut head = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let pid = Pid::from_child(&head);
        guard.begin(pid);
        let pipes = head.stdout.take().zip(head.stderr.take());
        let (exit, exited) = async_channel::bounded(1);
        let group = Self { pid, head: Some(head), exited, guard, is_ended: false };
        let waiter = move || {
            wait_without_reaping(pid);
            // Nobody waits any more for one that was given up.
            let _ = exit.try_send(());
        };
        thread::Builder::new().name("wait".to_owned()).spawn(waiter)?;
        let pipes = pipes.ok_or_else(|| io::Error::other("no pipes to the command"))?;
        Ok((group, pipes))
    }

    /// Waits for the first of three: a word to stop, the command's exit, the end of its time.
    pub(super) fn wait(&self, timeout: Duration, stop: &Receiver<Stop>) -> End {
        let stopped = async {
            match stop.recv().await {
                Ok(reason) => End::Stopped(reason),
                Err(_) => std::future::pending().await,
            }
        };
        let exited = async {
            // An error says that the waiter is gone, which it is only after the exit.
            let _ = self.exited.recv().await;
            End::Exited
        };
        let late = async {
            task::sleep(timeout).await;
            End::TimedOut
        };
        task::block_on(stopped.or(exited).or(late))
    }

    /// Reaps the command, then ends what it has left running. Gives its exit code, unless a signal ended it.
    pub(super) fn end_leftovers(&mut self) -> Option<i32> {
        let code = self.reap();
        self.end();
        code
    }

    /// Ends the group: asked first, then killed. Once nobody is left its number may belong to others, so it is
    /// not used again.
    pub(super) fn end(&mut self) {
        let mut is_left = self.signal(Signal::TERM);
        let asked = Instant::now();
        while is_left && asked.elapsed() < TERMINATION_GRACE {
            thread::sleep(POLL_INTERVAL);
            is_left = self.is_running();
        }
        match is_left || self.head.is_some() {
            true => self.kill(),
            false => self.forget(),
        }
    }

    /// Kills the group at once and reaps its head.
    pub(super) fn kill(&mut self) {
        if self.is_ended {
            return;
        }
        self.signal(Signal::KILL);
        if self.head.is_some() && self.wait_for_exit(REAP_TIMEOUT) {
            self.reap();
        }
        self.forget();
        if let Some(mut head) = self.head.take() {
            // The kernel holds it back (a dead disk, say); it is reaped when it lets go.
            log::warn!("process {} does not end after SIGKILL", self.pid.as_raw_nonzero());
            thread::spawn(move || head.wait());
        }
    }

    fn forget(&mut self) {
        self.is_ended = true;
        self.guard.end(self.pid);
    }

    /// Whether anybody is left, the head included. A head that has exited is reaped here.
    fn is_running(&mut self) -> bool {
        if self.head.is_some() && self.wait_for_exit(Duration::ZERO) {
            self.reap();
        }
        self.head.is_some() || test_kill_process_group(self.pid) != Err(Errno::SRCH)
    }

    fn wait_for_exit(&self, limit: Duration) -> bool {
        let exited = async {
            let _ = self.exited.recv().await;
            true
        };
        let late = async {
            task::sleep(limit).await;
            false
        };
        task::block_on(exited.or(late))
    }

    fn reap(&mut self) -> Option<i32> {
        match self.head.take()?.wait() {
            Ok(status) => status.code(),
            Err(error) => {
                log::warn!("process {} cannot be reaped: {error}", self.pid.as_raw_nonzero());
                None
            }
        }
    }

    /// Whether there was anybody to get the signal.
    fn signal(&self, signal: Signal) -> bool {
        match kill_process_group(self.pid, signal) {
            Ok(()) => true,
            Err(Errno::SRCH) => false,
            Err(error) => {
                log::warn!("group {} cannot be signalled: {error}", self.pid.as_raw_nonzero());
                false
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Blocks until the process has exited, and leaves its number in use.
fn wait_without_reaping(pid: Pid) {
    while let Err(Errno::INTR) = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {}
}
