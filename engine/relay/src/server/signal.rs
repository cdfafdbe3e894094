//! A mark that wakes one waiting task.

/// Set once, however often it is given; taken by the one task that waits.
pub(crate) struct Signal {
    set: async_channel::Sender<()>,
    wait: async_channel::Receiver<()>,
}

impl Signal {
    pub(crate) fn new() -> Self {
        let (set, wait) = async_channel::bounded(1);
        Self { set, wait }
    }

    pub(crate) fn give(&self) {
        // Full means that it is set already.
        let _ = self.set.try_send(());
    }

    pub(crate) async fn wait(&self) {
        // It cannot fail: the sender lives as long as the receiver.
        let _ = self.wait.recv().await;
    }
}
