//! One attempt after the other: the exchange, what it shows about the endpoint, and what is recorded. It knows neither HTTP nor the
//! journal.

pub mod answers;
pub mod endpoint;
pub mod outbox;
pub mod trouble;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use answers::Answer;
use drivers::{Failure, Message, Outcome, Peer, Step};
use endpoint::Sign;
use journal::{DueDelivery, Ended, NewDelivery, Verdict};
use marks::delivery::{ACCEPTED, Delivery, State};
use marks::mark::Mark;
use marks::time::Timestamp;
use tokio::sync::mpsc::UnboundedSender;
use tracing::{error, info, warn};

use crate::base::Base;
use crate::config::Route;
use crate::lock::lock;
use crate::moment::Moment;
use crate::words::release_of_held;

use outbox::Outbox;
use trouble::{News, Troubles};

/// What the daemon remembers of its routes.
#[derive(Debug, Default)]
pub struct RouteStates {
    outboxes: Mutex<HashMap<String, Outbox>>,
    troubles: Mutex<Troubles>,
    stranded: Mutex<BTreeMap<String, usize>>,
}

impl RouteStates {
    /// The routes' outboxes by name; empty until the engine knows what a former daemon left.
    pub fn outboxes(&self) -> MutexGuard<'_, HashMap<String, Outbox>> {
        lock(&self.outboxes)
    }

    /// The routes in trouble.
    pub fn troubles(&self) -> MutexGuard<'_, Troubles> {
        lock(&self.troubles)
    }

    /// Whose endpoints get a bare connection now. Where nothing waits any more, the next mark asks.
    pub fn knocks(&self, now: Instant) -> Vec<(String, Peer)> {
        let (mut outboxes, troubles) = (self.outboxes(), self.troubles());
        let knock = |(route, outbox): (&String, &mut Outbox)| {
            let peer = outbox.endpoint.knock(now)?;
            if troubles.of(route).is_some() {
                return Some((route.clone(), peer));
            }
            outbox.endpoint.probe(now);
            None
        };
        outboxes.iter_mut().filter_map(knock).collect()
    }

    /// Routes that are not configured any more, each with how many marks wait for it.
    pub fn stranded(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        lock(&self.stranded)
    }
}

/// What an attempt goes by.
#[derive(Clone)]
pub struct Sending {
    /// The configuration in force.
    pub base: Arc<Base>,
    /// What is known of the routes.
    pub routes: Arc<RouteStates>,
}

/// Makes attempts on a route, one after the other, for as long as its outbox has one that may go and the route has this driver.
pub async fn serve(
    sending: Sending,
    route: Arc<Route>,
    first: DueDelivery,
    answers: UnboundedSender<Answer>,
) {
    let mut next = Some(first);
    while let Some(due) = next {
        if answers.send(attempt(&sending, &route, &due).await).is_err() {
            return;
        }
        // If the route has changed, its new outbox sends the next one.
        let outboxes = is_current(&sending, &route).then(|| sending.routes.outboxes());
        next = outboxes.and_then(|mut outboxes| outboxes.get_mut(route.name.as_str())?.next(Moment::now()));
    }
}

/// Whether the configuration has the same driver for this route still.
fn is_current(sending: &Sending, route: &Route) -> bool {
    sending.base.route(route.name.as_str()).is_some_and(|current| Arc::ptr_eq(&current.driver, &route.driver))
}

