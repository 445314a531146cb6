//! The question for every cloud that leaves nothing there: is there a token, where is the service, and how does it answer a test.

use marks::id::{FencingId, MarkId};
use marks::time::Timestamp;

use super::Session;
use crate::driver::{Driver, Finding, Message, Outcome, Step};

/// What keeps marks from the service, and how it answers a test message. For drivers whose tests leave nothing there.
pub(crate) async fn try_out(driver: &dyn Driver, session: &Session) -> Vec<Finding> {
    let outcome = match session.exchange().reach().await {
        Ok(()) => test(driver).await,
        Err(unreachable) => unreachable,
    };
    Finding::of(&outcome).into_iter().collect()
}

async fn test(driver: &dyn Driver) -> Outcome {
    let id = MarkId::from(FencingId::generate());
    let body = driver.test_body(&id, Timestamp::now());
    let (step, body) = (Step::Failure, body.as_slice());
    driver.deliver(Message { step, id: &id, body, ambiguous: 0, attempts: 1, is_released: false }).await
}
