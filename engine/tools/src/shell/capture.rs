//! A command's two streams: read as they come, kept up to a limit, and given up when somebody who has left
//! the command's group holds them open.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{ChildStderr, ChildStdout};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use async_channel::{Receiver, Sender};
use async_std::future::timeout;
use async_std::task;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;

/// How much of a stream is kept, in bytes: its start.
pub(super) const CAPTURE_MAX_BYTES: usize = 10 * 1024 * 1024;
/// How long a stream may stay open after its command has ended.
const OPEN_AFTER_END_MAX: Duration = Duration::from_secs(5);
/// How much is read at a time, in bytes.
const READ_BYTES: usize = 64 * 1024;
/// The streams' names, stdout first.
pub(super) const NAMES: [&str; 2] = ["stdout", "stderr"];

/// What a stream has given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stream {
    /// Its first bytes.
    pub(super) kept: Vec<u8>,
    /// How many there were in all.
    pub(super) total_bytes: u64,
}

impl Stream {
    /// Whether it is at the limit, so that more may have come.
    pub(super) fn is_capped(&self) -> bool {
        self.kept.len() >= CAPTURE_MAX_BYTES
    }

    fn take(&mut self, bytes: &[u8]) {
        let room = CAPTURE_MAX_BYTES - self.kept.len();
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.total_bytes += bytes.len() as u64;
    }
}

/// Both streams of a command, read beside it. Dropping it stops the reading.
#[derive(Debug)]
pub(super) struct Capture {
    streams: Arc<Mutex<[Stream; 2]>>,
    /// Names a stream that has ended; closed when both have.
    ended: Receiver<usize>,
    /// Its end stops the reader.
    _stop: PipeWriter,
}

/// What is there at the end.
pub(super) struct Captured {
    /// stdout and stderr.
    pub(super) streams: [Stream; 2],
    /// What is to be said about them.
    pub(super) notes: Vec<String>,
}

impl Capture {
    /// Starts to read.
    pub(super) fn start((stdout, stderr): (ChildStdout, ChildStderr)) -> io::Result<Self> {
        let (stopped, stop) = io::pipe()?;
        let streams = Arc::<Mutex<[Stream; 2]>>::default();
        let (end, ended) = async_channel::bounded(NAMES.len());
        let reader = Reader {
            streams: Arc::clone(&streams),
            pipes: [Some(Box::new(stdout)), Some(Box::new(stderr))],
            end,
        };
        thread::Builder::new().name("capture".to_owned()).spawn(move || reader.read(&stopped))?;
        Ok(Self { streams, ended, _stop: stop })
    }

    /// Waits until both streams are at their end, but not for ever. What came until then is kept.
    pub(super) fn finish(self) -> Captured {
        let mut is_open = [true; 2];
        let all_ended = async {
            while let Ok(stream) = self.ended.recv().await {
                is_open[stream] = false;
            }
        };
        // Late is no error: the streams that are still open are named.
        let _ = task::block_on(timeout(OPEN_AFTER_END_MAX, all_ended));
        let note = |(name, is_open): (&str, bool)| {
            is_open.then(|| {
                format!(
                    "{name} was still held open {OPEN_AFTER_END_MAX:?} after the command had ended, by a process \
                     outside of its group; what came until then is shown"
                )
            })
        };
        let notes = NAMES.into_iter().zip(is_open).filter_map(note).collect();
        let streams = std::mem::take(&mut *lock(&self.streams));
        Captured { streams, notes }
    }
}

trait Pipe: Read + AsFd + Send {}
impl<T: Read + AsFd + Send> Pipe for T {}

/// The thread that reads.
struct Reader {
    streams: Arc<Mutex<[Stream; 2]>>,
    pipes: [Option<Box<dyn Pipe>>; 2],
    end: Sender<usize>,
}

impl Reader {
    fn read(mut self, stopped: &PipeReader) {
        let mut buffer = vec![0; READ_BYTES];
        while self.pipes.iter().any(Option::is_some) {
            let Some(ready) = self.ready(stopped.as_fd()) else { return };
            for (at, _) in ready.into_iter().enumerate().filter(|(_, is_ready)| *is_ready) {
                if !self.read_once(at, &mut buffer) {
                    self.pipes[at] = None;
                    // There is room for each stream, and nobody to tell once the capture is dropped.
                    let _ = self.end.try_send(at);
                }
            }
        }
    }

    /// Which pipes have something to say; nothing when the reading is to stop.
    fn ready(&self, stopped: BorrowedFd<'_>) -> Option<[bool; 2]> {
        let open: Vec<_> =
            self.pipes.iter().enumerate().filter_map(|(at, pipe)| Some((at, pipe.as_ref()?))).collect();
        let fds = open.iter().map(|(_, pipe)| pipe.as_fd()).chain([stopped]);
        let mut polled: Vec<_> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        match poll(&mut polled, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => {
                log::warn!("the output of a command cannot be waited for: {error}");
                return None;
            }
        }
        if !polled[open.len()].revents().is_empty() {
            return None;
        }
        let mut ready = [false; 2];
        for ((at, _), polled) in open.iter().zip(&polled) {
            ready[*at] = !polled.revents().is_empty();
        }
        Some(ready)
    }

    /// Whether more may come of this stream.
    fn read_once(&mut self, at: usize, buffer: &mut [u8]) -> bool {
        let Some(pipe) = &mut self.pipes[at] else { return false };
        match pipe.read(buffer) {
            Ok(0) => false,
            Ok(count) => {
                lock(&self.streams)[at].take(&buffer[..count]);
                true
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            Err(error) => {
                log::warn!("{} of a command cannot be read: {error}", NAMES[at]);
                false
            }
        }
    }
}

fn lock(streams: &Mutex<[Stream; 2]>) -> MutexGuard<'_, [Stream; 2]> {
    // Nothing is left half done under this lock.
    streams.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_keeps_its_start_and_counts_the_rest() {
        let mut stream = Stream::default();
        stream.take(&vec![b'a'; CAPTURE_MAX_BYTES - 1]);
        assert!(!stream.is_capped());
        stream.take(b"bc");
        assert!(stream.is_capped());
        stream.take(b"d");
        assert_eq!((stream.kept.len(), stream.kept.last()), (CAPTURE_MAX_BYTES, Some(&b'b')));
        assert_eq!(stream.total_bytes, CAPTURE_MAX_BYTES as u64 + 2);
    }
}
