//! Whether every fencing and every sighting is accounted for: each has one end (design, section 6, accounting).

use std::sync::Mutex;
use std::time::{Duration, Instant};

use journal::{Done, Journal};
use marks::account::{Gap, Record, Trace, end_of};
use marks::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::ledger::Ledger;
use crate::base::Base;
use crate::lock::lock;
use crate::moment::Moment;

/// The account: the intake's ledger, and the journal's records without an end.
#[derive(Debug, Default)]
pub struct Account {
    pub(super) ledger: Ledger,
    journal: Vec<Record>,
    /// The journal's version when it was checked.
    version: Option<(i64, i64)>,
}

/// The account with its lock.
pub type Accounts = Mutex<Account>;

/// A fencing, or a sighting of one, that is not accounted for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unaccounted {
    /// Its key: a fencing's key in the register, or witness, host and operation or time.
    pub record: String,
    /// The host's node name; absent where the row is damaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// When the host was fenced by this record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// What is wrong with it.
    pub kind: Gap,
}

/// Checks the fencings and sightings in the journal.
///
/// # Errors
/// As any read.
pub fn check(journal: &Journal, base: &Base, accounts: &Accounts, now: Moment) -> Done {
    let mut records = without_end(journal, now.wall - base.settings().intake.horizon, now.instant)?;
    let mut account = lock(accounts);
    let undecided: Vec<Record> = records.extract_if(.., |record| record.trace == Trace::Nothing).collect();
    let undecided =
        undecided.iter().filter_map(|record| Some((record.key.clone(), record.node.as_ref()?, record.at?)));
    account.ledger.note_undecided(undecided, now.instant);
    account.journal = records;
    Ok(())
}

/// The journal's records without an end; the intake may still have to decide about some of them.
fn without_end(journal: &Journal, since: Timestamp, now: Instant) -> Done<Vec<Record>> {
    journal.records(since, |record| end_of(record, now).is_err())
}

/// What is not accounted for now, from memory: [`check`] reads the journal. While the alerter may not act, overdue records are left
/// out: all records wait then, and that is a problem of its own.
pub fn unaccounted(base: &Base, accounts: &Accounts, now: Instant) -> Vec<Unaccounted> {
    let acts = base.cluster.is_none() || base.seen().view.as_ref().is_some_and(|view| view.permits().is_ok());
    let account = lock(accounts);
    let ledger = account.ledger.records();
    let all = gaps(account.journal.iter().chain(&ledger), now);
    all.into_iter().filter(|one| acts || one.kind != Gap::Overdue).collect()
}

/// The same in one sentence.
pub fn sentence(base: &Base, accounts: &Accounts) -> Option<String> {
    let count = unaccounted(base, accounts, Instant::now()).len();
    let message =
        || format!("{count} record(s) of fencings are unaccounted for: see `nova-host-alerter status`");
    (count > 0).then(message)
}

/// The same of a journal alone: without a running daemon it is not known what waits.
///
/// # Errors
/// As any read.
pub fn of_journal(journal: &Journal, horizon: Duration, now: Timestamp) -> Done<Vec<Unaccounted>> {
    let instant = Instant::now();
    let mut records = without_end(journal, now - horizon, instant)?;
    records.retain(|record| record.trace != Trace::Nothing);
    Ok(gaps(records.iter(), instant))
}

/// [`check`] where the journal has changed, then [`unaccounted`].
///
/// # Errors
/// As any read.
pub fn audit(journal: &Journal, base: &Base, accounts: &Accounts, now: Moment) -> Done<Vec<Unaccounted>> {
    let version = journal.version()?;
    if lock(accounts).version != Some(version) {
        check(journal, base, accounts, now)?;
        lock(accounts).version = Some(version);
    }
    Ok(unaccounted(base, accounts, now.instant))
}

fn gaps<'r>(records: impl Iterator<Item = &'r Record>, now: Instant) -> Vec<Unaccounted> {
    let gap = |record: &Record| {
        let kind = end_of(record, now).err()?;
        let host = record.node.as_ref().map(ToString::to_string);
        Some(Unaccounted { record: record.key.clone(), host, at: record.at, kind })
    };
    records.filter_map(gap).collect()
}
