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

use crate::driver::{About, Driver, Failure, Finding, Kind, Message, Outcome, returns, usable};
use crate::kept::Unusable;
pub use crate::openstack::ByHost;
use crate::openstack::{Exchange, ORCHESTRATION, Own, Route, Session};
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
pub type Heat = Route<Options>;

impl Heat {
    /// Reads the cloud's files and makes its client.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn new(own: Options) -> Result<Self, Unusable> {
        let session = Session::new(own.cloud.clone(), ORCHESTRATION)?;
        let about = About {
            names: Some(own.host_name.clone()),
            undo: Some(UNDO.to_owned()),
            steps: returns(own.unmark),
            // Heat would replace a healthy resource, and Nova shows who is on the host now, not when it failed.
            ..session.about(KIND.word)
        };
        Ok(Self { session, about, own })
    }
}

impl Own for Options {
    fn body(&self, mark: &Mark, _earlier: &[Timestamp]) -> Vec<u8> {
        body::of_mark(mark, &self.host_name.of(mark))
    }

    fn return_body(&self, mark: &Mark, _stored: &[u8]) -> Vec<u8> {
        body::of_return(mark, &self.host_name.of(mark))
    }

    fn test_body(&self, id: &MarkId, now: Timestamp) -> Vec<u8> {
        body::of_test(id, now)
    }

    /// What a test finds, and each host name that Nova does not know.
    async fn findings(&self, tried: Vec<Finding>, exchange: Exchange<'_>, hosts: &[Named]) -> Vec<Finding> {
        let is_asked = tried.is_empty() && !self.stacks.is_empty();
        let mut all = tried;
        for host in hosts.iter().filter(|_| is_asked) {
            let known = exchange.is_known(self.host_name.of_host(host).as_str()).await;
            all.extend(known.err().and_then(|outcome| Finding::of_host(host, &outcome)));
        }
        all
    }

    async fn exchange(&self, exchange: Exchange<'_>, message: Message<'_>) -> Result<Outcome, Outcome> {
        let stored = Stored::read(message.body, message.step);
        let stored = stored.ok_or_else(|| Outcome::Rejected(Failure::of_others()))?;
        Ok(Round::new(exchange, self, &stored).outcome().await)
    }
}

/// Reads `[heat.NAME]`.
fn configure(table: &mut Section<'_, '_>) -> Option<Arc<dyn Driver>> {
    let options = keys::read(table)?;
    usable(table, Heat::new(options))
}
