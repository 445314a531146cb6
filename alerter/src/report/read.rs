//! What a report is made of, read from the journal while the daemon goes on writing.

use std::ops::ControlFlow;

use marks::delivery::Delivery;
use marks::journal::{Journal, JournalError, MarkRow};
use marks::time::Timestamp;

use super::Facts;

/// Everything between two times. `tick` is called now and then with the number of rows that were looked at.
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
    let mut facts = Facts::default();
    let mut seen = 0;
    journal.each_history(0, |_, row| {
        seen += 1;
        tick(seen);
        match row {
            Ok(row) if is_in(row.at) => facts.history.push(row),
            Ok(_) => {}
            Err(_) => facts.damaged += 1,
        }
        ControlFlow::Continue(())
    })?;
    let marks = journal.marks_between(from, to)?;
    facts.damaged += marks.damaged.len();
    for mark in marks.sound {
        let deliveries = journal.deliveries_of(mark.id)?;
        facts.damaged += deliveries.damaged.len();
        facts.outages.push((mark, deliveries.sound) as (MarkRow, Vec<Delivery>));
    }
    Ok(facts)
}
