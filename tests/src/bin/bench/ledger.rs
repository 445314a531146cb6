//! What the journal says of progress, counted in SQL: reading whole rows would take longer than what is measured.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use marks::time::Timestamp;
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
    pub(crate) by_the_clock: Timestamp,
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

    /// Waits until so many marks were made, or until `limit`.
    pub(crate) fn until_made(&self, count: usize, limit: Duration) -> anyhow::Result<Progress> {
        until(limit, || self.count("SELECT count(*) FROM mark"), count)
    }

    /// Deliveries that are acknowledged now.
    pub(crate) fn acknowledged(&self) -> anyhow::Result<usize> {
        self.count(ACKNOWLEDGED)
    }

    /// Attempts begun, of all deliveries together.
    pub(crate) fn attempts(&self) -> anyhow::Result<usize> {
        self.count("SELECT coalesce(sum(attempts), 0) FROM delivery")
    }

    /// Different hosts that have a mark.
    pub(crate) fn hosts(&self) -> anyhow::Result<usize> {
        self.count("SELECT count(DISTINCT node) FROM mark")
    }

    /// When the first acknowledgement came.
    pub(crate) fn first_acknowledged(&self) -> anyhow::Result<Timestamp> {
        let sql = "SELECT coalesce(min(ended_at), 0) FROM delivery WHERE state = 'acknowledged'";
        Ok(Timestamp(self.number(sql)?))
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
        let (at, by_the_clock) = (Instant::now(), Timestamp::now());
        if found >= count || at >= end {
            return Ok(Progress { count: found, at, by_the_clock });
        }
        thread::sleep(PAUSE);
    }
}
