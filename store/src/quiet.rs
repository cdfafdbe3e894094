//! Calls into sled: a panic there becomes an error, without sled's words on stderr.
//!
//! sled panics on some damaged files. The panic hook is replaced once, by one that keeps still
//! for threads that are inside [`catch`] and for sled's own, and calls the hook before it
//! for all others.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;
use std::thread;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// What the names of sled's worker threads start with.
const SLED_THREAD_PREFIX: &str = "sled-";

/// Runs `work`; a panic in it is an error with the panic's message.
pub(crate) fn catch<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    install_hook();
    let outer = INSIDE.replace(true);
    // What sled leaves behind after a panic is not looked at again: its owner drops it.
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    INSIDE.set(outer);
    result.map_err(|payload| format!("sled panicked: {}", message_of(payload.as_ref())))
}

fn install_hook() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let of_sled =
                || thread::current().name().is_some_and(|name| name.starts_with(SLED_THREAD_PREFIX));
            if !INSIDE.get() && !of_sled() {
                before(info);
            }
        }));
    });
}

fn message_of(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_with_its_message() {
        let error = catch(|| -> u8 { panic!("page {} is broken", 7) }).expect_err("panics");
        assert_eq!(error, "sled panicked: page 7 is broken");
    }
}
