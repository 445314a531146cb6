//! The `nova` driver: the compute service of a failed host is forced down.

mod answer;
mod body;
mod change;
mod seen;
mod service;

use std::sync::Arc;

use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;
use reqwest::Method;
use site::Section;

use crate::driver::{About, Driver, Failure, Finding, Kind, Message, Outcome, returns, usable};
use crate::event::bytes;
use crate::kept::Unusable;
use crate::openstack::{self, COMPUTE, Exchange, Own, Route, Session};
use crate::web::Ask;
use crate::which::{HostNames, Named};
use answer::List;
use body::Stored;
use change::Change;
pub use seen::{Seen, Services};
use service::{BINARY, VERSION};

/// The driver in the registry.
pub const KIND: Kind = Kind { word: "nova", configure };

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
pub type Nova = Route<Options>;

impl Nova {
    /// Reads the cloud's files and makes its client.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn new(own: Options) -> Result<Self, Unusable> {
        let session = Session::new(own.cloud.clone(), COMPUTE)?;
        let about = About {
            names: Some(own.host_name.clone()),
            undo: Some(undo(own.disabled_reason.is_some())),
            steps: returns(own.up_when_returned),
            // Instances of a host that is well could be started a second time.
            ..session.about(KIND.word)
        };
        Ok(Self { session, about, own })
    }
}

impl Options {
    fn body_of(&self, mark: &Mark, forced_down: bool) -> Vec<u8> {
        body::of_mark(mark, &self.host_name.of(mark), forced_down, self.disabled_reason.as_deref())
    }

    fn finding(&self, list: &List, host: &Named, hosts: &[Named]) -> Option<Finding> {
        let name = self.host_name.of_host(host);
        let outcome = answer::the_one(list.of(name.as_str())).err()?;
        let outcome = outcome.map(|why| match why.kind {
            answer::UNKNOWN_HOST => {
                let advice = self.host_name.advice(host, hosts, &list.hosts());
                Failure::new(answer::UNKNOWN_HOST, &format!("Nova has no nova-compute on {name}: {advice}"))
            }
            _ => why,
        });
        Finding::of_host(host, &outcome)
    }
}

impl Own for Options {
    fn body(&self, mark: &Mark, _earlier: &[Timestamp]) -> Vec<u8> {
        self.body_of(mark, true)
    }

    /// If the route was another one when the host failed, the change is unknown: this acts as if this route had made it.
    fn return_body(&self, mark: &Mark, stored: &[u8]) -> Vec<u8> {
        body::of_return(stored).unwrap_or_else(|| self.body_of(mark, false))
    }

    fn test_body(&self, id: &MarkId, now: Timestamp) -> Vec<u8> {
        body::of_test(id, now)
    }

    /// What would fail, and each host that Nova would not find.
    async fn findings(&self, tried: Vec<Finding>, exchange: Exchange<'_>, hosts: &[Named]) -> Vec<Finding> {
        if !tried.is_empty() || hosts.is_empty() {
            return tried;
        }
        match seen::services(exchange, &[("binary", BINARY)]).await {
            Ok(list) => hosts.iter().filter_map(|host| self.finding(&list, host, hosts)).collect(),
            Err(outcome) => Finding::of(&outcome).into_iter().collect(),
        }
    }

    async fn exchange(&self, exchange: Exchange<'_>, message: Message<'_>) -> Result<Outcome, Outcome> {
        let stored = Stored::read(message.body).ok_or_else(|| Outcome::Rejected(Failure::of_others()))?;
        let list = seen::services(exchange, &seen::of_host(&stored.host)).await?;
        if stored.is_test() {
            return Ok(Outcome::Acknowledged { reference: None });
        }
        let service = answer::the_one(list.of(&stored.host))?;
        let change = Change::of(&stored, &service);
        if change.is_nothing() {
            return Ok(answer::left(&service, &stored.host, &change));
        }
        let (path, body) = (format!("/os-services/{}", service.id), bytes(&change));
        let ask = Ask::write(&Method::PUT, &path, &body).in_version(Some(VERSION));
        Ok(answer::changed(&exchange.send(&ask).await?, &service, &stored.host, &change))
    }
}

/// How an operator undoes what the driver does.
fn undo(disables: bool) -> String {
    let up = answer::up("{host}");
    let undo = format!("Nova may have its nova-compute forced down; if the host is well, run `{up}`");
    let disabled =
        format!(", and if its disabled reason names {}, again with --enable instead of --up", body::WHO);
    if disables { undo + &disabled } else { undo }
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
