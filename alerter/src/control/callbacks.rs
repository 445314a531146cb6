//! `PATCH /v1/marks/{id}`: a receiver confirms a mark that it had only accepted, or refuses it.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use journal::{Callback, Heard, Journal, Says};
use marks::id::MarkId;
use marks::mark::Standing;
use marks::time::Timestamp;
use site::is_hidden;
use tracing::{info, warn};

use super::answer::{Answer, Refusal, Strict};
use super::api::{MarkAnswer, MarkRequest};
use super::caller::Caller;
use super::decisions;
use crate::delivery::endpoint;
use crate::state::Shared;
use crate::words::plain;

/// Longest reference in characters.
const REFERENCE: usize = 256;
/// What is on record where a receiver does not say why it refuses.
const REFUSED: &str = "without a stated reason";

/// What a receiver says counts whenever it comes.
pub(super) async fn patch(
    State(shared): State<Arc<Shared>>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
    Strict(request): Strict<MarkRequest>,
) -> Answer<MarkAnswer> {
    let mark = id.ok().and_then(|Path(id)| MarkId::parse(&id).ok());
    let mark =
        mark.ok_or_else(|| Refusal::bad("mark", "this is not the id of a mark: give the id of the event"))?;
    let says = says(&request)?;
    if !caller.may_confirm(request.route.as_deref()) {
        return Err(Refusal::new(StatusCode::FORBIDDEN, "not-allowed", NOT_ITS_ROUTE));
    }
    let callback = callback(&shared, mark, request.route, &caller);
    let actor = callback.actor.clone();
    let now = Timestamp::now();
    let (heard, waiting, row) = shared
        .base
        .store
        .run(move |journal: &mut Journal| {
            let heard = journal.call_back(&callback, &says, now)?;
            Ok((heard, journal.waiting()?, journal.find_mark(mark)?))
        })
        .await?;
    if let (Heard::Done(route), Some(Ok(row)), true) = (&heard, row, request.acknowledged) {
        shared.metrics.acknowledged(route, row.failure_time, now);
    }
    shared.routes.troubles().keep_only(|route| waiting.contains_key(route));
    decisions::publish(&shared);
    answer(mark, heard, request.acknowledged, &actor).map(Json)
}

const NOT_ITS_ROUTE: &str =
    "this token may not confirm marks of this route: name the route in routes of the token's table";

fn callback(shared: &Shared, mark: MarkId, route: Option<String>, caller: &Caller) -> Callback {
    let settings = shared.base.settings();
    let confirming = settings.own_routes().filter(|route| route.driver.about().confirms_later);
    let names = confirming.map(|route| route.name.as_str()).filter(|name| caller.may_confirm(Some(name)));
    let confirming = names.map(str::to_owned).collect();
    Callback { mark, route, confirming, actor: caller.actor() }
}

fn says(request: &MarkRequest) -> Result<Says, Refusal> {
    let reason = request.reason.as_deref().map(plain).filter(|reason| !reason.is_empty());
    let reference = request.reference.as_deref().map(reference).transpose()?;
    match request.acknowledged {
        true => Ok(Says::Has { reference, reason }),
        false if reference.is_some() => Err(Refusal::bad("reference", "a rejected mark has no reference")),
        false => Ok(Says::Refuses {
            reason: reason.unwrap_or_else(|| REFUSED.to_owned()),
            next_due: Timestamp::now() + endpoint::SLOW,
        }),
    }
}

/// It is kept as it is, or not at all: half of a name is none.
fn reference(text: &str) -> Result<String, Refusal> {
    let is_plain = !text.trim().is_empty() && !text.chars().any(is_hidden);
    match is_plain && text.chars().count() <= REFERENCE {
        true => Ok(text.to_owned()),
        false => {
            let message =
                format!("a reference has 1 to {REFERENCE} characters, and no control or hidden character");
            Err(Refusal::bad("reference", &message))
        }
    }
}

/// What is said of it, one sentence.
fn answer(mark: MarkId, heard: Heard, is_taken: bool, actor: &str) -> Result<MarkAnswer, Refusal> {
    let conflict = |kind, message: &str| Err(Refusal::new(StatusCode::CONFLICT, kind, message));
    let said = |route: String, changed, message: String| {
        Ok(MarkAnswer { mark: mark.to_string(), route, changed, message })
    };
    match heard {
        Heard::Done(route) if is_taken => {
            info!(mark = %mark, %route, "{actor} confirms for route {route} that it has the mark");
            let message = format!("{route} has acknowledged it");
            said(route, true, message)
        }
        Heard::Done(route) => {
            warn!(mark = %mark, %route, "{actor} rejects the mark for route {route}; it is retried at long intervals: see `nova-host-alerter show {mark}`");
            let message = format!("{route} rejects it: the mark is kept and retried at long intervals");
            said(route, true, message)
        }
        Heard::Already(route) => {
            let message = format!("{route} had acknowledged it before: nothing was changed");
            said(route, false, message)
        }
        Heard::RefusedBefore(route) => {
            let message = format!("{route} had rejected it before: nothing was changed");
            said(route, false, message)
        }
        Heard::StaysHeld(route) => {
            let message = format!("it is held on route {route} and stays held; the answer is noted");
            said(route, false, message)
        }
        Heard::NoMark => Err(Refusal::absent(
            "there is no mark with this id here: ask the controller that runs the alerter",
        )),
        Heard::NoDelivery => conflict(
            "no-callback",
            "you may not confirm this mark for any route: a route needs ack = \"callback\", and your token must name the route",
        ),
        Heard::Several(routes) => {
            let message = format!("name the route, which is one of: {}", routes.join(", "));
            Err(Refusal::bad("route", &message))
        }
        Heard::Doubtful(doubt) => {
            let message = format!(
                "the mark is held ({}) and was never sent: nothing was changed",
                Standing::Doubtful(doubt).as_str()
            );
            conflict("doubtful", &message)
        }
        Heard::NeverSent(route) => {
            let message = format!(
                "this controller has not sent it to {route} yet: nothing was changed; confirm it when it has arrived"
            );
            conflict("never-sent", &message)
        }
        Heard::Over(state) => {
            let message = format!("its delivery is {} already: nothing was changed", state.as_str());
            conflict("ended", &message)
        }
    }
}
