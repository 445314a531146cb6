//! `POST /v1/unmark` and `POST /v1/release`: an operator decides about marks.

use std::sync::Arc;

use axum::Json;
use axum::extract::State as Given;
use axum::http::StatusCode;
use drivers::Step;
use journal::{Done, Journal};
use marks::delivery::{Delivery, State};
use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::MarkRow;
use marks::time::Timestamp;

use super::answer::{Answer, Asked, Refusal};
use super::api::ChangeAnswer;
use super::{decisions, left, objection};
use crate::config::Route;
use crate::delivery::return_of;
use crate::policy;
use crate::state::Shared;
use crate::words::plain;

pub(super) async fn unmark(Given(shared): Given<Arc<Shared>>, asked: Asked) -> Answer<ChangeAnswer> {
    asked.needs_reason("unmark needs a reason for the history")?;
    let Asked { user, reason, request } = asked;
    let target = request.target.unwrap_or_default();
    if MarkId::parse(&target).is_err() {
        return Err(Refusal::bad(
            "mark",
            "this is not the id of a mark: end a host's marks with PATCH /v1/hosts/{host}",
        ));
    }
    let returns = request.returns;
    let is_meant = move |journal: &Journal, mark: &MarkRow| Ok(returns || is_unfinished(journal, mark)?);
    let marks = those_of(&shared, &target, is_meant).await?;
    let state = Arc::clone(&shared);
    let (changed, left) = shared
        .base
        .store
        .run(move |journal| {
            let now = Timestamp::now();
            let mut ended = 0;
            for mark in &marks {
                // Where nothing is open but its return, that is meant; not one that the first word has just promised.
                let is_ended = journal.dismiss(*mark, &reason, &user, now)? || {
                    if returns {
                        make_returns(journal, &state, *mark, now)?;
                    }
                    journal.dismiss_returns(*mark, returns, (&reason, &user), now)? > 0
                };
                ended += usize::from(is_ended);
                if is_ended {
                    tracing::info!(%mark, "{user} ended the mark: no route is notified of it again ({reason})");
                }
            }
            let mut left = left::behind(journal, &state, &marks)?;
            for mark in marks.iter().filter(|_| ended == 0 && !returns) {
                left.push(format!(
                    "a return that is still to be sent ends with `nova-host-alerter unmark {mark} --return --reason TEXT` alone"
                ));
            }
            Ok((ended, left))
        })
        .await?;
    shared.forget_troubles().await?;
    shared.poke.notify_one();
    let said = format!("{changed} mark(s) of {} ended by you", plain(&target));
    Ok(Json(ChangeAnswer { changed, message: left::with(said, left) }))
}

/// Makes the returns of a mark that are still to be made, so that they can end: its host may be gone for good.
fn make_returns(journal: &mut Journal, shared: &Shared, mark: MarkId, now: Timestamp) -> Done {
    let (row, deliveries) = (journal.mark(mark)?, journal.deliveries_of(mark)?);
    let Some(mark) = row.and_then(|row| row.to_mark()).filter(|_| deliveries.damaged.is_empty()) else {
        return Ok(());
    };
    let on = |route: &str| deliveries.sound.iter().find(|delivery| delivery.route == route);
    let settings = shared.base.settings();
    let lacking = |route: &Route| {
        let sent = on(route.name.as_str()).filter(|sent| sent.state.is_final())?;
        let new = return_of(route, &mark, &sent.body, now);
        on(&new.route).is_none().then_some(new)
    };
    let routes = settings.own_routes().filter(|route| route.goes_on_to(Step::Return));
    let new: Vec<_> = routes.filter_map(lacking).collect();
    journal.add_deliveries(&mark, &new, now)
}

