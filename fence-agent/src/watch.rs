//! The agent's own time limits: whatever hangs, the agent answers the fencer before it is killed.

use std::sync::{Arc, mpsc};
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

/// The result of `work` on a thread of its own, which a hanging disk keeps forever; `None` after `limit`. Without a
/// thread the work is done here.
pub(crate) fn in_time<T: Send + 'static>(
    limit: Duration,
    work: impl Fn() -> T + Send + Sync + 'static,
) -> Option<T> {
    let work = Arc::new(work);
    let (send, receive) = mpsc::channel();
    let aside = Arc::clone(&work);
    if thread::Builder::new().spawn(move || drop(send.send(aside()))).is_err() {
        return Some(work());
    }
    receive.recv_timeout(limit).ok()
}
