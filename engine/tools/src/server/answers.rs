//! The way out: one thread owns stdout, so that answers never mix and nobody waits for a slow client twice.

use std::io::{self, Write};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Answers that may wait to be written. Whoever has another waits with it.
const ANSWERS_WAITING_MAX: usize = 64;
/// How long the last answers may take to be written.
const LAST_ANSWERS_TIMEOUT: Duration = Duration::from_secs(5);

/// Takes answers until it is closed.
#[derive(Debug)]
pub(crate) struct Answers {
    lines: Mutex<Option<SyncSender<Vec<u8>>>>,
    written: Mutex<Receiver<()>>,
}

impl Answers {
    /// Starts the thread that writes to `output`.
    pub(crate) fn start(output: impl Write + Send + 'static) -> io::Result<Self> {
        let (lines, waiting) = sync_channel(ANSWERS_WAITING_MAX);
        let (done, written) = sync_channel(1);
        thread::Builder::new().name("answers".to_owned()).spawn(move || {
            write_all(output, &waiting);
            // Nobody waits for it any more when the time was up.
            let _ = done.send(());
        })?;
        Ok(Self { lines: Mutex::new(Some(lines)), written: Mutex::new(written) })
    }

    /// Hands over a line with its line feed. After the end there is nobody to hand it to.
    pub(crate) fn say(&self, line: Vec<u8>) {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if lines.is_none_or(|lines| lines.send(line).is_err()) {
            log::debug!("an answer came after the end and is dropped");
        }
    }

    /// Waits until all lines are written, for some seconds at most.
    pub(crate) fn close(&self) {
        drop(self.lines.lock().unwrap_or_else(PoisonError::into_inner).take());
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.recv_timeout(LAST_ANSWERS_TIMEOUT).is_err() {
            log::warn!("the client did not read its last answers within {LAST_ANSWERS_TIMEOUT:?}");
        }
    }
}

/// Writes until nothing more comes. Once the client is gone, what comes is dropped: calls go to their end.
fn write_all(mut output: impl Write, lines: &Receiver<Vec<u8>>) {
    let mut is_gone = false;
    for line in lines {
        if is_gone {
            continue;
        }
        if let Err(error) = output.write_all(&line).and_then(|()| output.flush()) {
            log::warn!("stdout cannot be written any more: {error}");
            is_gone = true;
        }
    }
}
