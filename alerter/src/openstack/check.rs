//! What can be asked of every cloud without asking its services: a token, and where a service is.

use tokio::time::Instant;

use super::{Service, Session};
use crate::drivers::Finding;

/// What keeps marks from the service; the service itself is asked nothing.
pub(crate) async fn reach(session: &Session, service: &Service) -> Vec<Finding> {
    let end = Instant::now() + session.limit();
    match session.reach(service, end).await {
        Ok(()) => Vec::new(),
        Err(trouble) => Finding::of(&trouble.outcome()).into_iter().collect(),
    }
}
