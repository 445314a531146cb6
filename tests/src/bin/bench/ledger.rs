//! What the journal says of progress, counted in SQL: reading whole rows would take longer than what is measured.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use rusqlite::{Connection, OpenFlags};
use tests::programs::Site;

/// From one reading to the next.
const PAUSE: Duration = Duration::from_millis(5);

/// Deliveries that are not at their end, each part by its index: reading every row would take the time of the alerter.
const OPEN: &str = "SELECT (SELECT count(*) FROM delivery WHERE state IN ('pending', 'parked'))
    + (SELECT count(*) FROM delivery WHERE state IN ('in-flight', 'held'))
    + (SELECT count(*) FROM delivery WHERE state = 'quarantined')";
const ACKNOWLEDGED: &str = "SELECT count(*) FROM delivery WHERE state = 'acknowledged'";

/// The journal of a site, while its alerter runs or not.
pub(crate) struct Ledger(Connection);

/// How far it has come, and when that was seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub(crate) count: usize,
    pub(crate) at: Instant,
}

impl Ledger {
    /// Opens the journal, which must be there.
    pub(crate) fn open(site: &Site) -> anyhow::Result<Self> {
        Ok(Self(Connection::open_with_flags(site.journal(), OpenFlags::SQLITE_OPEN_READ_ONLY)?))
    }

    /// Waits until every delivery is acknowledged, or until `limit`; says how many are. None may be added meanwhile.
    pub(crate) fn until_acknowledged(&self, limit: Duration) -> anyhow::Result<Progress> {
        let all = self.count("SELECT count(*) FROM delivery")?;
        let last = until(limit, || Ok(all.saturating_sub(self.count(OPEN)?)), all)?;
        // Any other end is no acknowledgement.
        ensure!(self.acknowledged()? >= last.count, "marks have ended that nobody acknowledged");
        Ok(last)
    }

    /// Deliveries that are acknowledged now.
    pub(crate) fn acknowledged(&self) -> anyhow::Result<usize> {
        self.count(ACKNOWLEDGED)
    }

    /// Attempts begun, of all deliveries together.
    pub(crate) fn attempts(&self) -> anyhow::Result<usize> {
        self.count("SELECT coalesce(sum(attempts), 0) FROM delivery")
    }

    fn count(&self, sql: &str) -> anyhow::Result<usize> {
        Ok(usize::try_from(self.number(sql)?)?)
    }

    fn number(&self, sql: &str) -> anyhow::Result<i64> {
        Ok(self.0.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
    }
}

/// Reads again and again until there are `count`, or until `limit`.
fn until(
    limit: Duration,
    read: impl Fn() -> anyhow::Result<usize>,
    count: usize,
) -> anyhow::Result<Progress> {
    let end = Instant::now() + limit;
    loop {
        let found = read()?;
        let at = Instant::now();
        if found >= count || at >= end {
            return Ok(Progress { count: found, at });
        }
        thread::sleep(PAUSE);
    }
}
