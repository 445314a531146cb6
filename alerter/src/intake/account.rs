//! Whether everything adds up: each fencing and each sighting has one end (design, section 6, accounting).

use std::sync::Mutex;
use std::time::{Duration, Instant};

use journal::{Journal, JournalError};
use marks::account::{Gap, Record, Trace, end_of};
use marks::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::ledger::Ledger;
use crate::base::Base;
use crate::lock::lock;
use crate::moment::Moment;

/// What is accounted for: the intake's ledger, and of the journal what does not add up by itself.
#[derive(Debug, Default)]
pub struct Account {
    pub(super) ledger: Ledger,
    journal: Vec<Record>,
    /// The journal when it was looked at.
    version: Option<(i64, i64)>,
}

/// It, for whoever reads or writes it.
pub type Accounts = Mutex<Account>;

/// A fencing, or what Pacemaker said of one, that has no end that can be shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unaccounted {
    /// What tells it apart: a fencing's key in the register, or witness, host and operation or time.
    pub record: String,
    /// The host's node name; absent where the row is damaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// When it says that the host was fenced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// What does not add up.
    pub kind: Gap,
}

/// Looks at the fencings and sightings in the journal.
///
/// # Errors
/// As any read.
pub fn check(journal: &Journal, base: &Base, accounts: &Accounts, now: Moment) -> Result<(), JournalError> {
    let mut records = without_end(journal, now.wall - base.settings().intake.horizon, now.instant)?;
    let mut account = lock(accounts);
    let undecided: Vec<Record> = records.extract_if(.., |record| record.trace == Trace::Nothing).collect();
    let undecided =
        undecided.iter().filter_map(|record| Some((record.key.clone(), record.node.as_ref()?, record.at?)));
    account.ledger.note_undecided(undecided, now.instant);
    account.journal = records;
    Ok(())
}

/// The journal's records that have no end by themselves; some of them the intake has not decided about yet.
fn without_end(journal: &Journal, since: Timestamp, now: Instant) -> Result<Vec<Record>, JournalError> {
    journal.records(since, |record| end_of(record, now).is_err())
}

/// What does not add up now, by what is in memory: [`check`] reads the journal. While the alerter may not act every record
/// waits for that, which is said by itself.
pub fn unaccounted(base: &Base, accounts: &Accounts, now: Instant) -> Vec<Unaccounted> {
    let acts = base.cluster.is_none() || base.seen().view.as_ref().is_some_and(|view| view.permits().is_ok());
    let account = lock(accounts);
    let ledger = account.ledger.records();
    let all = gaps(account.journal.iter().chain(&ledger), now);
    all.into_iter().filter(|one| acts || one.kind != Gap::Overdue).collect()
}

/// That something does not add up, in one sentence.
pub fn sentence(base: &Base, accounts: &Accounts) -> Option<String> {
    let count = unaccounted(base, accounts, Instant::now()).len();
    let message = || {
        format!(
            "{count} record(s) of fencings have no end that can be shown: look at `nova-host-alerter status`"
        )
    };
    (count > 0).then(message)
}

/// The same of a journal alone, where no daemon runs that could say what waits.
///
/// # Errors
/// As any read.
pub fn of_journal(
    journal: &Journal,
    horizon: Duration,
    now: Timestamp,
) -> Result<Vec<Unaccounted>, JournalError> {
    let instant = Instant::now();
    let mut records = without_end(journal, now - horizon, instant)?;
    records.retain(|record| record.trace != Trace::Nothing);
    Ok(gaps(records.iter(), instant))
}

/// Both, for those who look at each step: the journal where it has changed.
///
/// # Errors
/// As any read.
pub fn audit(
    journal: &Journal,
    base: &Base,
    accounts: &Accounts,
    now: Moment,
) -> Result<Vec<Unaccounted>, JournalError> {
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
