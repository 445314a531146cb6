//! Waiting for a state, with a deadline: tests never sleep for a fixed time and hope.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

/// Between two polls. A poll is a process or three: what has taken long is asked after less often, but seen a tenth later at most.
const PAUSE: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// Asks `poll` again and again until it gives a value.
///
/// # Errors
/// After `limit`; a mistake of the last poll is given as the reason.
pub fn until<T>(
    what: &str,
    limit: Duration,
    mut poll: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    let first = Instant::now();
    loop {
        let begun = Instant::now();
        let seen = poll();
        if let Ok(Some(value)) = seen {
            return Ok(value);
        }
        if first.elapsed() >= limit {
            seen.with_context(|| gave_up(what, limit))?;
            bail!(gave_up(what, limit));
        }
        // Where a poll takes long the machine has other things to do.
        thread::sleep((first.elapsed() / 10).clamp(PAUSE[0], PAUSE[1]).max(begun.elapsed() * 2));
    }
}

fn gave_up(what: &str, limit: Duration) -> String {
    format!("waited {} s without success for {what}", limit.as_secs())
}
