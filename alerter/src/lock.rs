//! The daemon's one way to a mutex.

use std::sync::{Mutex, MutexGuard};

/// Locks it.
///
/// # Panics
/// Where a thread has panicked with it: a panic anywhere ends the whole daemon.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("a panic anywhere ends the whole daemon")
}
