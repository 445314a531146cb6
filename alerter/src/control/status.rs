//! `GET /v1/health` and `GET /v1/status`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use journal::{Journal, JournalError};
use marks::time::Timestamp;

use super::answer::Answer;
use super::api::{ClusterStatus, Daemon, Health, Reason, RouteStatus};
use super::decisions;
use crate::cluster::Cluster;
use crate::config::Route;
use crate::intake::{account, roll};
use crate::policy::groups;
use crate::state::Shared;

pub(super) async fn health(State(shared): State<Arc<Shared>>) -> Json<Health> {
    Json(health_of(&shared))
}

fn health_of(shared: &Shared) -> Health {
    health_for(shared.reasons(Timestamp::now()), shared.supervisor.wedged())
}

fn health_for(mut reasons: Vec<String>, wedged: Option<Duration>) -> Health {
    let sentence = |time: Duration| {
        let seconds = time.as_secs();
        format!(
            "nothing is told: the engine has not got on for {seconds} s; look at the journal's disk and at the load of this controller"
        )
    };
    reasons.splice(0..0, wedged.map(sentence));
    Health { healthy: wedged.is_none(), degraded: !reasons.is_empty(), reasons }
}

pub(super) async fn status(State(shared): State<Arc<Shared>>) -> Answer<Daemon> {
    let state = Arc::clone(&shared);
    let read = move |journal: &mut Journal| daemon(&state, journal, Timestamp::now());
    Ok(Json(shared.base.store.run(read).await?))
}

/// What the daemon says of itself, as far as the journal is needed read from this one.
pub(crate) fn daemon(shared: &Shared, journal: &Journal, now: Timestamp) -> Result<Daemon, JournalError> {
    let orders = decisions::sentences(journal, now)?;
    let (waiting, groups) = (journal.waiting()?, groups::groups(journal, shared.policy(), now)?);
    let rejected = journal.rejected_hosts()?;
    let (settings, named) = (shared.base.settings(), shared.named_reasons(now));
    let mut routes = Vec::new();
    for route in &settings.routes {
        let name = route.name.as_str();
        let rejected = rejected.get(name).map_or(0, BTreeSet::len);
        let rejects_all =
            shared.routes.troubles().rejects_all(name) && !journal.has_others_than_rejected(name)?;
        let count = waiting.get(name).copied().unwrap_or(0);
        routes.push(RouteStatus { rejected, rejects_all, ..route_status(shared, route, count) });
    }
    Ok(Daemon {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        controller: shared.base.controller.clone(),
        health: health_for(
            named.iter().map(|(_, message)| message.clone()).collect(),
            shared.supervisor.wedged(),
        ),
        routes,
        cluster: shared.base.cluster.as_ref().map(|cluster| cluster_status(shared, cluster)),
        groups,
        orders,
        reasons: named.into_iter().map(|(kind, message)| Reason { kind, message }).collect(),
        unaccounted: account::unaccounted(&shared.base, &shared.accounts, Instant::now()),
    })
}

fn cluster_status(shared: &Shared, cluster: &Cluster) -> ClusterStatus {
    let seen = shared.base.seen();
    let age = seen.view.as_ref().map(|view| view.taken.elapsed().as_millis());
    let rules = &shared.base.settings().hosts;
    let guests = seen.cib.as_ref().map(|cib| roll::guests(rules, cib)).unwrap_or_default();
    let guests =
        guests.into_iter().filter_map(|guest| Some(format!("{}: {}", guest.host?, guest.why.detail)));
    ClusterStatus {
        register: cluster.register().as_str().to_owned(),
        permitted: seen.view.as_ref().is_some_and(|view| view.permits().is_ok()),
        age_ms: age.map(|age| u64::try_from(age).unwrap_or(u64::MAX)),
        entries: seen.register.as_ref().map_or(0, |entries| entries.sound.len()),
        warnings: seen.warnings(rules.audit_after).into_iter().chain(guests).collect(),
    }
}

fn route_status(shared: &Shared, route: &Route, waiting: usize) -> RouteStatus {
    let troubles = shared.routes.troubles();
    let trouble = troubles.of(route.name.as_str());
    let lanes = shared.routes.lanes();
    let is_parked = lanes.get(route.name.as_str()).is_some_and(|lane| lane.endpoint.is_parked());
    RouteStatus {
        name: route.name.as_str().to_owned(),
        driver: route.driver.kind().to_owned(),
        endpoint: route.driver.endpoint(),
        required: route.required,
        limit_ms: u64::try_from(route.driver.limit().as_millis()).unwrap_or(u64::MAX),
        waiting,
        failing_since: trouble.map(|t| t.since.0),
        failure: trouble.map(|t| t.kind.clone()),
        detail: trouble.map(|t| t.detail.clone()),
        refuses: is_parked && trouble.is_some(),
        rejected: 0,
        rejects_all: false,
    }
}
