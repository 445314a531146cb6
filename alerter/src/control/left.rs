//! What may be left at endpoints of a mark that an operator ends: "ended" does not mean "undone".

use std::time::Duration;

use drivers::{Named, Step};
use journal::{Journal, JournalError};
use marks::delivery::{Delivery, State};
use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::MarkRow;
use marks::returning::owed_since;
use marks::time::Timestamp;

use crate::config::Route;
use crate::state::Shared;

/// One sentence for each route that may have been notified of these marks.
pub(super) fn behind(
    journal: &Journal,
    shared: &Shared,
    marks: &[MarkId],
) -> Result<Vec<String>, JournalError> {
    let mut said = Vec::new();
    for mark in marks {
        let Some(row) = journal.mark(*mark)? else { continue };
        let (was_elsewhere, all) = (shared.base.was_elsewhere(&row), journal.deliveries_of(*mark)?.sound);
        for delivery in all.iter().filter(|delivery| may_have_it(delivery, was_elsewhere)) {
            let Some(route) = shared.base.route(&delivery.route) else {
                said.push(unknown(&row, delivery));
                continue;
            };
            let name = route.name.of_step(Step::Return);
            let back = all.iter().find(|other| other.route == name.as_str()).map(|back| back.state);
            let limits = (Timestamp::now(), shared.base.settings().intake.horizon);
            let is_made = route.goes_on_to(Step::Return)
                && is_made_later(&row, delivery, route.driver.ends_each(), limits);
            said.extend(sentence(&row, &route, back, is_made));
        }
    }
    Ok(said)
}

/// The same of a route that is not configured any more, and whose open deliveries an operator ended at `at`.
pub(super) fn at_gone(journal: &Journal, route: &str, at: Timestamp) -> Result<Vec<String>, JournalError> {
    let mut said = Vec::new();
    for delivery in journal.dismissed_on(route, at)?.sound.iter().filter(|it| it.arrivals.attempts > 0) {
        let row = journal.mark(delivery.mark)?;
        said.extend(row.map(|row| unknown(&row, delivery)));
    }
    Ok(said)
}

fn may_have_it(delivery: &Delivery, was_elsewhere: bool) -> bool {
    let may_have = delivery.state == State::Acknowledged || delivery.arrivals.attempts > 0 || was_elsewhere;
    may_have && !delivery.is_step()
}

/// Whether a return is still to be made, as the intake decides: the later of its end and its host's return is recent enough, or for
/// longer where the register shows that a route which ends each mark acknowledged it. What is open is about to end.
fn is_made_later(
    row: &MarkRow,
    delivery: &Delivery,
    ends_each: bool,
    (now, horizon): (Timestamp, Duration),
) -> bool {
    let is_shown = ends_each && delivery.state == State::Acknowledged;
    let since = owed_since(now, is_shown, horizon);
    [row.returned_at, delivery.ended_at].iter().any(|at| at.is_none_or(|at| at >= since))
}

/// Of a route that is not configured any more nobody knows how its doing is undone, but where.
fn unknown(row: &MarkRow, delivery: &Delivery) -> String {
    let (node, route, targets) = (&row.node, &delivery.route, delivery.arrivals.targets.join("; and at "));
    let at = if targets.is_empty() { targets } else { format!(" at {targets}") };
    format!(
        "route {route} is not configured any more, and may have been notified of {node}{at}: what it did there is not undone: check {node} there"
    )
}

/// `back` is the state of its return, where there is one; nothing is left where the route took that.
fn sentence(row: &MarkRow, route: &Route, back: Option<State>, is_made: bool) -> Option<String> {
    let (node, name, undo) = (&row.node, route.name.as_str(), undo(row, route));
    let will_be_notified = match back {
        Some(State::Acknowledged) => return None,
        Some(state) => !state.is_final(),
        None => is_made,
    };
    Some(match will_be_notified {
        true => {
            format!(
                "route {name} may have been notified; it undoes its effects by itself once {node} is back{undo}"
            )
        }
        false => {
            format!("route {name} may have been notified; its effects are not undone by themselves{undo}")
        }
    })
}

/// How it is undone by hand, behind a colon.
fn undo(row: &MarkRow, route: &Route) -> String {
    let fqdn: &HostName = row.fqdn.as_ref().unwrap_or(&row.node);
    let named = Named { node: row.node.clone(), fqdn: fqdn.clone() };
    route.driver.undo(&named).map(|how| format!(": {how}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The broken variant promises a return of each mark of the last seven days.
    #[test]
    fn only_a_return_that_will_be_made_is_promised() {
        let (now, day) = (Timestamp(1_800_000_000_000), Duration::from_secs(86_400));
        for (state, ends_each, days, expected) in [
            (State::Dismissed, true, 2, false),
            (State::Dismissed, true, 0, true),
            (State::Acknowledged, true, 2, true),
            (State::Acknowledged, true, 8, false),
            (State::Acknowledged, false, 2, false),
        ] {
            let at = now - day * days;
            let row = MarkRow { returned_at: Some(at), ..samples::mark_of("compute1", at) };
            let delivery = Delivery { state, ended_at: Some(at), ..samples::delivery(&row, "recovery") };
            assert_eq!(is_made_later(&row, &delivery, ends_each, (now, day)), expected, "{state:?} {days}");
        }
    }
}