/// One exchange, and what it came to.
async fn attempt(sending: &Sending, route: &Route, due: &DueDelivery) -> Answer {
    let begun = Instant::now();
    let Delivery { body, ambiguous, attempts, released_at, .. } = &due.delivery;
    let outcome = route
        .driver
        .deliver(Message {
            step: route.step,
            id: &due.mark.id,
            body,
            ambiguous: *ambiguous,
            attempts: *attempts,
            is_released: released_at.is_some(),
        })
        .await;
    let is_current = is_current(sending, route);
    let outcome = if is_current { of_this_host(sending, due, outcome) } else { outcome };
    // Before the record, so that the endpoint's state is never older than the record. The answer of an endpoint that is not
    // configured any more shows nothing about the new one.
    if is_current {
        note(sending, due, &outcome, begun.elapsed());
    }
    let at = Timestamp::now();
    let verdict = match judge(sending, due, &outcome, at) {
        verdict if is_current => verdict,
        verdict => outdated(verdict),
    };
    let ended = Ended { mark: due.mark.id, route: due.delivery.route.clone(), verdict, at };
    Answer { ended, outcome: outcome.as_str() }
}

/// Asks a route's endpoint, which is away, by a bare connection. That is no attempt: no mark goes with it.
pub async fn knock(sending: Sending, route: String, peer: Peer) {
    let began = Instant::now();
    let connects = peer.connects().await;
    if let Some(outbox) = sending.routes.outboxes().get_mut(&route) {
        outbox.knocked(began, connects, Instant::now());
    }
}

/// A refusal of one host is a rejection if the endpoint accepts the marks of others.
pub fn of_this_host(sending: &Sending, due: &DueDelivery, outcome: Outcome) -> Outcome {
    let is_alone = || {
        let outboxes = sending.routes.outboxes();
        outboxes.get(&due.delivery.route).is_some_and(|outbox| outbox.endpoint.refuses_only(&due.mark.node))
    };
    match outcome {
        Outcome::Refused(failure) if is_alone() => {
            let detail = format!("it rejects this host but accepts others: {}", failure.detail);
            Outcome::Rejected(Failure::new(failure.kind, &detail))
        }
        outcome => outcome,
    }
}

/// A failure under the old configuration may not happen under the new one, so it is tried again at once.
fn outdated(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Unreached { kind, detail, .. } => {
            Verdict::Unreached { state: State::Pending, kind, detail, next_due: Timestamp::now() }
        }
        Verdict::Again { state: State::Pending | State::Parked, ambiguous, kind, detail, .. } => {
            Verdict::Again { state: State::Pending, ambiguous, kind, detail, next_due: Timestamp::now() }
        }
        other => other,
    }
}

/// How long an endpoint asks to be left alone.
fn wish(outcome: &Outcome) -> Option<Duration> {
    match outcome {
        Outcome::Wait(_) | Outcome::Held(_) => None,
        _ => outcome.failure().and_then(|failure| failure.after),
    }
}

/// What an exchange shows about its endpoint.
pub fn sign_of(outcome: &Outcome) -> Sign {
    match outcome {
        // It works, even if it does not accept this mark.
        Outcome::Acknowledged { .. } | Outcome::Accepted { .. } => Sign::Takes,
        Outcome::Held(_) | Outcome::Wait(_) => Sign::Takes,
        Outcome::Rejected(_) => Sign::Rejects,
        Outcome::Unreachable(failure) => failure.peer.clone().map_or(Sign::Unreachable, Sign::Away),
        Outcome::Retry(_) if wish(outcome).is_some() => Sign::Throttles,
        Outcome::Retry(_) | Outcome::Unknown(_) => Sign::Busy,
        Outcome::Refused(_) => Sign::Refuses,
    }
}

fn note(sending: &Sending, due: &DueDelivery, outcome: &Outcome, took: Duration) {
    let mut outboxes = sending.routes.outboxes();
    if let Some(outbox) = outboxes.get_mut(&due.delivery.route) {
        outbox.ended(due.mark.id);
        outbox.endpoint.took(took);
        let (sign, wish) = (sign_of(outcome), wish(outcome));
        outbox.endpoint.end(&due.mark.node, &sign, wish, Instant::now(), fastrand::f64());
    }
}

