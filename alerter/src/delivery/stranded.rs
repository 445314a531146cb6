//! Marks that wait for a route that is not configured any more: they are neither sent nor dropped, and an operator has to decide.

use std::collections::BTreeMap;

use journal::{Journal, JournalError};
use tracing::warn;

use super::RouteStates;
use crate::base::Base;

/// Counts them again, and logs each missing route once.
///
/// # Errors
/// As any read.
pub fn check(journal: &Journal, base: &Base, routes: &RouteStates) -> Result<(), JournalError> {
    let found: BTreeMap<String, usize> = journal.waiting_required(|route| base.route(route).is_none())?;
    let mut known = routes.stranded();
    for (route, marks) in found.iter().filter(|(route, _)| !known.contains_key(*route)) {
        warn!(
            "{}: configure the route again, or run `nova-host-alerter dismiss --route {route} --reason TEXT`",
            sentence(route, *marks)
        );
    }
    *known = found;
    Ok(())
}

/// The problem in one sentence.
pub fn sentence(route: &str, marks: usize) -> String {
    format!("route {route} is not configured any more, and {marks} mark(s) wait for it")
}
