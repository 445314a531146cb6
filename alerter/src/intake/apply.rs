//! Writes down what the intake decides: fencings become marks, marks get their deliveries.

use marks::journal::{Journal, JournalError, MarkRow, NewDelivery, Resolved, Taken};
use marks::mark::Mark;
use marks::time::Timestamp;
use tracing::{error, info, warn};

use super::{Fold, fold, told_name};
use crate::config::Route;
use crate::shared::Shared;

/// Folds every new fencing into a mark, and names marks that had no name before.
///
/// # Errors
/// As any write.
pub fn take_in(journal: &mut Journal, shared: &Shared) -> Result<(), JournalError> {
    let now = Timestamp::now();
    let (rules, coalesce) = (&shared.settings.hosts, shared.settings.coalesce);
    let fencings = journal.unfolded_fencings()?;
    shared.report_damage(&fencings.damaged);
    for fencing in fencings.sound {
        let outages = journal.outages_of(&fencing.node)?;
        match fold(&fencing, &outages, rules, coalesce) {
            Fold::Mark(row) => {
                let deliveries = row.told().map(|mark| deliveries(shared, &mark)).unwrap_or_default();
                journal.make_mark(&row, Taken::Fencing(&fencing), &deliveries, now)?;
                announce(&row);
            }
            Fold::Join(outage) => {
                journal.add_to_mark(&fencing, outage.mark, now)?;
                info!(mark = %outage.mark, "{} was fenced again in the same outage", fencing.node);
            }
            Fold::SetAside => {
                let reason = format!("{} is not covered by [hosts] match and is not told", fencing.node);
                journal.set_aside(&fencing, &reason, now)?;
                warn!("{reason}");
            }
        }
    }
    Ok(())
}

fn announce(row: &MarkRow) {
    match &row.fqdn {
        Some(fqdn) => info!(mark = %row.id, "{} was fenced and will be told as {fqdn}", row.node),
        None => {
            error!(mark = %row.id, "{} was fenced and is held (no-fqdn): set [hosts] domain or a name in [hosts.names]", row.node);
        }
    }
}

fn deliveries(shared: &Shared, mark: &Mark) -> Vec<NewDelivery> {
    let new =
        |route: &Route| NewDelivery { route: route.name.as_str().to_owned(), body: route.driver.body(mark) };
    shared.settings.routes.iter().map(new).collect()
}

/// After a start: marks that were held for want of a name, and open marks made before a route was configured.
///
/// # Errors
/// As any write.
pub fn catch_up(journal: &mut Journal, shared: &Shared) -> Result<(), JournalError> {
    let now = Timestamp::now();
    let open = journal.open_marks()?;
    shared.report_damage(&open.damaged);
    for row in open.sound {
        match row.told() {
            Some(mark) => add_missing_routes(journal, shared, &mark, now)?,
            None => name(journal, shared, row, now)?,
        }
    }
    Ok(())
}

fn add_missing_routes(
    journal: &mut Journal,
    shared: &Shared,
    mark: &Mark,
    now: Timestamp,
) -> Result<(), JournalError> {
    let existing = journal.deliveries_of(mark.id)?;
    // A damaged row has no believable route: adding one beside it could tell the same mark twice.
    if !existing.damaged.is_empty() {
        return Ok(());
    }
    let mut missing = deliveries(shared, mark);
    missing.retain(|new| existing.sound.iter().all(|old| old.route != new.route));
    for old in existing.sound.iter().filter(|old| !old.state.is_final() && shared.route(&old.route).is_none())
    {
        warn!(mark = %mark.id, "{} still waits for route {}, which is not configured any more: configure it again, or end the mark with `unmark`", mark.node, old.route);
    }
    if missing.is_empty() { Ok(()) } else { journal.add_deliveries(mark.id, &missing, now) }
}

fn name(
    journal: &mut Journal,
    shared: &Shared,
    mut row: MarkRow,
    now: Timestamp,
) -> Result<(), JournalError> {
    let first = journal.fencings_of(row.id)?.sound.into_iter().next();
    row.fqdn = first.and_then(|first| told_name(&first, &shared.settings.hosts));
    let Some(mark) = row.told() else {
        announce(&row);
        return Ok(());
    };
    let deliveries = deliveries(shared, &mark);
    journal.name_mark(&Resolved { mark, deliveries }, now)?;
    announce(&row);
    Ok(())
}