pub(super) async fn release(Given(shared): Given<Arc<Shared>>, asked: Asked) -> Answer<ChangeAnswer> {
    asked.needs_reason("a release needs a reason: it says what Pacemaker did not confirm")?;
    let target = match (&asked.request.target, &asked.request.group) {
        (Some(target), None) => target.clone(),
        (None, Some(group)) => return decisions::release_group(&shared, group, &asked).await,
        _ => return Err(Refusal::bad("scope", "name exactly one: a host, a mark or a group")),
    };
    let marks = newest_mark_of(&shared, &target).await?;
    let doubt = objection::to_release(&shared, &marks, asked.request.insist).await?;
    let Asked { user, reason, .. } = asked;
    let is_id = MarkId::parse(&target).is_ok();
    let release = move |journal: &mut Journal| {
        let now = Timestamp::now();
        let (mut released, mut lack) = (0, None);
        for mark in marks {
            if !is_held(journal, mark)? {
                continue;
            }
            let is_new = journal.release(mark, &reason, &user, now)?.is_some();
            // To another place a return goes by its mark's id alone: a host's name means its failure.
            let was_held = journal.release_held(mark, is_id, (&reason, &user), now)? > 0;
            released += usize::from(is_new || was_held);
            let open = journal.mark(mark)?.filter(|row| row.settled.is_none());
            lack = lack.or(open.and_then(|row| row.lacks().next()));
            if is_new || was_held {
                tracing::info!(%mark, "{user} released the mark ({reason})");
            }
        }
        Ok((released, lack))
    };
    let (changed, lack) = shared.base.store.run(release).await?;
    decisions::publish(&shared);
    let target = plain(&target);
    let message = match (lack, changed) {
        (Some(lack), _) => {
            let place = format!(" of {}", shared.base.settings().file.display());
            format!("{target} stays held ({}): {}", lack.as_str(), policy::set(lack, &place))
        }
        (None, 0) => {
            let message = format!(
                "nothing was released: the newest mark of {target} is not held; an older one is released by its id"
            );
            return Err(Refusal::new(StatusCode::CONFLICT, "not-held", &message));
        }
        (None, changed) => format!("{changed} mark(s) of {target} released by you"),
    };
    let message = left::with(message, doubt.into_iter().collect());
    Ok(Json(ChangeAnswer { changed, message }))
}

/// Whether anything keeps a mark or one of its deliveries back that a release ends.
fn is_held(journal: &Journal, id: MarkId) -> Done<bool> {
    let Some(row) = journal.mark(id)? else { return Ok(false) };
    let keeps = |delivery: &Delivery| delivery.state == State::Held && !delivery.waits_in_chain();
    let is_kept = journal.deliveries_of(id)?.sound.iter().any(keeps);
    Ok(is_kept || !policy::doubts(&row).is_empty() || journal.hold_of(id)?.is_some())
}

/// The open marks that a host name or a mark's id stands for, and settled ones that a route which is not required has not
/// taken yet.
pub(super) async fn unfinished_marks_of(shared: &Shared, target: &str) -> Result<Vec<MarkId>, Refusal> {
    those_of(shared, target, is_unfinished).await
}

/// Whether anything of a mark is open; a damaged row may be.
pub(super) fn is_unfinished(journal: &Journal, mark: &MarkRow) -> Done<bool> {
    let deliveries = journal.deliveries_of(mark.id)?;
    let any_open = deliveries.sound.iter().any(|delivery| !delivery.state.is_final());
    Ok(mark.settled.is_none() || any_open || !deliveries.damaged.is_empty())
}

/// The mark of an id, or a host's last one: an operator who checks the host now vouches for no older one.
async fn newest_mark_of(shared: &Shared, target: &str) -> Result<Vec<MarkId>, Refusal> {
    let is_id = MarkId::parse(target).is_ok();
    let is_newest = move |journal: &Journal, mark: &MarkRow| {
        let all = journal.marks_of(&mark.node)?.sound;
        let newest = all.iter().map(|other| (other.failure_time, other.id)).max();
        Ok(is_id || newest == Some((mark.failure_time, mark.id)))
    };
    those_of(shared, target, is_newest).await
}

/// The marks of a host, or the mark of an id, for which `is_meant` holds.
async fn those_of(
    shared: &Shared,
    target: &str,
    is_meant: impl Fn(&Journal, &MarkRow) -> Done<bool> + Send + 'static,
) -> Result<Vec<MarkId>, Refusal> {
    let (id, host) = (MarkId::parse(target).ok(), HostName::parse(target).ok());
    let read = move |journal: &mut Journal| {
        let by_id = id.map(|id| journal.mark(id)).transpose()?.flatten();
        let by_host = host.map(|host| journal.marks_of(&host)).transpose()?;
        let found = by_id.into_iter().chain(by_host.into_iter().flat_map(|rows| rows.sound));
        let mut marks = Vec::new();
        for mark in found {
            if is_meant(journal, &mark)? {
                marks.push(mark.id);
            }
        }
        Ok(marks)
    };
    shared.first_reading().await;
    let marks = shared.base.store.run(read).await?;
    match marks.is_empty() {
        false => Ok(marks),
        true if shared.is_register_unread() => Err(Refusal::unread()),
        true => Err(Refusal::absent("no open mark has this host name or id: see `nova-host-alerter list`")),
    }
}
