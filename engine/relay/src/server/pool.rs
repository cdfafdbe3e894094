//! Threads for work that would hold up the tasks of connections: signatures, the disk, hashes.

use std::any::Any;
use std::io;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Mutex;
use std::thread::{self, JoinHandle};

use super::lock;

type Job = Box<dyn FnOnce() + Send>;

/// The work was not done: it panicked, or the pool has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the work was not done: it failed inside, or the relay is stopping")]
pub(crate) struct NotDone;

/// A fixed number of threads with one bounded line.
pub(crate) struct Pool {
    jobs: async_channel::Sender<Job>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Pool {
    /// Starts the threads. At most `line` jobs wait; more wait outside.
    pub(crate) fn start(name: &str, threads: usize, line: usize) -> io::Result<Self> {
        let (jobs, line) = async_channel::bounded::<Job>(line);
        let start = |number| {
            let line = line.clone();
            thread::Builder::new().name(format!("{name}-{number}")).spawn(move || {
                while let Ok(job) = line.recv_blocking() {
                    if let Err(panic) = catch_unwind(AssertUnwindSafe(job)) {
                        log::error!("work of the relay failed inside: {}", panic_text(&*panic));
                    }
                }
            })
        };
        let threads = (0..threads).map(start).collect::<io::Result<_>>()?;
        Ok(Self { jobs, threads: Mutex::new(threads) })
    }

    /// Has the work done and gives its result.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NotDone> {
        let (result, done) = async_channel::bounded(1);
        let job: Job = Box::new(move || {
            // Whoever asked may have left.
            let _ = result.try_send(work());
        });
        self.jobs.send(job).await.map_err(|_| NotDone)?;
        done.recv().await.map_err(|_| NotDone)
    }

    /// Offers work that somebody else will do if nobody here is free.
    pub(crate) fn offer(&self, work: impl FnOnce() + Send + 'static) {
        // A full line means that whoever needs the result does the work.
        let _ = self.jobs.try_send(Box::new(work));
    }

    /// Lets the work that waits be done and ends the threads. Blocks.
    pub(crate) fn stop(&self) {
        self.jobs.close();
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            if thread.join().is_err() {
                log::error!("a thread of the relay ended by a panic");
            }
        }
    }
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_panics_fails_alone() {
        let pool = Pool::start("test", 1, 4).unwrap();
        let failed: Result<(), NotDone> = async_std::task::block_on(pool.run(|| panic!("on purpose")));
        assert_eq!(failed, Err(NotDone));
        assert_eq!(async_std::task::block_on(pool.run(|| 7)), Ok(7));
        pool.stop();
    }
}
