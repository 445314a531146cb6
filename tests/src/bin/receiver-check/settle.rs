//! When the receiver's list is the one to judge: it may act long after it has answered. Pure.

use std::time::Duration;

use super::judge::{self, Acted};
use super::script::Check;

/// So long the list must have been the same: what must not happen may follow what must.
const QUIET: Duration = Duration::from_secs(2);

/// The list as it was read last. Times are counted from the last message.
pub(super) struct Reading {
    pub(super) acted: Vec<Acted>,
    /// When it was first read like this.
    since: Duration,
}

impl Reading {
    /// The next reading. The order of the list does not count: a receiver may keep none.
    pub(super) fn next(earlier: Option<Self>, mut acted: Vec<Acted>, now: Duration) -> Self {
        acted.sort();
        let same = earlier.filter(|earlier| earlier.acted == acted);
        Self { acted, since: same.map_or(now, |same| same.since) }
    }

    /// Whether all is there that must be and nothing more has come for the quiet time, or the patience is over.
    pub(super) fn is_settled(&self, made: &[&Check], now: Duration, patience: Duration) -> bool {
        let is_whole = made.iter().all(|check| judge::has_all(check, &self.acted));
        let is_quiet = now.saturating_sub(self.since) >= QUIET;
        is_whole && is_quiet || now >= patience
    }
}
