//! One attempt: the exchange, what it came to, and that on record. It knows nothing of HTTP.

pub mod endpoint;
pub mod schedule;
pub mod trouble;

use std::sync::Arc;
use std::time::{Duration, Instant};

use endpoint::{Change, Sign};
use marks::delivery::{Delivery, State};
use marks::journal::{DueDelivery, Journal, JournalError, Verdict};
use marks::time::Timestamp;
use tracing::{error, info, warn};

use crate::drivers::{Failure, Message, Outcome};
use crate::shared::Shared;

/// How long an answer that could not be written down is kept until the next try.
const JOURNAL_PAUSE: Duration = Duration::from_secs(1);

/// One exchange, and what it came to on record; gives what it has changed about the endpoint. The record is tried until it
/// holds: an acknowledgement that is forgotten would be asked for again.
///
/// # Errors
/// A journal that cannot be trusted any more.
pub async fn attempt(shared: Arc<Shared>, due: DueDelivery) -> Result<Option<Change>, JournalError> {
    let route =
        shared.route(&due.delivery.route).expect("only deliveries on configured routes are looked for");
    let message = Message { id: &due.mark.id, body: &due.delivery.body };
    let outcome = route.driver.deliver(message).await;
    // Before the record: whoever sees that has to find the endpoint as it is.
    let change = note(&shared, &due, &outcome);
    let verdict = judge(&shared, &due, &outcome);
    let mut said = false;
    loop {
        let (mark, name, kept) = (due.mark.id, due.delivery.route.clone(), verdict.clone());
        let write = move |journal: &mut Journal| journal.finish_attempt(mark, &name, &kept, Timestamp::now());
        match shared.store.run(write).await {
            Ok(_settled) => return Ok(change),
            Err(error) if error.may_pass() => {
                if !said {
                    error!(mark = %due.mark.id, kind = error.kind(), "the answer about {} could not be written down and is kept in memory: {error}", due.mark.node);
                }
                said = true;
                tokio::time::sleep(JOURNAL_PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// What an exchange says of its endpoint.
fn note(shared: &Shared, due: &DueDelivery, outcome: &Outcome) -> Option<Change> {
    let wish = outcome.failure().and_then(|failure| failure.after);
    let sign = match outcome {
        Outcome::Acknowledged { .. } => Sign::Takes,
        Outcome::Unreachable(_) => Sign::Unreachable,
        Outcome::Retry(_) if wish.is_some() => Sign::Throttles,
        Outcome::Retry(_) | Outcome::Unknown(_) => Sign::Busy,
        Outcome::Refused(_) => Sign::Refuses,
        Outcome::Rejected(_) => Sign::Rejects(due.mark.node.clone()),
    };
    let mut endpoints = shared.endpoints();
    endpoints.get_mut(&due.delivery.route)?.end(&sign, wish, Instant::now(), fastrand::f64())
}

/// Turns a driver's outcome into what is written down, and says what is news.
fn judge(shared: &Shared, due: &DueDelivery, outcome: &Outcome) -> Verdict {
    let (state, ambiguous, failure) = match outcome {
        Outcome::Acknowledged { reference } => return accepted(shared, due, reference.clone()),
        Outcome::Retry(failure) | Outcome::Unreachable(failure) => (State::Pending, false, failure),
        Outcome::Unknown(failure) => (State::Pending, true, failure),
        Outcome::Refused(failure) | Outcome::Rejected(failure) => (State::Parked, false, failure),
    };
    report_failure(shared, due, failure);
    let wait = wait(&due.delivery, outcome, fastrand::f64());
    let (kind, detail) = (failure.kind.to_owned(), failure.detail.clone());
    Verdict::Again { state, ambiguous, kind, detail, next_due: Timestamp::now() + wait }
}

/// How long this mark stays back on this route. An endpoint that is down or refuses is left alone as a whole: that is no
/// mark's fault. One that answered badly may have something against this one, and the next probe is another.
fn wait(delivery: &Delivery, outcome: &Outcome, random: f64) -> Duration {
    match outcome {
        Outcome::Acknowledged { .. } | Outcome::Unreachable(_) | Outcome::Refused(_) => Duration::ZERO,
        Outcome::Retry(failure) | Outcome::Unknown(failure) => {
            schedule::wait(delivery.attempts, random, failure.after)
        }
        Outcome::Rejected(failure) => {
            let last = delivery.last.as_ref().filter(|last| last.kind == failure.kind);
            let before = last.map(|last| delivery.next_due.since(last.at));
            schedule::slow(before.unwrap_or_default(), random)
        }
    }
}

fn accepted(shared: &Shared, due: &DueDelivery, reference: Option<String>) -> Verdict {
    let (mark, route) = (&due.mark, &due.delivery.route);
    if shared.troubles().accepted(route) {
        info!("route {route} accepts again");
    }
    let attempts = due.delivery.attempts;
    info!(mark = %mark.id, attempts, "{} is acknowledged by route {route}", mark.node);
    Verdict::Acknowledged { reference, detail: format!("{route} acknowledged it at attempt {attempts}") }
}

fn report_failure(shared: &Shared, due: &DueDelivery, failure: &Failure) {
    let (mark, route) = (&due.mark, &due.delivery.route);
    let news = shared.troubles().failed(route, failure.kind, &failure.detail, Timestamp::now());
    if news {
        warn!(mark = %mark.id, kind = failure.kind, "{} is not accepted by route {route} and is tried again: {}", mark.node, failure.detail);
    }
}
