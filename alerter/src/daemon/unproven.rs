//! Logs each mark once that only the register knows of and that Pacemaker has not confirmed in time.

use std::collections::BTreeSet;

use journal::{Done, Journal};
use marks::id::MarkId;
use marks::mark::MarkRow;
use marks::time::Timestamp;
use tracing::error;

use crate::policy::{self, Hold};
use crate::state::Shared;

/// More are not checked: one line more would help nobody then.
const LIMIT: u32 = 100;

/// Logs the new ones.
///
/// # Errors
/// As any read.
pub fn warn(journal: &Journal, shared: &Shared, now: Timestamp) -> Done {
    let held = journal.held_marks(LIMIT)?.sound;
    let overdue: Vec<&MarkRow> = held.iter().filter(|mark| is_overdue(mark, now)).collect();
    let mut said = shared.unproven();
    for mark in overdue.iter().filter(|mark| !said.contains(&mark.id)) {
        let advice = Hold::Unproven.advice(&mark.id.to_string(), None);
        error!(mark = %mark.id, host = %mark.node, "the mark of {} is held (unproven): {advice}", mark.node);
    }
    *said = overdue.iter().map(|mark| mark.id).collect::<BTreeSet<MarkId>>();
    Ok(())
}

fn is_overdue(mark: &MarkRow, now: Timestamp) -> bool {
    let is_news = Hold::Unproven.not_yet_news(mark.made_at, now).is_none();
    is_news && policy::doubts(mark).contains(&Hold::Unproven)
}
