//! Sends what is open again to receivers that forget it, such as an Alertmanager that was restarted. It changes no delivery
//! and writes no history, and nothing waits for it.

use std::sync::Arc;
use std::time::Duration;

use drivers::{Failure, Message, Outcome, Step};
use journal::{Journal, JournalError};
use marks::delivery::Delivery;
use marks::id::MarkId;
use marks::refresh::{Known, Refresh};
use marks::time::Timestamp;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::config::{Route, Settings};
use crate::serving;
use crate::state::Shared;

/// A route of such a receiver.
struct Forgetful {
    route: Arc<Route>,
    refresh: Refresh,
}

impl PartialEq for Forgetful {
    /// A route that has another driver is another one.
    fn eq(&self, other: &Self) -> bool {
        self.route.name == other.route.name && Arc::ptr_eq(&self.route.driver, &other.route.driver)
    }
}

/// All of them; none if there is none.
fn forgetful(settings: &Settings) -> Option<Vec<Forgetful>> {
    let firsts = settings.routes.iter().filter(|route| route.step == Step::Failure);
    let of =
        |route: &Arc<Route>| Some(Forgetful { refresh: route.driver.refreshed()?, route: Arc::clone(route) });
    Some(firsts.filter_map(of).collect()).filter(|found: &Vec<_>| !found.is_empty())
}

/// Refreshes every route that wants it, until `stop`.
pub async fn run(shared: Arc<Shared>, stop: CancellationToken) {
    let all = |routes: &Vec<Forgetful>, stop: CancellationToken| {
        let mut tasks = JoinSet::new();
        for Forgetful { route, refresh } in routes {
            tasks.spawn(keep(Arc::clone(&shared), Arc::clone(route), *refresh, stop.clone()));
        }
        async move { while tasks.join_next().await.is_some() {} }
    };
    serving::follow(&shared.base, forgetful, all, stop).await;
}

/// Refreshes one route, until `stop`.
pub async fn keep(shared: Arc<Shared>, route: Arc<Route>, refresh: Refresh, stop: CancellationToken) {
    let mut trouble = None;
    let rounds = async {
        loop {
            tokio::time::sleep(refresh.every).await;
            // The engine reports a journal that cannot be read.
            if let Ok(ended) = round(&shared, &route, &refresh).await {
                report(&route, &mut trouble, ended);
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = rounds => {}
    }
}

/// Sends all that is due, one after the other. Gives the failure; one that is not about a single mark ends the round.
async fn round(shared: &Shared, route: &Route, refresh: &Refresh) -> Result<Option<Failure>, JournalError> {
    let (name, now) = (route.name.as_str().to_owned(), Timestamp::now());
    let (since, back) = (now - refresh.failure, now - refresh.back);
    let marks = shared.base.store.run(move |journal| journal.taken_on(&name, since, back)).await?;
    let mut failure = None;
    for mark in marks {
        shared.acting.allowed().await;
        let Some(delivery) = due(shared, route, *refresh, mark).await? else { continue };
        let outcome = send(route, &delivery).await;
        let Some(why) = outcome.failure().cloned() else { continue };
        if !matches!(outcome, Outcome::Rejected(_)) {
            return Ok(Some(why));
        }
        failure = Some(why);
    }
    Ok(failure)
}

/// What is due of a mark at this moment: its host may have come back since the round began.
async fn due(
    shared: &Shared,
    route: &Route,
    refresh: Refresh,
    mark: MarkId,
) -> Result<Option<Delivery>, JournalError> {
    let (name, back) = (route.name.as_str().to_owned(), route.name.of_step(Step::Return).as_str().to_owned());
    let target = route.driver.target();
    let work = move |journal: &mut Journal| {
        let Some(mark) = journal.find_mark(mark)?.and_then(Result::ok) else { return Ok(None) };
        let deliveries = journal.deliveries_of(mark.id)?;
        // A damaged row may be the return's.
        if !deliveries.damaged.is_empty() {
            return Ok(None);
        }
        let on = |route: &str| deliveries.sound.iter().find(|delivery| delivery.route == route);
        let known = Known { mark: &mark, failure: on(&name), back: on(&back), target: &target };
        Ok(known.due(&refresh, Timestamp::now()).cloned())
    };
    let due = shared.base.store.run(work).await?;
    // Reading may have taken longer than the permit.
    Ok(due.filter(|_| shared.acting.is_allowed()))
}

async fn send(route: &Route, delivery: &Delivery) -> Outcome {
    let step = if delivery.is_return() { Step::Return } else { Step::Failure };
    let Delivery { mark, body, attempts, .. } = delivery;
    route
        .driver
        .deliver(Message { step, id: mark, body, ambiguous: 0, attempts: *attempts, is_released: false })
        .await
}

/// Logs a failure once, and its end.
fn report(route: &Route, trouble: &mut Option<&'static str>, ended: Option<Failure>) {
    let name = &route.name;
    match (&ended, *trouble) {
        (Some(why), known) if known != Some(why.kind) => {
            warn!(route = %name, kind = why.kind, "route {name} is not reminded of what it has acknowledged, and may forget it: {}; the next try is in {} s", why.detail, every(route).as_secs());
        }
        (None, Some(_)) => info!(route = %name, "route {name} is reminded again of what it has acknowledged"),
        _ => {}
    }
    *trouble = ended.map(|why| why.kind);
}

fn every(route: &Route) -> Duration {
    route.driver.refreshed().map(|refresh| refresh.every).unwrap_or_default()
}
