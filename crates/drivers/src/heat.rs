//! The `heat` driver: resources of stacks that lived on a failed host are marked unhealthy.

mod answer;
mod body;
mod found;
mod keys;
mod lookup;
mod round;

use std::sync::Arc;

use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;
use site::Section;

use crate::driver::{
    About, Check, Driver, Exchange, Failure, Finding, Kind, Message, Outcome, ends, returns, usable,
};
use crate::kept::Unusable;
pub use crate::openstack::ByHost;
use crate::openstack::{self, ORCHESTRATION, Session};
use crate::which::Named;
pub use crate::which::{HostNames, WhichName};
use body::Stored;
pub use keys::{Options, Resource, Stack};
use round::Round;

/// The driver in the registry.
pub const KIND: Kind = Kind { word: "heat", configure };

/// How an operator undoes what the driver does.
const UNDO: &str = "the next update of a stack replaces each of its resources that is marked for {node}; if the host is well, run `openstack stack resource mark unhealthy --reset STACK RESOURCE` for each in CHECK_FAILED whose reason begins with nova-host-alerter, mark";

/// One `heat` route.
pub struct Heat {
    session: Session,
    options: Options,
    about: About,
}

impl Heat {
    /// Reads the cloud's files and makes its client.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn new(options: Options) -> Result<Self, Unusable> {
        let session = Session::new(options.cloud.clone(), ORCHESTRATION)?;
        let about = About {
            names: Some(options.host_name.clone()),
            undo: Some(UNDO.to_owned()),
            steps: returns(options.unmark),
            // Heat would replace a healthy resource, and Nova shows who is on the host now, not when it failed.
            ..session.about(KIND.word)
        };
        Ok(Self { session, options, about })
    }

    async fn exchange(&self, message: Message<'_>) -> Result<Outcome, Outcome> {
        let stored = Stored::read(message.body, message.step);
        let stored = stored.ok_or_else(|| Outcome::Rejected(Failure::of_others()))?;
        Ok(Round::new(self.session.exchange(), &self.options, &stored).outcome().await)
    }

    /// What a test finds, and each host name that Nova does not know.
    async fn findings(&self, hosts: &[Named]) -> Vec<Finding> {
        let mut all = openstack::try_out(self, &self.session).await;
        let exchange = self.session.exchange();
        let is_asked = all.is_empty() && !self.options.stacks.is_empty();
        for host in hosts.iter().filter(|_| is_asked) {
            let known = exchange.is_known(self.options.host_name.of_host(host).as_str()).await;
            all.extend(known.err().and_then(|outcome| Finding::of_host(host, &outcome)));
        }
        all
    }
}

impl Driver for Heat {
    fn about(&self) -> &About {
        &self.about
    }

    fn target(&self) -> String {
        self.session.target()
    }

    fn body(&self, mark: &Mark) -> Vec<u8> {
        body::of_mark(mark, &self.options.host_name.of(mark))
    }

    fn return_body(&self, mark: &Mark, _stored: &[u8], _returned: Timestamp) -> Vec<u8> {
        body::of_return(mark, &self.options.host_name.of(mark))
    }

    fn test_body(&self, id: &MarkId, now: Timestamp) -> Vec<u8> {
        body::of_test(id, now)
    }

    fn check<'a>(&'a self, hosts: &'a [Named]) -> Check<'a> {
        Box::pin(async { Some(self.findings(hosts).await) })
    }

    fn deliver<'a>(&'a self, message: Message<'a>) -> Exchange<'a> {
        ends(self.exchange(message))
    }
}

/// Reads `[heat.NAME]`.
fn configure(table: &mut Section<'_, '_>) -> Option<Arc<dyn Driver>> {
    let options = keys::read(table)?;
    usable(table, Heat::new(options))
}
