//! Questions for every cloud that leave nothing there: is there a token, where is the service, how does it answer a test,
//! and what does it have.

use marks::id::{FencingId, MarkId};
use marks::time::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use super::{Ask, Service, Session, found};
use crate::driver::{Driver, Finding, Message, Outcome, Step};

/// What keeps marks from the service; the service itself is not asked.
async fn reach(session: &Session, service: &Service) -> Vec<Finding> {
    let end = Instant::now() + session.limit();
    match session.reach(service, end).await {
        Ok(()) => Vec::new(),
        Err(trouble) => Finding::of(&trouble.outcome()).into_iter().collect(),
    }
}

/// The same, and how the service answers a test message. For drivers whose tests leave nothing there.
pub(crate) async fn try_out(driver: &dyn Driver, session: &Session, service: &Service) -> Vec<Finding> {
    let unreachable = reach(session, service).await;
    if !unreachable.is_empty() {
        return unreachable;
    }
    let id = MarkId::from(FencingId::generate());
    let body = driver.test_body(&id, Timestamp::now());
    let outcome = driver
        .deliver(Message {
            step: Step::Failure,
            id: &id,
            body: &body,
            ambiguous: 0,
            attempts: 1,
            is_released: false,
        })
        .await;
    Finding::of(&outcome).into_iter().collect()
}

/// What a service has under a path, by the key in its answer; `None` if the service says that it does not exist.
///
/// # Errors
/// The answer is unknown.
pub(crate) async fn ask_for(
    session: &Session,
    service: &Service,
    (path, query): (&str, &[(&str, &str)]),
    key: &str,
    end: Instant,
) -> Result<Option<Value>, Outcome> {
    let answer = session.send(service, &Ask::get(path, query), end).await;
    found(service.who, &answer?, key)
}
