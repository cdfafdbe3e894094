//! A signal that goes out once and reaches everyone who waits.

use async_channel::{Receiver, Sender};

/// Sends the signal. Dropping it sends it too: nobody is left who could want the work.
#[derive(Debug)]
pub struct CancelSource {
    open: Sender<()>,
}

/// Waits for the signal; clones wait for the same one.
#[derive(Clone, Debug)]
pub struct CancelSignal {
    open: Receiver<()>,
}

/// A source and a signal that belong together.
pub fn cancel_pair() -> (CancelSource, CancelSignal) {
    // Nothing is ever sent: the signal is that the channel closes.
    let (source, signal) = async_channel::bounded(1);
    (CancelSource { open: source }, CancelSignal { open: signal })
}

impl CancelSource {
    /// Sends the signal; further times do nothing.
    pub fn cancel(&self) {
        self.open.close();
    }
}

impl CancelSignal {
    /// Whether the signal was sent.
    pub fn is_cancelled(&self) -> bool {
        self.open.is_closed()
    }

    /// Ends once the signal is sent.
    pub async fn cancelled(&self) {
        while self.open.recv().await.is_ok() {}
    }
}

#[cfg(test)]
mod tests {
    use async_std::task;

    use super::*;

    #[test]
    fn every_clone_sees_the_signal_whenever_it_looks() {
        let (source, signal) = cancel_pair();
        let other = signal.clone();
        assert!(!signal.is_cancelled());
        let waiting = task::spawn(async move { other.cancelled().await });
        source.cancel();
        source.cancel();
        task::block_on(waiting);
        task::block_on(signal.cancelled());
        assert!(signal.is_cancelled());
    }

    #[test]
    fn a_dropped_source_cancels() {
        let (source, signal) = cancel_pair();
        drop(source);
        assert!(signal.is_cancelled());
    }
}
