//! Waiting for a state, with a deadline: tests never sleep for a fixed time and hope.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

const PAUSE: Duration = Duration::from_millis(50);

/// Asks `poll` again and again until it gives a value.
///
/// # Errors
/// After `limit`; a mistake of the last poll is given as the reason.
pub fn until<T>(
    what: &str,
    limit: Duration,
    mut poll: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    let end = Instant::now() + limit;
    loop {
        let begun = Instant::now();
        let seen = poll();
        if let Ok(Some(value)) = seen {
            return Ok(value);
        }
        if Instant::now() >= end {
            seen.with_context(|| gave_up(what, limit))?;
            bail!(gave_up(what, limit));
        }
        // Where a poll takes long the machine has other things to do.
        thread::sleep(PAUSE.max(begun.elapsed()));
    }
}

fn gave_up(what: &str, limit: Duration) -> String {
    format!("waited {} s without success for {what}", limit.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_ends_with_the_reason_of_the_last_poll() {
        let ended = until("a miracle", Duration::ZERO, || -> anyhow::Result<Option<()>> { bail!("no") });
        let text = format!("{:#}", ended.unwrap_err());
        assert!(text.contains("a miracle") && text.ends_with("no"), "{text}");
    }

    #[test]
    fn the_first_value_ends_the_wait() {
        let mut polls = 0;
        let third = until("three", Duration::from_secs(5), || {
            polls += 1;
            Ok((polls == 3).then_some(polls))
        });
        assert_eq!(third.unwrap(), 3);
    }
}
