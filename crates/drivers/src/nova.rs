//! The `nova` driver: the compute service of a failed host is forced down.

mod answer;
mod body;
mod change;
mod seen;
mod service;

use std::sync::Arc;

use marks::host::HostName;
use marks::id::MarkId;
use marks::mark::Mark;
use marks::terms::{IfReturned, Terms};
use marks::time::Timestamp;
use reqwest::Method;
use site::Section;
use tokio::time::Instant;

use crate::driver::{
    Check, Driver, Failure, Finding, Kind, Message, Named, Outcome, Request, Step, returns, usable,
};
use crate::kept::Unusable;
use crate::openstack::{self, Ask, COMPUTE, Session, of_session};
use crate::web::Answer;
use crate::which::HostNames;
use answer::List;
use body::Stored;
use change::Change;
pub use seen::{Seen, Services};
use service::{BINARY, Service, VERSION};

/// The driver in the registry.
pub const KIND: Kind = Kind { word: "nova", configure };

static CHANGE: Request = Request { method: Method::PUT, path: "/os-services/ID" };

/// What a `nova` route is made of.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cloud that Nova belongs to.
    pub cloud: openstack::CloudOptions,
    /// Which of a host's names Nova knows.
    pub host_name: HostNames,
    /// The reason for disabling the service too, as [`reason`] takes it; if unset, it is not disabled.
    pub disabled_reason: Option<String>,
    /// Whether the change is undone when the host is back.
    pub up_when_returned: bool,
}

/// One `nova` route.
pub struct Nova {
    session: Session,
    options: Options,
}

impl Nova {
    /// Reads the cloud's files and makes its client.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn new(options: Options) -> Result<Self, Unusable> {
        Ok(Self { session: Session::new(options.cloud.clone())?, options })
    }

    fn body_of(&self, mark: &Mark, forced_down: bool) -> Vec<u8> {
        body::of_mark(
            mark,
            &self.options.host_name.of(mark),
            forced_down,
            self.options.disabled_reason.as_deref(),
        )
    }

    async fn exchange(&self, message: Message<'_>) -> Outcome {
        let end = Instant::now() + self.session.limit();
        let Some(stored) = Stored::read(message.body) else {
            return Outcome::Rejected(Failure::of_others());
        };
        let list = match seen::services(&self.session, &seen::of_host(&stored.host), end).await {
            Ok(list) => list,
            Err(outcome) => return outcome,
        };
        if stored.is_test() {
            return Outcome::Acknowledged { reference: None };
        }
        match answer::the_one(list.of(&stored.host)) {
            Ok(service) => self.change(&stored, &service, end).await,
            Err(outcome) => outcome,
        }
    }

    fn finding(&self, list: &List, host: &Named, hosts: &[Named]) -> Option<Finding> {
        let name = self.options.host_name.of_host(host);
        let why = match answer::the_one(list.of(name.as_str())).err()?.failure()?.clone() {
            Failure { kind: answer::UNKNOWN_HOST, .. } => {
                let advice = self.options.host_name.advice(host, hosts, &list.hosts());
                Failure::new(answer::UNKNOWN_HOST, &format!("Nova has no nova-compute on {name}: {advice}"))
            }
            why => why,
        };
        Some(Finding { host: Some(host.node.clone()), why })
    }

    async fn change(&self, stored: &Stored, service: &Service, end: Instant) -> Outcome {
        let change = Change::of(stored, service);
        if change.is_nothing() {
            return answer::left(service, &stored.host, &change);
        }
        match self.put(&service.id, &change.bytes(), end).await {
            Ok(answer) => answer::changed(&answer, service, &stored.host, &change),
            Err(outcome) => outcome,
        }
    }

    async fn put(&self, id: &str, body: &[u8], end: Instant) -> Result<Answer, Outcome> {
        let path = format!("/os-services/{id}");
        let ask = Ask::write(&CHANGE, &path, body).in_version(Some(VERSION));
        self.session.send(&COMPUTE, &ask, end).await
    }
}

impl Driver for Nova {
    of_session!("Nova");

    fn name_there(&self, host: &Named) -> Option<(HostName, String)> {
        self.options.host_name.there(host)
    }

    fn undo(&self, host: &Named) -> Option<String> {
        let host = self.options.host_name.of_host(host);
        let disabled = self.options.disabled_reason.as_ref().map(|_| {
            format!(", and if its disabled reason names {}, again with --enable instead of --up", body::WHO)
        });
        Some(format!(
            "Nova may have its nova-compute forced down; if the host is well, run `{}`{}",
            answer::up(host.as_str()),
            disabled.unwrap_or_default()
        ))
    }

    /// Instances of a host that is well could be started a second time.
    fn terms(&self) -> Terms {
        Terms { if_returned: IfReturned::Hold, ..Terms::default() }
    }

    fn body(&self, mark: &Mark) -> Vec<u8> {
        self.body_of(mark, true)
    }

    fn further_steps(&self) -> &[Step] {
        returns(self.options.up_when_returned)
    }

    /// If the route was another one when the host failed, the change is unknown: this acts as if this route had made it.
    fn return_body(&self, mark: &Mark, stored: &[u8], _returned: Timestamp) -> Vec<u8> {
        body::of_return(stored).unwrap_or_else(|| self.body_of(mark, false))
    }

    fn test_body(&self, id: &MarkId, now: Timestamp) -> Vec<u8> {
        body::of_test(id, now)
    }

    /// What would fail, and each host that Nova would not find.
    fn check<'a>(&'a self, hosts: &'a [Named]) -> Check<'a> {
        Box::pin(async {
            let all = openstack::try_out(self, &self.session, &COMPUTE).await;
            if !all.is_empty() || hosts.is_empty() {
                return Some(all);
            }
            let end = Instant::now() + self.session.limit();
            Some(match seen::services(&self.session, &[("binary", BINARY)], end).await {
                Ok(list) => hosts.iter().filter_map(|host| self.finding(&list, host, hosts)).collect(),
                Err(outcome) => Finding::of(&outcome).into_iter().collect(),
            })
        })
    }
}

/// Reads `[nova.NAME]`.
fn configure(table: &mut Section<'_, '_>) -> Option<Arc<dyn Driver>> {
    let cloud = openstack::read_options(table);
    let host_name = HostNames::read(table);
    let disabled_reason = disabled_reason(table);
    let up_when_returned =
        table.choice("when-returned", &[("leave", false), ("up", true)]).unwrap_or_default();
    if up_when_returned && disabled_reason.is_none() && table.is_sound() {
        let why = "must not be \"up\" without disable = true: only the disabled reason shows that this mark forced the host down";
        table.complain("when-returned", why);
    }
    if !table.is_sound() {
        return None;
    }
    usable(table, Nova::new(Options { cloud, host_name, disabled_reason, up_when_returned }))
}

/// `disable`, and `disabled-reason` if there is one.
fn disabled_reason(table: &mut Section<'_, '_>) -> Option<String> {
    let disable = table.flag("disable").unwrap_or(false);
    let key = "disabled-reason";
    let reason = table.text(key, body::reason);
    let why = format!("{key} has no effect by itself: set disable = true, or remove {key}");
    table.complain_if(!disable, key, &why);
    disable.then(|| reason.unwrap_or_else(|| body::REASON.to_owned()))
}
