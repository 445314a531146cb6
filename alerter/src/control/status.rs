//! `GET /v1/health` and `GET /v1/status`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use journal::{Done, Journal};
use marks::register::Register;
use marks::time::Timestamp;

use super::answer::Answer;
use super::api::{ClusterStatus, Daemon, Health, RouteStatus};
use super::decisions;
use crate::policy::groups;
use crate::problem::{self, Problem, RouteSight, Waiting};
use crate::state::Shared;

/// How long the journal may take: a command waits a second longer.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) async fn health(State(shared): State<Arc<Shared>>) -> Json<Health> {
    Json(health_of(&shared))
}

fn health_of(shared: &Shared) -> Health {
    health_for(shared, &shared.problems(Timestamp::now()))
}

fn health_for(shared: &Shared, problems: &[Problem]) -> Health {
    let reasons = shared.reasons_of(problems, Timestamp::now());
    let better_elsewhere = shared.is_better_elsewhere();
    let healthy = shared.supervisor.wedged().is_none() && !better_elsewhere;
    let journal = shared.base.settings().store.path.clone();
    Health { healthy, better_elsewhere, degraded: !reasons.is_empty(), reasons, journal }
}

pub(super) async fn status(State(shared): State<Arc<Shared>>) -> Answer<Daemon> {
    let state = Arc::clone(&shared);
    let read = move |journal: &mut Journal| daemon(&state, Some(journal), Timestamp::now());
    match tokio::time::timeout(PATIENCE, shared.base.store.run(read)).await {
        Ok(Ok(answer)) => Ok(Json(answer)),
        _ => Ok(Json(daemon(&shared, None, Timestamp::now())?)),
    }
}

/// What the daemon says of itself, as far as the journal is needed read from this one. Without it what is in memory is said.
pub(crate) fn daemon(shared: &Shared, journal: Option<&Journal>, now: Timestamp) -> Done<Daemon> {
    let in_force = journal.map(|journal| journal.decisions_in_force(now)).transpose()?;
    let groups = journal.map(|journal| groups::groups(journal, shared.policy(), now)).transpose()?;
    let (mut sight, settings) = (shared.sight(now), shared.base.settings());
    if let Some(journal) = journal {
        count(shared, journal, &mut sight.routes)?;
    }
    let problems = problem::problems(&sight);
    Ok(Daemon {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        controller: shared.base.controller.clone(),
        health: health_for(shared, &problems),
        routes: sight.routes.iter().map(route_status).collect(),
        cluster: sight.cluster.as_ref().map(|seen| cluster_status(settings.store.register, seen)),
        groups: groups.unwrap_or_default(),
        orders: in_force.iter().flat_map(|rows| &rows.sound).filter_map(decisions::sentence).collect(),
        unaccounted: sight.unaccounted,
        problems,
    })
}

/// What waits for each route.
fn count(shared: &Shared, journal: &Journal, routes: &mut [RouteSight]) -> Done {
    let (waiting, rejected) = (journal.waiting()?, journal.rejected_hosts()?);
    for route in routes {
        let name = route.name.as_str();
        route.waiting = Some(Waiting {
            deliveries: waiting.get(name).copied().unwrap_or(0),
            rejected: rejected.get(name).map_or(0, BTreeSet::len),
            rejects_all: shared.routes.troubles().rejects_all(name)
                && !journal.has_others_than_rejected(name)?,
        });
    }
    Ok(())
}

fn cluster_status(register: Register, seen: &problem::Cluster) -> ClusterStatus {
    ClusterStatus {
        register: register.as_str().to_owned(),
        permitted: seen.is_permitted,
        age_ms: seen.age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
        entries: seen.entries,
    }
}

fn route_status(seen: &RouteSight) -> RouteStatus {
    let (trouble, waiting) = (seen.trouble.as_ref(), seen.waiting.unwrap_or_default());
    RouteStatus {
        name: seen.name.clone(),
        driver: seen.driver.to_owned(),
        endpoint: seen.endpoint.clone(),
        required: seen.required,
        limit_ms: u64::try_from(seen.limit.as_millis()).unwrap_or(u64::MAX),
        waiting: waiting.deliveries,
        failing_since: trouble.map(|t| t.since),
        failure: trouble.map(|t| t.kind.clone()),
        detail: trouble.map(|t| t.detail.clone()),
        refuses: seen.is_parked && trouble.is_some(),
        waits_until: seen.waits_until,
    }
}
