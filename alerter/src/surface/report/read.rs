//! Reads the facts of a report from the journal while the daemon goes on writing.

use std::ops::ControlFlow;

use journal::{Journal, JournalError};
use marks::delivery::Delivery;
use marks::mark::MarkRow;
use marks::time::Timestamp;

use super::numbers::Facts;
use crate::recovery::kept::Kept;

/// Everything between two times. `tick` is called now and then with the number of rows that were read.
///
/// # Errors
/// As any read.
pub fn read(
    journal: &Journal,
    from: Timestamp,
    to: Timestamp,
    mut tick: impl FnMut(u64),
) -> Result<Facts, JournalError> {
    let is_in = |at: Timestamp| from <= at && at < to;
    let (outages, damaged) = outages(journal, from, to)?;
    let kept = Kept::beside(journal.path());
    let recoveries = outages.iter().filter_map(|(row, _)| Some((row.clone(), kept.read(row.id)?))).collect();
    let mut facts = Facts { damaged, recoveries, ..Facts::of(outages) };
    let mut seen = 0;
    journal.each_history(0, |_, row| {
        seen += 1;
        tick(seen);
        match row {
            Ok(row) if is_in(row.at) => facts.history.take(&row),
            // A host may have been lost before the time that the report covers, and have been fenced in it.
            Ok(row) => facts.history.take_loss(&row),
            Err(_) => facts.damaged += 1,
        }
        ControlFlow::Continue(())
    })?;
    Ok(facts)
}

type Outages = Vec<(MarkRow, Vec<Delivery>)>;

/// Marks of hosts that failed then, with their deliveries, and the number of damaged rows.
fn outages(journal: &Journal, from: Timestamp, to: Timestamp) -> Result<(Outages, usize), JournalError> {
    let marks = journal.marks_between(from, to)?;
    let (mut outages, mut damaged) = (Vec::new(), marks.damaged.len());
    for mark in marks.sound {
        let deliveries = journal.deliveries_of(mark.id)?;
        damaged += deliveries.damaged.len();
        outages.push((mark, deliveries.sound));
    }
    Ok((outages, damaged))
}
