//! `POST /v1/reload`, and `POST /v1/dismiss` of a route that is not configured any more.

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use journal::Journal;
use marks::time::Timestamp;

use super::answer::{Answer, Asked, Refusal};
use super::api::{ChangeAnswer, ReloadAnswer};
use super::{decisions, left};
use crate::delivery::trouble;
use crate::intake::start::{self, Unrouted};
use crate::reload;
use crate::state::Shared;
use crate::state::reloads::Reloaded;
use crate::words::plain;

pub(super) fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/v1/reload", post(read_again)).route("/v1/dismiss", post(dismiss))
}

async fn read_again(
    State(shared): State<Arc<Shared>>,
    Asked { user, reason, request }: Asked,
) -> Answer<ReloadAnswer> {
    let file = request.file.map(PathBuf::from);
    if file.as_ref().is_some_and(|file| !file.is_absolute()) {
        return Err(Refusal::bad("file", "the configuration must be named by its absolute path"));
    }
    // It is done to its end, also where the client goes away.
    let working = tokio::spawn(async move {
        let came = reload::reload(&shared, file).await;
        if let Reloaded::Changed(changes) = &came {
            reload::note(&shared, changes, (user, reason)).await;
        }
        came
    });
    let came = working.await.expect("a panic anywhere ends the whole daemon");
    let (reloaded, busy) = (matches!(came, Reloaded::Changed(_)), matches!(came, Reloaded::Busy(_)));
    let (changes, problems) = match came {
        Reloaded::Changed(changes) => (changes, Vec::new()),
        Reloaded::Refused(problems) => (Vec::new(), problems),
        Reloaded::Busy(why) => (Vec::new(), vec![why]),
    };
    Ok(Json(ReloadAnswer { reloaded, changes, problems, busy }))
}

async fn dismiss(State(shared): State<Arc<Shared>>, asked: Asked) -> Answer<ChangeAnswer> {
    asked.needs_reason("this needs a reason: others will ask why the route was not notified")?;
    let Asked { user, reason, request } = asked;
    let route = request.route.unwrap_or_default();
    if !shared.base.knows_groups() {
        let message = "it is not known yet which group each host is in: ask again in a moment";
        return Err(Refusal::bad("groups", message));
    }
    let (state, asked, name) = (Arc::clone(&shared), route.clone(), route.clone());
    let end = move |journal: &mut Journal| {
        // In the journal's thread: no reload can bring the route back meanwhile.
        if state.base.route(&asked).is_some() {
            return Ok(None);
        }
        let now = Timestamp::now();
        let unrouted = start::dismiss_route(journal, &state.base, (&asked, &reason, &user), now)?;
        trouble::check_stranded(journal, &state.base, &state.routes)?;
        Ok(Some((unrouted, left::at_gone(journal, &asked, now)?)))
    };
    let ended = shared.base.store.run(end).await?;
    let route = plain(&route);
    let Some((unrouted, left)) = ended else {
        let message = format!(
            "route {route} is configured, and is notified of its marks: end single ones with `unmark`, or take the route out of the configuration first"
        );
        return Err(Refusal::bad("route", &message));
    };
    if unrouted == Unrouted::default()
        && !shared.base.store.run(move |journal| journal.has_deliveries_on(&name)).await?
    {
        let message = format!("there is no route {route}: see `nova-host-alerter status`");
        return Err(Refusal::new(StatusCode::NOT_FOUND, "unknown-route", &message));
    }
    decisions::publish(&shared);
    let message = left::with(dismissed(&route, unrouted), left);
    Ok(Json(ChangeAnswer { changed: unrouted.left.changed, message }))
}

/// What has come of it, and what is left to do.
fn dismissed(route: &str, Unrouted { left, under_way }: Unrouted) -> String {
    let mut said = Vec::new();
    if left.changed > 0 {
        said.push(format!(
            "{} mark(s) do not wait for route {route} any more; other routes are not affected",
            left.changed
        ));
    }
    if left.ended > 0 {
        said.push(ended(left.ended, left.unsent));
    }
    if under_way > 0 {
        said.push(format!(
            "{under_way} mark(s) are in flight to route {route} and were not changed: run this again after the route's timeout"
        ));
    }
    if left.damaged > 0 {
        said.push(format!(
            "{} mark(s) have a damaged row of route {route}: see `nova-host-alerter list`, and end them with `unmark`",
            left.damaged
        ));
    }
    if said.is_empty() {
        said.push(format!("no mark waits for a route {route}: see `nova-host-alerter status`"));
    }
    said.join("; ")
}

/// Marks that waited for nobody else, some of which were notified to nobody at all.
fn ended(marks: usize, unsent: usize) -> String {
    let notified = match unsent {
        0 => "other routes had acknowledged each of them".to_owned(),
        all if all == marks => "NO ROUTE WAS NOTIFIED of any of them".to_owned(),
        some => format!("NO ROUTE WAS NOTIFIED of {some} of them"),
    };
    format!("{marks} mark(s) ended too, since they waited for no other route: {notified}")
}
