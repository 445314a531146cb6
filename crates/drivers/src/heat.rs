//! The `heat` driver: resources of stacks that lived on a failed host are marked unhealthy.

mod answer;
mod body;
mod found;
mod keys;
mod lookup;
mod round;

use std::sync::Arc;

use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::Mark;
use marks::terms::{IfReturned, Terms};
use marks::time::Timestamp;
use site::Section;
use tokio::time::Instant;

use crate::driver::{Check, Driver, Failure, Finding, Kind, Message, Named, Outcome, Step, returns, usable};
use crate::kept::Unusable;
pub use crate::openstack::ByHost;
use crate::openstack::{self, ORCHESTRATION, Session, of_session};
pub use crate::which::{HostNames, WhichName};
use body::Stored;
pub use keys::{Options, Resource, Stack};
use round::Round;

/// The driver in the registry.
pub const KIND: Kind = Kind { word: "heat", configure };

/// One `heat` route.
pub struct Heat {
    session: Session,
    options: Options,
}

impl Heat {
    /// Reads the cloud's files and makes its client.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn new(options: Options) -> Result<Self, Unusable> {
        let session = Session::new(options.cloud.clone())?.mainly(ORCHESTRATION);
        Ok(Self { session, options })
    }

    async fn exchange(&self, message: Message<'_>) -> Outcome {
        let end = Instant::now() + self.session.limit();
        let Some(stored) = Stored::read(message.body, message.step) else {
            return Outcome::Rejected(Failure::of_others());
        };
        Round::new(&self.session, &self.options, &stored, end).outcome().await
    }
}

impl Driver for Heat {
    of_session!("Heat");

    fn name_there(&self, host: &Named) -> Option<(HostName, String)> {
        self.options.host_name.there(host)
    }

    fn undo(&self, host: &Named) -> Option<String> {
        let node = &host.node;
        Some(format!(
            "the next update of a stack replaces each of its resources that is marked for {node}; if the host is well, run `openstack stack resource mark unhealthy --reset STACK RESOURCE` for each in CHECK_FAILED whose reason begins with {}",
            body::OURS.trim_end()
        ))
    }

    /// Heat would replace a healthy resource, and Nova shows who is on the host now, not when it failed.
    fn terms(&self) -> Terms {
        Terms { if_returned: IfReturned::Hold, ..Terms::default() }
    }

    fn body(&self, mark: &Mark) -> Vec<u8> {
        body::of_mark(mark, &self.options.host_name.of(mark))
    }

    fn further_steps(&self) -> &[Step] {
        returns(self.options.unmark)
    }

    fn return_body(&self, mark: &Mark, _stored: &[u8], _returned: Timestamp) -> Vec<u8> {
        body::of_return(mark, &self.options.host_name.of(mark))
    }

    fn test_body(&self, id: &MarkId, now: Timestamp) -> Vec<u8> {
        body::of_test(id, now)
    }

    /// What a test finds, and each host name that Nova does not know.
    fn check<'a>(&'a self, hosts: &'a [Named]) -> Check<'a> {
        Box::pin(async {
            let mut all = openstack::try_out(self, &self.session, &ORCHESTRATION).await;
            let end = Instant::now() + self.session.limit();
            let is_asked = all.is_empty() && !self.options.stacks.is_empty();
            for host in hosts.iter().filter(|_| is_asked) {
                let name = self.options.host_name.of_host(host);
                let known = openstack::is_known(&self.session, name.as_str(), end).await;
                let finding = known.err().as_ref().and_then(Finding::of);
                all.extend(finding.map(|found| Finding { host: Some(host.node.clone()), ..found }));
            }
            Some(all)
        })
    }
}

/// Reads `[heat.NAME]`.
fn configure(table: &mut Section<'_, '_>) -> Option<Arc<dyn Driver>> {
    let options = keys::read(table)?;
    usable(table, Heat::new(options))
}
