//! What can be asked of every cloud without telling it anything: for a token, where a service is, and what it says to a test.

use marks::id::{FencingId, MarkId};
use marks::time::Timestamp;
use tokio::time::Instant;

use super::{Service, Session};
use crate::driver::{Driver, Finding, Message, Step};

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
