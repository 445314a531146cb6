//! `POST /v1/retry`: everything that waits is tried now; or one host's marks are, with the reason where one is not.

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::extract::{Extension, State};
use journal::{Capacity, Journal, JournalError};
use marks::delivery::{self, Delivery, is_step};
use marks::id::MarkId;
use marks::mark::MarkRow;
use marks::time::Timestamp;

use super::answer::{Answer, JsonBody};
use super::api::{ChangeAnswer, RetryRequest};
use super::caller::Caller;
use super::marks::unfinished_marks_of;
use crate::policy;
use crate::state::Shared;
use crate::words::{counted, plain};

pub(super) async fn retry(
    State(shared): State<Arc<Shared>>,
    Extension(caller): Extension<Caller>,
    JsonBody(request): JsonBody<RetryRequest>,
) -> Answer<ChangeAnswer> {
    let (user, reason) = (caller.signed(&request.user), plain(&request.reason));
    let answer = match &request.target {
        Some(target) => {
            let marks = unfinished_marks_of(&shared, target).await?;
            let state = Arc::clone(&shared);
            shared.base.store.run(move |journal| those(journal, &state, &marks, (&reason, &user))).await?
        }
        None => {
            let all = move |journal: &mut Journal| journal.retry_now(None, &reason, &user, Timestamp::now());
            let changed = shared.base.store.run(all).await?;
            shared.routes.outboxes().values_mut().for_each(|outbox| outbox.endpoint.probe(Instant::now()));
            ChangeAnswer {
                changed,
                message: format!("{} now", counted(changed, "delivery is tried", "deliveries are tried")),
            }
        }
    };
    shared.poke.notify_one();
    Ok(Json(answer))
}

/// One sentence for all deliveries of these marks that are open.
fn those(
    journal: &mut Journal,
    shared: &Shared,
    marks: &[MarkId],
    (reason, user): (&str, &str),
) -> Result<ChangeAnswer, JournalError> {
    let (now, mut changed, mut said) = (Timestamp::now(), 0, Vec::new());
    for mark in marks {
        journal.retry_now(Some(*mark), reason, user, now)?;
        tracing::info!(%mark, "{user} asked for an attempt of the mark now");
        for (route, is_sent, what) in of_mark(journal, shared, *mark, now)? {
            changed += usize::from(is_sent);
            said.push(format!("route {route}: {what}"));
        }
    }
    said.extend(not_permitted(shared));
    Ok(ChangeAnswer { changed, message: said.join("; ") })
}

/// Each open delivery of a mark: its route, whether its attempt is next there, and what is done or in the way.
fn of_mark(
    journal: &Journal,
    shared: &Shared,
    mark: MarkId,
    now: Timestamp,
) -> Result<Vec<(String, bool, String)>, JournalError> {
    let Some(row) = journal.mark(mark)? else { return Ok(Vec::new()) };
    let (settings, rows) = (shared.base.settings(), journal.deliveries_of(mark)?);
    let capacity = |name: &str, terms| Capacity { terms, ..Capacity::of(name, 0) };
    let capacities: Vec<Capacity> =
        settings.routes.iter().map(|route| capacity(route.name.as_str(), route.terms.clone())).collect();
    let due = journal.due_on(mark, &capacities, None, now)?;
    let held = held(journal, &row)?;
    let mut all = Vec::new();
    for delivery in rows.sound.into_iter().filter(|delivery| !delivery.state.is_final()) {
        let is_due = is_step(&delivery.route) || due.iter().any(|(route, _)| *route == delivery.route);
        let away = delivery.is_return()
            && !shared.base.members(now).is_some_and(|seen| seen.members.contains(&row.node));
        let obstacle = match obstacle(&delivery, held.as_deref(), is_due, shared) {
            None if away => Some("it waits until the host is seen as a member of the cluster".to_owned()),
            obstacle => obstacle,
        };
        let is_sent = obstacle.is_none();
        let what = obstacle.unwrap_or_else(|| send(shared, &delivery));
        all.push((delivery.route, is_sent, what));
    }
    let damaged = rows.damaged.into_iter().map(|damage| (damage.key, false, DAMAGED.to_owned()));
    all.extend(damaged);
    if let Some(why) = held.filter(|_| all.is_empty()) {
        all.push(("none yet".to_owned(), false, why));
    }
    Ok(all)
}

const DAMAGED: &str = "its row is damaged: it is never sent, see `nova-host-alerter list`";

/// What keeps the whole mark back.
fn held(journal: &Journal, row: &MarkRow) -> Result<Option<String>, JournalError> {
    let advice = "and a retry does not end that: see `nova-host-alerter status`";
    if let Some(doubt) = policy::doubts(row).first() {
        return Ok(Some(format!("the mark is held ({}), {advice}", doubt.as_str())));
    }
    let held = journal.hold_of(row.id)?;
    Ok(held.map(|held| format!("the mark is held ({}): {}, {advice}", held.words.join(", "), held.why)))
}

/// Why a delivery is not sent now.
fn obstacle(delivery: &Delivery, held: Option<&str>, is_due: bool, shared: &Shared) -> Option<String> {
    use delivery::State::{Held, InFlight, Quarantined};
    let said = || delivery.last.as_ref().map(|last| format!(" ({}): {}", last.kind, last.detail));
    match delivery.state {
        Quarantined => Some(DAMAGED.to_owned()),
        InFlight => Some("it is being sent at this moment".to_owned()),
        Held if delivery.waits_in_chain() => Some("it is the turn of another step of its chain".to_owned()),
        Held => Some(format!("it is held{}; only `release` or `unmark` ends that", said().unwrap_or_default())),
        _ if shared.base.route(&delivery.route).is_none() => Some("it is not configured any more".to_owned()),
        _ if held.is_some() && !delivery.is_step() => held.map(str::to_owned),
        _ if !is_due => Some(
            "an earlier mark of this host, or the route that its `after` names, goes first: see `nova-host-alerter list`"
                .to_owned(),
        ),
        _ => None,
    }
}

/// The delivery is the next one of its route, and that is asked now, whatever it said before.
fn send(shared: &Shared, delivery: &Delivery) -> String {
    let (now, route) = (Instant::now(), &delivery.route);
    let trouble = shared.routes.troubles().of(route).cloned();
    let mut outboxes = shared.routes.outboxes();
    let Some(outbox) = outboxes.get_mut(route) else {
        return "it is sent when the route is ready".to_owned();
    };
    outbox.want(delivery.mark);
    outbox.endpoint.probe(now);
    let when = match outbox.endpoint.free(now) {
        0 => "it is sent next, when an exchange that is under way there has ended",
        _ => "it is sent now",
    };
    let trouble = trouble.map(|trouble| {
        format!(", but the endpoint has accepted nothing recently ({}): {}", trouble.kind, trouble.detail)
    });
    format!("{when}{}", trouble.unwrap_or_default())
}

/// Where nothing may be sent at all.
fn not_permitted(shared: &Shared) -> Option<String> {
    shared.base.cluster.as_ref()?;
    let seen = shared.base.seen();
    let why = match &seen.view {
        Some(view) => view.permits().err()?,
        None => "the cluster was not polled yet".to_owned(),
    };
    Some(format!("but nothing is sent for now: {why}"))
}
