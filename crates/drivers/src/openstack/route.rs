//! A route to a service of OpenStack, as the drivers of all of them have it.

use marks::id::{FencingId, MarkId};
use marks::mark::Mark;
use marks::time::Timestamp;

use super::session::{Exchange, Session};
use crate::driver::{self, About, Beside, Check, Driver, Finding, Message, Outcome, Step, ends};
use crate::which::Named;

/// One route: the cloud, and what its driver adds.
pub struct Route<O> {
    pub(crate) session: Session,
    pub(crate) about: About,
    pub(crate) own: O,
}

/// What the driver of one service adds. Its methods are those of [`Driver`].
pub(crate) trait Own: Send + Sync {
    fn body(&self, mark: &Mark, earlier: &[Timestamp]) -> Vec<u8>;

    fn return_body(&self, mark: &Mark, sent: &[u8]) -> Vec<u8> {
        let _the_sent_bytes_serve = mark;
        sent.to_vec()
    }

    /// A test leaves nothing there.
    fn test_body(&self, id: &MarkId, now: Timestamp) -> Vec<u8>;

    /// What keeps marks of these hosts from the service, after what a test has found.
    fn findings(
        &self,
        tried: Vec<Finding>,
        exchange: Exchange<'_>,
        hosts: &[Named],
    ) -> impl Future<Output = Vec<Finding>> + Send {
        let _nothing_more = (exchange, hosts);
        async { tried }
    }

    fn exchange(
        &self,
        exchange: Exchange<'_>,
        message: Message<'_>,
    ) -> impl Future<Output = Result<Outcome, Outcome>> + Send;
}

/// What keeps marks of these hosts from the service.
async fn findings(route: &Route<impl Own>, hosts: &[Named]) -> Vec<Finding> {
    let outcome = match route.session.exchange().reach().await {
        Ok(()) => test(route).await,
        Err(unreachable) => unreachable,
    };
    let tried = Finding::of(&outcome).into_iter().collect();
    route.own.findings(tried, route.session.exchange(), hosts).await
}

async fn test(route: &dyn Driver) -> Outcome {
    let id = MarkId::from(FencingId::generate());
    let body = route.test_body(&id, Timestamp::now());
    let (step, body) = (Step::Failure, body.as_slice());
    route.deliver(Message { step, id: &id, body, ambiguous: 0, attempts: 1, is_released: false }).await
}

impl<O: Own> Driver for Route<O> {
    fn about(&self) -> &About {
        &self.about
    }

    fn target(&self) -> String {
        self.session.target()
    }

    fn body(&self, mark: &Mark) -> Vec<u8> {
        self.own.body(mark, &[])
    }

    fn body_with(&self, mark: &Mark, beside: &Beside<'_>) -> Vec<u8> {
        self.own.body(mark, beside.earlier)
    }

    fn return_body(&self, mark: &Mark, sent: &[u8], _returned: Timestamp) -> Vec<u8> {
        self.own.return_body(mark, sent)
    }

    fn test_body(&self, id: &MarkId, now: Timestamp) -> Vec<u8> {
        self.own.test_body(id, now)
    }

    fn check<'a>(&'a self, hosts: &'a [Named]) -> Check<'a> {
        Box::pin(async { Some(findings(self, hosts).await) })
    }

    fn deliver<'a>(&'a self, message: Message<'a>) -> driver::Exchange<'a> {
        ends(async move { self.own.exchange(self.session.exchange(), message).await })
    }
}
