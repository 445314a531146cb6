//! When the cluster was last seen, for requests that wait until it was seen again.

use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::timeout;

/// So long a request waits.
const PATIENCE: Duration = Duration::from_secs(3);

/// The newest polls.
#[derive(Debug, Default)]
pub struct Looks {
    seen: watch::Sender<Option<Instant>>,
    whole: watch::Sender<Option<Instant>>,
}

impl Looks {
    /// A poll that began then has ended.
    pub fn note_seen(&self, at: Instant) {
        self.seen.send_replace(Some(at));
    }

    /// The poll that began then found all that this journal has in the register.
    pub fn note_whole(&self, at: Instant) {
        self.whole.send_replace(Some(at));
    }

    /// Whether a request waits.
    pub fn is_awaited(&self) -> bool {
        self.seen.receiver_count() + self.whole.receiver_count() > 0
    }

    /// Waits for a poll that began after this call; false where none came in time.
    pub fn seen_again(&self) -> impl Future<Output = bool> + use<> {
        after(&self.seen, Instant::now())
    }

    /// Waits for a poll that began after this call and found all of this journal in the register.
    pub fn whole_again(&self) -> impl Future<Output = bool> + use<> {
        after(&self.whole, Instant::now())
    }
}

/// It is awaited from the call on, not from the first time that the result is polled.
fn after(polls: &watch::Sender<Option<Instant>>, at: Instant) -> impl Future<Output = bool> + use<> {
    let mut polls = polls.subscribe();
    async move {
        let come = polls.wait_for(|newest| newest.is_some_and(|newest| newest >= at));
        matches!(timeout(PATIENCE, come).await, Ok(Ok(_)))
    }
}
