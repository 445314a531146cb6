//! All that a scrape shows, collected once for it. Nothing here waits for a disk, for the journal's thread or for its locks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use marks::time::Timestamp;
use prometheus_client::metrics::histogram::Histogram;

use crate::problem::{self, Kind, Problem, RouteSight, of_marks};
use crate::state::counters::OUTCOMES;
use crate::state::{Figures, Shared};

/// What the daemon knows.
#[derive(Debug)]
pub(super) struct Sight {
    pub(super) seen: problem::Sight,
    pub(super) started: Timestamp,
    pub(super) figures: Arc<Figures>,
    /// How many problems degrade the daemon.
    pub(super) degrading: usize,
    /// How many problems there are of each kind.
    pub(super) problems: BTreeMap<&'static str, usize>,
    pub(super) damaged: usize,
    /// In bytes.
    pub(super) journal_limit: u64,
    /// By route and outcome.
    pub(super) attempts: BTreeMap<(String, &'static str), u64>,
    /// Of the routes, by their names.
    pub(super) acknowledgements: Vec<(String, Histogram)>,
    pub(super) register_errors: [(&'static str, u64); 2],
}

/// The words of a route's endpoint.
pub(super) const STATES: [&str; 3] = ["closed", "open", "parked"];

impl Sight {
    pub(super) fn of(shared: &Shared) -> Self {
        let (now, metrics) = (Timestamp::now(), &shared.metrics);
        let (seen, figures) = (shared.sight(now), shared.figures());
        let found = problem::problems(&seen);
        let mut attempts = metrics.attempts();
        for route in &seen.routes {
            for outcome in OUTCOMES {
                attempts.entry((route.name.clone(), outcome)).or_default();
            }
        }
        let counted: BTreeSet<&str> = attempts.keys().map(|(route, _)| route.as_str()).collect();
        let main = counted.into_iter().filter(|route| !route.contains('.'));
        Self {
            started: *shared.base.started(),
            acknowledgements: main.map(|route| (route.to_owned(), metrics.acknowledgements(route))).collect(),
            degrading: shared.reasons_of(&found, now).len(),
            problems: by_kind(&found, &figures.journal, shared.base.damages.count(), now),
            figures,
            damaged: shared.base.damages.count(),
            journal_limit: shared.base.settings().history.max_bytes,
            attempts,
            register_errors: metrics.register_errors(),
            seen,
        }
    }
}

/// Every kind that a daemon can have, with 0 where there is none; a problem that is too young to be news does not count.
fn by_kind(
    found: &[Problem],
    counted: &journal::Figures,
    damaged: usize,
    now: Timestamp,
) -> BTreeMap<&'static str, usize> {
    let known = Kind::OWN.iter().filter(|kind| kind.is_watched());
    let mut all: BTreeMap<&'static str, usize> = known.map(|kind| (kind.as_str(), 0)).collect();
    let news = found.iter().filter(|one| one.not_yet_news(now).is_none()).map(|one| one.kind);
    for kind in news.chain(of_marks(counted, damaged)) {
        *all.entry(kind.as_str()).or_default() += 1;
    }
    all
}

/// A word of [`STATES`].
pub(super) fn state(route: &RouteSight) -> &'static str {
    match (route.is_parked, route.waits_until) {
        (true, _) => "parked",
        (false, Some(_)) => "open",
        (false, None) => "closed",
    }
}
