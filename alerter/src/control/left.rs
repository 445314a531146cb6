//! What may be left at endpoints of a mark that an operator ends: "ended" does not mean "undone".

use drivers::{Named, Step};
use journal::{Done, Journal};
use marks::delivery::{Delivery, State};
use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::MarkRow;
use marks::time::Timestamp;

use crate::config::Route;
use crate::state::Shared;

/// One sentence for each route that may have been notified of these marks.
pub(super) fn behind(journal: &Journal, shared: &Shared, marks: &[MarkId]) -> Done<Vec<String>> {
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
            let is_undone =
                all.iter().any(|other| other.route == name.as_str() && other.state == State::Acknowledged);
            said.extend((!is_undone).then(|| sentence(&row, &route)));
        }
    }
    Ok(said)
}

/// The same of a route that is not configured any more, and whose open deliveries an operator ended at `at`.
pub(super) fn at_gone(journal: &Journal, route: &str, at: Timestamp) -> Done<Vec<String>> {
    let mut said = Vec::new();
    for delivery in journal.dismissed_on(route, at)?.sound.iter().filter(|it| it.arrivals.attempts > 0) {
        let row = journal.mark(delivery.mark)?;
        said.extend(row.map(|row| unknown(&row, delivery)));
    }
    Ok(said)
}

fn may_have_it(delivery: &Delivery, was_elsewhere: bool) -> bool {
    let may_have = delivery.state == State::Acknowledged || delivery.arrivals.attempts > 0 || was_elsewhere;
    may_have && !delivery.is_return()
}

/// Of a route that is not configured any more nobody knows how its doing is undone, but where.
fn unknown(row: &MarkRow, delivery: &Delivery) -> String {
    let (node, route, targets) = (&row.node, &delivery.route, delivery.arrivals.targets.join("; and at "));
    let at = if targets.is_empty() { targets } else { format!(" at {targets}") };
    format!(
        "route {route} is not configured any more, and may have been notified of {node}{at}: what it did there is not undone: check {node} there"
    )
}

/// No return is promised: the intake decides about that.
fn sentence(row: &MarkRow, route: &Route) -> String {
    let (node, name, undo) = (&row.node, route.name.as_str(), undo(row, route));
    let unless = match route.goes_on_to(Step::Return) {
        true => format!("unless it is notified of the return of {node}, "),
        false => String::new(),
    };
    format!("route {name} may have been notified; {unless}its effects are not undone by themselves{undo}")
}

/// How it is undone by hand, behind a colon.
fn undo(row: &MarkRow, route: &Route) -> String {
    let fqdn: &HostName = row.fqdn.as_ref().unwrap_or(&row.node);
    let named = Named { node: row.node.clone(), fqdn: fqdn.clone() };
    route.driver.about().undo_of(&named).map(|how| format!(": {how}")).unwrap_or_default()
}

/// What was done, and behind it what is left.
pub(super) fn with(done: String, left: Vec<String>) -> String {
    std::iter::once(done).chain(left).collect::<Vec<_>>().join("; ")
}
