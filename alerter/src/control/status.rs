//! `GET /v1/health` and `GET /v1/status`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use journal::{Journal, JournalError};
use marks::time::Timestamp;

use super::answer::Answer;
use super::api::{Away, ClusterStatus, Daemon, Health, Kind, Reason, RouteStatus};
use super::decisions;
use crate::cluster::{Cluster, missed_sentence};
use crate::config::Route;
use crate::intake::{account, roll};
use crate::policy::groups;
use crate::state::Shared;

pub(super) async fn health(State(shared): State<Arc<Shared>>) -> Json<Health> {
    Json(health_of(&shared))
}

fn health_of(shared: &Shared) -> Health {
    health_for(shared, Timestamp::now()).0
}

/// With its reasons, each with what it is about.
fn health_for(shared: &Shared, now: Timestamp) -> (Health, Vec<Reason>) {
    let wedged = shared.supervisor.wedged();
    let sentence = |time: Duration| {
        let seconds = time.as_secs();
        format!(
            "nothing is told: the engine has not got on for {seconds} s; look at the journal's disk and at the load of this controller"
        )
    };
    let wedge = wedged.map(|time| Reason::of(Kind::Other, sentence(time)));
    let all: Vec<Reason> = wedge.into_iter().chain(shared.named_reasons(now)).collect();
    let reasons = all.iter().map(|reason| reason.message.clone()).collect();
    (Health { healthy: wedged.is_none(), degraded: !all.is_empty(), reasons }, all)
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
    let (settings, (health, reasons)) = (shared.base.settings(), health_for(shared, now));
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
        health,
        routes,
        cluster: shared.base.cluster.as_ref().map(|cluster| cluster_status(shared, cluster)),
        groups,
        orders,
        reasons,
        unaccounted: account::unaccounted(&shared.base, &shared.accounts, Instant::now()),
    })
}

fn cluster_status(shared: &Shared, cluster: &Cluster) -> ClusterStatus {
    let seen = shared.base.seen();
    let age = seen.view.as_ref().map(|view| view.taken.elapsed().as_millis());
    let rules = &shared.base.settings().hosts;
    let guests = seen.cib.as_ref().map(|cib| roll::guests(rules, cib)).unwrap_or_default();
    let guests = guests.into_iter().filter_map(|guest| {
        let host = guest.host?.to_string();
        Some(Away { message: format!("{host}: {}", guest.why.detail), host })
    });
    let missed = seen.missed_for(rules.audit_after).into_iter();
    let missed =
        missed.map(|(host, time)| Away { message: missed_sentence(&host, time), host: host.to_string() });
    let away: Vec<Away> = missed.chain(guests).collect();
    ClusterStatus {
        register: cluster.register().as_str().to_owned(),
        permitted: seen.view.as_ref().is_some_and(|view| view.permits().is_ok()),
        age_ms: age.map(|age| u64::try_from(age).unwrap_or(u64::MAX)),
        entries: seen.register.as_ref().map_or(0, |entries| entries.sound.len()),
        warnings: away.iter().map(|away| away.message.clone()).collect(),
        away,
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
