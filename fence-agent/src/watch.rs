//! The agent's own limits of time: whatever hangs, the fencer gets an answer from us and not a kill.

use std::sync::{Arc, mpsc};
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

/// What `work` gives on a thread of its own, which a disk that hangs keeps for ever; `None` where that takes longer than
/// `limit`. Without a thread it is done here.
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