/// Turns a driver's outcome into the verdict for the journal, and logs what is new.
fn judge(sending: &Sending, due: &DueDelivery, outcome: &Outcome, at: Timestamp) -> Verdict {
    let (state, ambiguous, failure) = match outcome {
        Outcome::Acknowledged { reference } => return accepted(sending, due, reference.clone()),
        Outcome::Accepted { within } => return confirmed_later(sending, due, *within),
        Outcome::Retry(failure) | Outcome::Unreachable(failure) => (State::Pending, false, failure),
        Outcome::Unknown(failure) => (State::Pending, true, failure),
        Outcome::Refused(failure) | Outcome::Rejected(failure) => (State::Parked, false, failure),
        Outcome::Held(failure) => (State::Held, false, failure),
        Outcome::Wait(failure) => (State::Pending, false, failure),
    };
    match outcome {
        Outcome::Held(_) => report_hold(sending, due, failure),
        Outcome::Wait(_) => drop(sending.routes.troubles().accepted(&due.delivery.route)),
        Outcome::Rejected(_) => report_rejection(sending, due, failure),
        _ => report_failure(sending, due, outcome, failure, at),
    }
    let wait = wait(&due.delivery, outcome, fastrand::f64());
    let (kind, detail, next_due) = (failure.kind.to_owned(), failure.detail.clone(), at + wait);
    match outcome {
        Outcome::Unreachable(_) => Verdict::Unreached { state, kind, detail, next_due },
        _ if failure.is_unsent => Verdict::Unreached { state, kind, detail, next_due },
        _ => Verdict::Again { state, ambiguous, kind, detail, next_due },
    }
}

/// How long this mark waits on this route. An endpoint that is down or refuses is left alone as a whole. If it answered badly, the
/// mark may be the reason: it waits by itself, and the next probe is another mark.
fn wait(delivery: &Delivery, outcome: &Outcome, random: f64) -> Duration {
    match outcome {
        Outcome::Acknowledged { .. } | Outcome::Unreachable(_) | Outcome::Refused(_) => Duration::ZERO,
        Outcome::Held(failure) => failure.after.unwrap_or_default(),
        Outcome::Accepted { within } => *within,
        Outcome::Retry(failure) | Outcome::Unknown(failure) => {
            endpoint::wait(delivery.attempts, random, failure.after)
        }
        Outcome::Wait(failure) => failure.after.unwrap_or(endpoint::POLL),
        Outcome::Rejected(failure) => {
            let last = delivery.last.as_ref().filter(|last| last.kind == failure.kind);
            let before = last.map(|last| delivery.next_due.since(last.at));
            endpoint::slow(before.unwrap_or_default(), random)
        }
    }
}

fn accepted(sending: &Sending, due: &DueDelivery, reference: Option<String>) -> Verdict {
    let (mark, route) = (&due.mark, &due.delivery.route);
    if sending.routes.troubles().accepted(route) {
        info!(%route, "route {route} accepts again");
    }
    let attempts = due.delivery.attempts;
    info!(mark = %mark.id, host = %mark.node, %route, attempts, "{} is acknowledged by route {route}", mark.node);
    let detail = format!("{route} acknowledged it at attempt {attempts}");
    Verdict::Acknowledged { reference, detail }
}

/// The receiver has the message and confirms the mark later. Without a confirmation it is notified again.
fn confirmed_later(sending: &Sending, due: &DueDelivery, within: Duration) -> Verdict {
    let (mark, route) = (&due.mark, &due.delivery.route);
    if sending.routes.troubles().accepted(route) {
        info!(%route, "route {route} accepts again");
    }
    let (attempts, seconds) = (due.delivery.attempts, within.as_secs());
    info!(mark = %mark.id, host = %mark.node, %route, attempts, "{} is accepted by route {route}, which has to confirm it within {seconds} s", mark.node);
    Verdict::Again {
        state: State::Pending,
        ambiguous: false,
        kind: ACCEPTED.to_owned(),
        detail: format!("{route} accepted it at attempt {attempts} and has to confirm it within {seconds} s"),
        next_due: Timestamp::now() + within,
    }
}

