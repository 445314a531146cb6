//! The agent's own time limit: whatever hangs, the agent answers the fencer before it is killed.

use std::thread;
use std::time::Duration;

/// Calls `expire` after `limit`, unless the process has ended by then. Without a thread for it the work goes on
/// unwatched: a mark matters more than a punctual failure.
pub(crate) fn start(limit: Duration, expire: impl FnOnce() + Send + 'static) {
    let watch = move || {
        thread::sleep(limit);
        expire();
    };
    let _unwatched = thread::Builder::new().stack_size(64 * 1024).spawn(watch);
}
