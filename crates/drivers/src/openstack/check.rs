//! What can be asked of every cloud without telling it anything: for a token, where a service is, what it says to a
//! test, and what it has.

use marks::id::{FencingId, MarkId};
use marks::time::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use super::{Ask, Service, Session, found};
use crate::driver::{Driver, Finding, Message, Outcome, Step};

/// What keeps marks from the service; the service itself is asked nothing.
pub(crate) async fn reach(session: &Session, service: &Service) -> Vec<Finding> {
    let end = Instant::now() + session.limit();
    match session.reach(service, end).await {
        Ok(()) => Vec::new(),
        Err(trouble) => Finding::of(&trouble.outcome()).into_iter().collect(),
    }
}

/// The same, and what the service has against a test message. For drivers whose tests leave nothing there.
pub(crate) async fn try_out(driver: &dyn Driver, session: &Session, service: &Service) -> Vec<Finding> {
    let unreachable = reach(session, service).await;
    if !unreachable.is_empty() {
        return unreachable;
    }
    let id = MarkId::from(FencingId::generate());
    let body = driver.test_body(&id, Timestamp::now());
    let outcome = driver.deliver(Message { step: Step::Failure, id: &id, body: &body, ambiguous: 0 }).await;
    Finding::of(&outcome).into_iter().collect()
}

/// What a service has under a path, by the key in its answer; `None` if it says that there is no such thing.
///
/// # Errors
/// It could not be learnt.
pub(crate) async fn look_up(
    session: &Session,
    service: &Service,
    (path, query): (&str, &[(&str, &str)]),
    key: &str,
    end: Instant,
) -> Result<Option<Value>, Outcome> {
    let answer = session.send(service, &Ask::get(path, query), end).await;
    found(service.who, &answer.map_err(|trouble| trouble.outcome())?, key)
}
