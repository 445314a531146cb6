//! `POST /v1/retry`: everything that waits is tried now; or one host's marks are.

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::extract;
use journal::{Done, Journal};
use marks::delivery::{Delivery, State};
use marks::id::MarkId;
use marks::mark::MarkRow;
use marks::time::Timestamp;

use super::answer::{Answer, Asked};
use super::api::ChangeAnswer;
use super::marks::unfinished_marks_of;
use crate::policy;
use crate::state::Shared;
use crate::words::counted;

pub(super) async fn retry(
    extract::State(shared): extract::State<Arc<Shared>>,
    Asked { user, reason, request }: Asked,
) -> Answer<ChangeAnswer> {
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

/// Tries what is open of these marks and may go; says how many deliveries that are, and what holds a mark.
fn those(
    journal: &mut Journal,
    shared: &Shared,
    marks: &[MarkId],
    (reason, user): (&str, &str),
) -> Done<ChangeAnswer> {
    let (now, mut changed, mut kept, mut said) = (Timestamp::now(), 0, 0, Vec::new());
    for mark in marks {
        journal.retry_now(Some(*mark), reason, user, now)?;
        tracing::info!(%mark, "{user} asked for an attempt of the mark now");
        let Some(row) = journal.mark(*mark)? else { continue };
        let held = held(journal, &row)?;
        let open = journal.deliveries_of(*mark)?.sound;
        for delivery in open.iter().filter(|delivery| !delivery.state.is_final()) {
            let is_away = delivery.is_return()
                && !shared.base.members(now).is_some_and(|seen| seen.members.contains(&row.node));
            let is_free = held.is_none() || delivery.is_return();
            match delivery.state == State::Pending && is_free && !is_away && want(shared, delivery) {
                true => changed += 1,
                false => kept += 1,
            }
        }
        said.extend(held);
    }
    said.insert(0, format!("{} now", counted(changed, "delivery is tried", "deliveries are tried")));
    if kept > 0 {
        said.push("`nova-host-alerter show HOST` says what keeps the others back".to_owned());
    }
    Ok(ChangeAnswer { changed, message: said.join("; ") })
}

/// The delivery is the next one of its route, and that is asked now, whatever it said before; `false` where it is not configured.
fn want(shared: &Shared, delivery: &Delivery) -> bool {
    let mut outboxes = shared.routes.outboxes();
    let Some(outbox) = outboxes.get_mut(&delivery.route) else { return false };
    outbox.want(delivery.mark);
    outbox.endpoint.probe(Instant::now());
    true
}

/// What keeps the whole mark back.
fn held(journal: &Journal, row: &MarkRow) -> Done<Option<String>> {
    let advice = "and a retry does not end that: see `nova-host-alerter status`";
    if let Some(doubt) = policy::doubts(row).first() {
        return Ok(Some(format!("the mark is held ({}), {advice}", doubt.as_str())));
    }
    let held = journal.hold_of(row.id)?;
    Ok(held.map(|held| format!("the mark is held ({}): {}, {advice}", held.words.join(", "), held.why)))
}