/// The delivery of a return, which keeps no mark open. `sent`: the body of the failure on this route.
pub fn return_of(route: &Route, mark: &Mark, sent: &[u8], returned: Timestamp) -> NewDelivery {
    let body = route.driver.return_body(mark, sent, returned);
    let name = route.name.of_step(Step::Return);
    NewDelivery { route: name.as_str().to_owned(), body, required: false, link: None }
}

/// Logs a delivery that a route's terms hold or end.
pub fn report_kept(due: &DueDelivery) {
    let (mark, route) = (&due.mark, &due.delivery.route);
    let last = due.delivery.last.as_ref();
    let (kind, detail) = last.map_or(("kept", ""), |last| (last.kind.as_str(), last.detail.as_str()));
    match due.delivery.state {
        State::Held if due.delivery.is_return() => {
            error!(mark = %mark.id, host = %mark.node, %route, kind, "the return of {} is held on route {route}: {detail}; then run `nova-host-alerter unmark {} --reason TEXT`", mark.node, mark.id);
        }
        State::Held => {
            let release = release_of_held(&mark.id.to_string(), kind);
            error!(mark = %mark.id, host = %mark.node, %route, kind, "{} is held on route {route}: {detail}; to send it anyway, run `{release}`; to end it, run `nova-host-alerter unmark {} --reason TEXT`", mark.node, mark.id);
        }
        _ => {
            warn!(mark = %mark.id, host = %mark.node, %route, kind, "the mark of {} is not sent to route {route}: {detail}", mark.node);
        }
    }
}

/// The route works: this mark alone is logged, once.
fn report_hold(sending: &Sending, due: &DueDelivery, failure: &Failure) {
    let (mark, route) = (&due.mark, &due.delivery.route);
    sending.routes.troubles().accepted(route);
    let again = match failure.after {
        Some(_) => format!(
            "waits for that to end; to send it anyway, run `nova-host-alerter release {} --reason TEXT`",
            mark.id
        ),
        None => "is not retried by itself".to_owned(),
    };
    if due.delivery.last.as_ref().is_none_or(|last| last.kind != failure.kind) {
        error!(mark = %mark.id, host = %mark.node, %route, kind = failure.kind, "the mark of {} is held on route {route} and {again}: {}", mark.node, failure.detail);
    }
}

/// The route works, since it answers: it only rejects this host's mark.
fn report_rejection(sending: &Sending, due: &DueDelivery, failure: &Failure) {
    let (mark, route) = (&due.mark, &due.delivery.route);
    let news = sending.routes.troubles().rejected(route, &mark.node);
    if news || due.delivery.last.as_ref().is_none_or(|last| last.kind != failure.kind) {
        warn!(mark = %mark.id, host = %mark.node, %route, kind = failure.kind, "the mark of {} is rejected by route {route} and is retried at long intervals; other hosts are not affected: {}; when the cause is fixed, run `nova-host-alerter retry {}`", mark.node, failure.detail, mark.node);
    }
}

/// An endpoint that refuses waits for a person from the first time on.
fn report_failure(sending: &Sending, due: &DueDelivery, outcome: &Outcome, failure: &Failure, at: Timestamp) {
    let (mark, route) = (&due.mark, &due.delivery.route);
    let usually = match outcome {
        Outcome::Refused(_) => Duration::ZERO,
        _ => sending.base.route(route).map(|route| route.driver.about().usually_away).unwrap_or_default(),
    };
    let said = (failure.kind, failure.detail.as_str());
    match sending.routes.troubles().failed(route, said, usually, at) {
        Some(News::Usual) => {
            info!(mark = %mark.id, host = %mark.node, %route, kind = failure.kind, "the mark of {} is not accepted yet by route {route} and is retried: {}", mark.node, failure.detail);
        }
        Some(News::Trouble) => {
            warn!(mark = %mark.id, host = %mark.node, %route, kind = failure.kind, "the mark of {} is not accepted by route {route} and is retried: {}", mark.node, failure.detail);
        }
        None => {}
    }
}
