//! `GET /v1/marks/{id}`: one outage in the order of time.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use marks::delivery;
use marks::id::MarkId;

use super::answer::{Answer, Refusal};
use super::api::OutageAnswer;
use super::caller::Caller;
use crate::outage::Kept;
use crate::state::Shared;

/// A token reads what it may report or confirm.
pub(super) async fn get(
    State(shared): State<Arc<Shared>>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
) -> Answer<OutageAnswer> {
    let mark = id.ok().and_then(|Path(id)| MarkId::parse(&id).ok());
    let mark =
        mark.ok_or_else(|| Refusal::bad("mark", "this is not the id of a mark: give the id of the event"))?;
    let kept = shared.base.store.run(move |journal| Kept::read(journal, mark)).await?;
    let kept = kept.filter(|kept| may_read(&caller, kept));
    let kept = kept.ok_or_else(|| Refusal::new(StatusCode::NOT_FOUND, "not-found", NONE))?;
    let outage = kept.outage();
    Ok(Json(OutageAnswer {
        mark: mark.to_string(),
        host: kept.mark.node.to_string(),
        hostname: kept.mark.fqdn.as_ref().map(ToString::to_string),
        times: outage.times(),
        timeline: outage.timeline(),
    }))
}

/// Whether a mark exists is not for everybody either.
const NONE: &str = "there is no mark with this id, or the token may not read it: name its host in hosts, or one of its routes in routes, of the token's table";

fn may_read(caller: &Caller, kept: &Kept) -> bool {
    let base = |route: &str| route.strip_suffix(delivery::RETURN).unwrap_or(route).to_owned();
    caller.may_mark(&kept.mark.node) || kept.routes().any(|route| caller.may_confirm(Some(&base(route))))
}
