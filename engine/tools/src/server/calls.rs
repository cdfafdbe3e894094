//! The calls under way: how many, how one is taken back, and how all come to an end.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_channel::{Receiver, Sender};
use serde_json::Value;

/// Most calls at a time; one more is refused.
pub(crate) const CALLS_MAX: usize = 128;

/// Why a call is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The client has taken it back.
    Cancelled,
    /// The server ends.
    Closing,
}

/// The calls of a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    running: Vec<Running>,
    next_number: u64,
    is_closing: bool,
}

#[derive(Debug)]
struct Running {
    /// Ids are the client's, which may use one twice.
    number: u64,
    id: Value,
    stop: Sender<Stop>,
}

/// A call under way. Dropping it says that it has been answered.
#[derive(Debug)]
pub(crate) struct Call {
    shared: Arc<Shared>,
    number: u64,
    stop: Receiver<Stop>,
}

impl Calls {
    /// Lets a call begin, unless there are too many or the server ends.
    pub(crate) fn begin(&self, id: &Value) -> Option<Call> {
        let mut state = self.shared.lock();
        if state.is_closing || state.running.len() >= CALLS_MAX {
            return None;
        }
        let number = state.next_number;
        state.next_number += 1;
        // The first reason to stop is the one that counts.
        let (stop, stopped) = async_channel::bounded(1);
        state.running.push(Running { number, id: id.clone(), stop });
        Some(Call { shared: Arc::clone(&self.shared), number, stop: stopped })
    }

    /// Takes back the call with this id, if one is under way.
    pub(crate) fn cancel(&self, id: &Value) {
        for running in self.shared.lock().running.iter().filter(|running| running.id == *id) {
            // Full means that it has a reason to stop already.
            let _ = running.stop.try_send(Stop::Cancelled);
        }
    }

    /// Waits until no call is under way, for `limit` at most.
    pub(crate) fn wait(&self, limit: Duration) {
        let state = self.shared.lock();
        drop(self.shared.ended.wait_timeout_while(state, limit, |state| !state.running.is_empty()));
    }

    /// Stops all calls, and lets no other begin.
    pub(crate) fn stop_all(&self) {
        let mut state = self.shared.lock();
        state.is_closing = true;
        for running in &state.running {
            // Full means that it has a reason to stop already.
            let _ = running.stop.try_send(Stop::Closing);
        }
    }
}

impl Call {
    /// What tells the call to stop.
    pub(crate) fn stop(&self) -> Receiver<Stop> {
        self.stop.clone()
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.shared.lock().running.retain(|running| running.number != self.number);
        self.shared.ended.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing is left half done under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cancel_reaches_the_call_with_its_id_and_no_other() {
        let calls = Calls::default();
        let one = calls.begin(&json!(1)).expect("begins");
        let text = calls.begin(&json!("1")).expect("begins");
        calls.cancel(&json!(1));
        calls.cancel(&json!("nobody"));
        assert_eq!(one.stop().try_recv(), Ok(Stop::Cancelled));
        assert!(text.stop().try_recv().is_err());
    }

    #[test]
    fn beyond_the_limit_none_begins_until_one_has_ended() {
        let calls = Calls::default();
        let mut running: Vec<_> = (0..CALLS_MAX).map(|n| calls.begin(&json!(n)).expect("begins")).collect();
        assert!(calls.begin(&json!("more")).is_none());
        running.pop();
        assert!(calls.begin(&json!("more")).is_some());
    }

    #[test]
    fn at_the_end_all_are_stopped_and_none_begins() {
        let calls = Calls::default();
        let call = calls.begin(&json!(1)).expect("begins");
        calls.cancel(&json!(1));
        calls.stop_all();
        assert_eq!(call.stop().try_recv(), Ok(Stop::Cancelled), "the first reason counts");
        assert!(calls.begin(&json!(2)).is_none());
        drop(call);
        calls.wait(Duration::from_secs(10));
    }
}
