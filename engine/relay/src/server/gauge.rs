//! How many of something there are, with a task that waits for fewer.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use super::signal::Signal;

/// A count with a bound.
pub(crate) struct Gauge {
    max: usize,
    count: AtomicUsize,
    fewer: Signal,
}

/// One that is counted, until dropped.
pub(crate) struct Counted(Arc<Gauge>);

impl Gauge {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, count: AtomicUsize::new(0), fewer: Signal::new() })
    }

    /// Counts one more, if the bound allows it.
    pub(crate) fn try_enter(self: &Arc<Self>) -> Option<Counted> {
        let more = |count| (count < self.max).then_some(count + 1);
        let entered = self.count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok();
        entered.then(|| Counted(self.clone()))
    }

    /// Counts one more, as soon as the bound allows it. For one task at a time.
    pub(crate) async fn enter(self: &Arc<Self>) -> Counted {
        loop {
            if let Some(counted) = self.try_enter() {
                return counted;
            }
            self.fewer.wait().await;
        }
    }

    /// Waits until there is none. For one task at a time.
    pub(crate) async fn none(&self) {
        while self.count.load(Ordering::SeqCst) > 0 {
            self.fewer.wait().await;
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::SeqCst);
        self.0.fewer.give();
    }
}
