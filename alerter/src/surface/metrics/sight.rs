//! All that a scrape shows, collected once for it. Nothing here waits for a disk, for the journal's thread or for its locks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use marks::time::Timestamp;
use prometheus_client::metrics::histogram::Histogram;

use crate::problem::{self, Kind, Problem, of_marks};
use crate::state::counters::OUTCOMES;
use crate::state::{Figures, Shared};

/// What the daemon knows.
#[derive(Debug)]
pub(super) struct Sight {
    pub(super) now: Timestamp,
    pub(super) started: Timestamp,
    pub(super) figures: Arc<Figures>,
    /// The configured routes with their further steps.
    pub(super) routes: Vec<RouteSight>,
    /// None where there is no cluster to ask.
    pub(super) cluster: Option<ClusterSight>,
    /// How many problems degrade the daemon.
    pub(super) degrading: usize,
    /// How many problems there are of each kind.
    pub(super) problems: BTreeMap<&'static str, usize>,
    pub(super) is_unwritable: bool,
    pub(super) damaged: usize,
    /// Records of fencings that are unaccounted for.
    pub(super) unaccounted: usize,
    /// In bytes.
    pub(super) journal_limit: u64,
    /// By route and outcome.
    pub(super) attempts: BTreeMap<(String, &'static str), u64>,
    /// Of the routes, by their names.
    pub(super) acknowledgements: Vec<(String, Histogram)>,
    pub(super) register_errors: [(&'static str, u64); 2],
}

/// A route.
#[derive(Debug)]
pub(super) struct RouteSight {
    pub(super) name: String,
    pub(super) is_required: bool,
    /// A word of [`STATES`].
    pub(super) state: &'static str,
    /// Since when it accepts nothing.
    pub(super) failing_since: Option<Timestamp>,
}

/// The words of a route's endpoint.
pub(super) const STATES: [&str; 3] = ["closed", "open", "parked"];

/// The last poll of the cluster.
#[derive(Debug, Default)]
pub(super) struct ClusterSight {
    pub(super) is_permitted: bool,
    /// Seconds since the last poll began.
    pub(super) age: Option<f64>,
    pub(super) entries: usize,
    /// Bytes of the register's longest answer, where a message limits it.
    pub(super) answer: Option<usize>,
    pub(super) gone: usize,
}

impl Sight {
    pub(super) fn of(shared: &Shared) -> Self {
        let (now, metrics) = (Timestamp::now(), &shared.metrics);
        let (seen, figures) = (shared.sight(now), shared.figures());
        let found = problem::problems(&seen);
        let routes = routes(shared);
        let mut attempts = metrics.attempts();
        for route in &routes {
            for outcome in OUTCOMES {
                attempts.entry((route.name.clone(), outcome)).or_default();
            }
        }
        let counted: BTreeSet<&str> = attempts.keys().map(|(route, _)| route.as_str()).collect();
        let main = counted.into_iter().filter(|route| !route.contains('.'));
        Self {
            now,
            started: *shared.base.started(),
            acknowledgements: main.map(|route| (route.to_owned(), metrics.acknowledgements(route))).collect(),
            routes,
            cluster: shared.base.cluster.as_ref().map(|_| ClusterSight::of(shared)),
            degrading: shared.reasons_of(&found, now).len(),
            problems: by_kind(&found, &figures.journal, shared.base.damages.count(), now),
            figures,
            is_unwritable: seen.journal.is_some(),
            damaged: shared.base.damages.count(),
            unaccounted: seen.unaccounted.len(),
            journal_limit: shared.base.settings().history.max_bytes,
            attempts,
            register_errors: metrics.register_errors(),
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

fn routes(shared: &Shared) -> Vec<RouteSight> {
    let settings = shared.base.settings();
    let (breakers, troubles) = (breakers(shared), shared.routes.troubles());
    let sight = |name: &str, is_required| RouteSight {
        name: name.to_owned(),
        is_required,
        state: breakers.get(name).copied().unwrap_or(STATES[0]),
        failing_since: troubles.of(name).map(|trouble| trouble.since),
    };
    settings.routes.iter().map(|route| sight(route.name.as_str(), route.required)).collect()
}

/// The word of each configured route's endpoint.
pub(crate) fn breakers(shared: &Shared) -> BTreeMap<String, &'static str> {
    let (settings, outboxes) = (shared.base.settings(), shared.routes.outboxes());
    let word = |name: &str| match outboxes.get(name) {
        Some(outbox) if outbox.endpoint.is_parked() => "parked",
        Some(outbox) if !outbox.endpoint.is_closed() => "open",
        _ => "closed",
    };
    let names = settings.routes.iter().map(|route| route.name.as_str());
    names.map(|name| (name.to_owned(), word(name))).collect()
}

impl ClusterSight {
    fn of(shared: &Shared) -> Self {
        let seen = shared.base.seen();
        let Some(view) = &seen.view else { return Self::default() };
        Self {
            is_permitted: view.permits().is_ok(),
            age: seen.age().map(|age| age.as_secs_f64()),
            answer: view.kept.longest_answer,
            entries: seen.register.as_ref().map_or(0, |entries| entries.sound.len()),
            gone: seen.missed().len(),
        }
    }
}
