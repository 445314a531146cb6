//! The `vitrage` driver: one event of OPNFV Doctor about a compute host, for OpenStack's Vitrage.

mod answer;

use std::sync::Arc;

use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;
use reqwest::Method;
use site::Section;
use tokio::time::Instant;

use crate::driver::{Check, Driver, Kind, Message, Named, Outcome, Step, usable};
use crate::event::doctor;
use crate::kept::Unusable;
use crate::openstack::{self, Ask, ROOT_CAUSE_ANALYSIS, Session, of_session};
pub use crate::which::{HostNames, WhichName};
use crate::writes::{Request, What, Write};

/// The driver in the registry.
pub const KIND: Kind = Kind {
    word: "vitrage",
    summary: "an event of OPNFV Doctor for OpenStack's Vitrage",
    configure,
    writes: WRITES,
};

static POST: Request = Request { method: Method::POST, path: "/v1/event" };

static WRITES: &[Write] = &[
    Write {
        what: What::Request(
            &POST,
            "an alarm on the host; a template may have Nova force the host down (`mark_down`)",
        ),
        guard: "none: Vitrage has one alarm for each host",
        undo: "`when-returned = \"up\"`, or an event of the same type with `status: up`",
    },
    Write {
        what: What::Request(&POST, "the alarm ends (`when-returned`)"),
        guard: "the host is a member now; the route leads to the same cloud",
        undo: "not needed: the next mark is another alarm",
    },
];

/// What a `vitrage` route is made of.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cloud that Vitrage belongs to.
    pub cloud: openstack::CloudOptions,
    /// Which of a host's names Vitrage knows: Nova's.
    pub host_name: HostNames,
    /// Whether it is notified that the host is back.
    pub notifies_return: bool,
}

/// One `vitrage` route.
pub struct Vitrage {
    session: Session,
    options: Options,
}

impl Vitrage {
    /// Reads the cloud's files and makes its client.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn new(options: Options) -> Result<Self, Unusable> {
        Ok(Self { session: Session::new(options.cloud.clone())?, options })
    }

    async fn exchange(&self, message: Message<'_>) -> Outcome {
        let end = Instant::now() + self.session.limit();
        let ask = Ask::write(&POST, POST.path, message.body);
        match self.session.send(&ROOT_CAUSE_ANALYSIS, &ask, end).await {
            Ok(answer) => answer::outcome(&answer),
            Err(trouble) => trouble.outcome(),
        }
    }
}

impl Driver for Vitrage {
    of_session!("Vitrage");

    fn name_there(&self, host: &Named) -> Option<(HostName, String)> {
        self.options.host_name.there(host)
    }

    fn undo(&self, host: &Named) -> Option<String> {
        let host = self.options.host_name.of_host(host);
        Some(format!(
            "Vitrage may still have an alarm of {host}; if the host is well, post the event compute.host.down with status up"
        ))
    }

    fn body(&self, mark: &Mark) -> Vec<u8> {
        doctor::one_down(mark, &self.options.host_name.of(mark))
    }

    fn further_steps(&self) -> &[Step] {
        match self.options.notifies_return {
            true => &[Step::Return],
            false => &[],
        }
    }

    fn return_body(&self, mark: &Mark, _stored: &[u8], _returned: Timestamp) -> Vec<u8> {
        doctor::one_up(mark, &self.options.host_name.of(mark))
    }

    fn test_body(&self, id: &MarkId, now: Timestamp) -> Vec<u8> {
        doctor::one_test(id, now)
    }

    fn check<'a>(&'a self, _hosts: &'a [Named]) -> Check<'a> {
        Box::pin(async { Some(openstack::reach(&self.session, &ROOT_CAUSE_ANALYSIS).await) })
    }
}

/// Reads `[vitrage.NAME]`.
fn configure(table: &mut Section<'_, '_>) -> Option<Arc<dyn Driver>> {
    let cloud = openstack::read_options(table);
    let host_name = HostNames::read(table);
    let notifies_return = table.choice("when-returned", &[("leave", false), ("up", true)]).unwrap_or(false);
    if !table.is_sound() {
        return None;
    }
    usable(table, Vitrage::new(Options { cloud, host_name, notifies_return }))
}
