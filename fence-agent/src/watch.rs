//! The end of the agent's own time: whatever hangs, the fencer gets an answer from us and not a kill.

use std::thread;
use std::time::Duration;

/// Calls `expire` after `limit`, unless the process is gone by then. Without a thread for it the work goes on
/// unwatched: a mark matters more than a punctual failure.
pub(crate) fn start(limit: Duration, expire: impl FnOnce() + Send + 'static) {
    let watch = move || {
        thread::sleep(limit);
        expire();
    };
    let _unwatched = thread::Builder::new().stack_size(64 * 1024).spawn(watch);
}
