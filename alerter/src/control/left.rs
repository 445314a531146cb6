//! What may be left at endpoints of a mark that an operator ends: nobody may take "ended" for "undone".

use marks::delivery::{Delivery, State};
use marks::host::HostName;
use marks::id::MarkId;
use marks::journal::{Journal, JournalError, MarkRow};

use crate::config::Route;
use crate::drivers::{Named, Step};
use crate::shared::Shared;

/// One sentence for each route that may have been notified of these marks.
pub(super) fn behind(
    journal: &Journal,
    shared: &Shared,
    marks: &[MarkId],
) -> Result<Vec<String>, JournalError> {
    let mut said = Vec::new();
    for mark in marks {
        let Some(row) = journal.mark(*mark)? else { continue };
        let (was_elsewhere, all) = (shared.was_elsewhere(&row), journal.deliveries_of(*mark)?.sound);
        for delivery in all.iter().filter(|delivery| may_have_it(delivery, was_elsewhere)) {
            let Some(route) = shared.route(&delivery.route) else { continue };
            let name = route.name.of_step(Step::Return);
            let back = all.iter().find(|other| other.route == name.as_str()).map(|back| back.state);
            said.extend(sentence(&row, &route, back));
        }
    }
    Ok(said)
}

fn may_have_it(delivery: &Delivery, was_elsewhere: bool) -> bool {
    let may_have = delivery.state == State::Acknowledged || delivery.arrivals.attempts > 0 || was_elsewhere;
    may_have && !delivery.is_step()
}

/// `back` is the state of its return, where there is one; nothing is left where the route took that.
fn sentence(row: &MarkRow, route: &Route, back: Option<State>) -> Option<String> {
    let (node, name, undo) = (&row.node, route.name.as_str(), undo(row, route));
    let will_be_told = match back {
        Some(State::Acknowledged) => return None,
        Some(state) => !state.is_final(),
        None => route.goes_on_to(Step::Return),
    };
    Some(match will_be_told {
        true => {
            format!("route {name} may have been notified, and undoes it by itself once {node} is back{undo}")
        }
        false => {
            format!("route {name} may have been notified, and nothing undoes by itself what it did{undo}")
        }
    })
}

/// How it is undone by hand, behind a colon.
fn undo(row: &MarkRow, route: &Route) -> String {
    let fqdn: &HostName = row.fqdn.as_ref().unwrap_or(&row.node);
    let named = Named { node: row.node.clone(), fqdn: fqdn.clone() };
    route.driver.undo(&named).map(|how| format!(": {how}")).unwrap_or_default()
}
