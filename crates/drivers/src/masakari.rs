//! The `masakari` driver: a notification of a failed compute host.

mod answer;
mod back;
mod body;
mod lookup;
mod row;

pub use crate::which::{HostNames, WhichName};

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use marks::id::MarkId;
use marks::mark::Mark;
use marks::time::Timestamp;
use reqwest::Method;
use site::Section;

use crate::driver::{About, Driver, Failure, Finding, Kind, Message, Outcome, Step, holds, returns, usable};
use crate::kept::Unusable;
use crate::openstack::{self, Exchange, INSTANCE_HA, Own, Route, Session};
use crate::web::Ask;
use crate::which::Named;
use body::Stored;
use lookup::{Hosts, Lookup, too_many};
use row::Unseen;

/// The driver in the registry.
pub const KIND: Kind = Kind { word: "masakari", configure };

/// How an operator undoes what Masakari does.
const UNDO: &str = "Masakari may evacuate the host (see `openstack notification list`), disables its nova-compute and sets maintenance; if the host is well, run `openstack compute service set --enable {host} nova-compute` and `openstack segment host update --on_maintenance False SEGMENT {host}`";

/// Masakari would disable and evacuate a host that is well. It fails a notification that is older
/// (`notifications_expired_interval`).
const STALE: Duration = Duration::from_secs(86_400);

/// What a `masakari` route is made of.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cloud that Masakari belongs to.
    pub cloud: openstack::CloudOptions,
    /// Which of a host's names Masakari knows.
    pub host_name: HostNames,
    /// Whether to end the maintenance that Masakari set for the mark's notification, when the host is back.
    pub clear_maintenance: bool,
}

impl Options {
    /// Defaults alone.
    pub fn of(cloud: openstack::CloudOptions) -> Self {
        Self { cloud, host_name: HostNames::default(), clear_maintenance: false }
    }
}

/// One `masakari` route.
pub type Masakari = Route<Options>;

impl Masakari {
    /// Reads the cloud's files and makes its client.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn new(own: Options) -> Result<Self, Unusable> {
        let session = Session::new(own.cloud.clone(), INSTANCE_HA)?;
        let about = About {
            names: Some(own.host_name.clone()),
            undo: Some(UNDO.to_owned()),
            // Its bytes are those of the notification that it concerns.
            steps: returns(own.clear_maintenance),
            terms: holds(Some(STALE)),
            ..session.about(KIND.word)
        };
        Ok(Self { session, about, own })
    }
}

impl Own for Options {
    fn body(&self, mark: &Mark, earlier: &[Timestamp]) -> Vec<u8> {
        body::of_mark(&self.host_name.of(mark), mark.generated_time, earlier)
    }

    fn test_body(&self, _id: &MarkId, now: Timestamp) -> Vec<u8> {
        body::of_test(now)
    }

    /// Masakari's entry of each host, if it shows them, after the outcome of a notification of a host that does not exist.
    async fn findings(&self, tried: Vec<Finding>, exchange: Exchange<'_>, hosts: &[Named]) -> Vec<Finding> {
        // Masakari may show hosts though it takes no notification: one role is not the other.
        if tried.iter().any(|finding| finding.why.kind != "forbidden") {
            return tried;
        }
        let (lookup, names, mut all) = (Lookup(exchange), &self.host_name, tried);
        if let Err(unseen) = lookup.notifications().await {
            all.extend(Finding::of(&unseen.outcome()));
        }
        match lookup.all().await {
            Ok(known) => all.extend(hosts.iter().filter_map(|host| of_host(names, host, hosts, &known))),
            Err(unseen) => all.extend(Finding::of(&unseen.outcome())),
        }
        all
    }

    async fn exchange(&self, exchange: Exchange<'_>, message: Message<'_>) -> Result<Outcome, Outcome> {
        let lookup = Lookup(exchange);
        match (message.step, Stored::read(message.body)) {
            (Step::Failure, stored) => send(lookup, message, stored.as_ref()).await,
            (Step::Return, Some(stored)) => end_maintenance(lookup, &stored).await,
            (Step::Return, None) => Err(Outcome::Rejected(Failure::of_others())),
        }
    }
}

/// In the oldest version: it is the same in all. In doubt Masakari is asked whether it has this very notification.
async fn send(lookup: Lookup<'_>, message: Message<'_>, stored: Option<&Stored>) -> Result<Outcome, Outcome> {
    let answer = lookup.0.send(&Ask::write(&Method::POST, "/notifications", message.body)).await?;
    let doubt = match answer::reply(&answer, stored) {
        Ok(outcome) => return Ok(outcome),
        Err(doubt) => doubt,
    };
    let found = match stored {
        Some(stored) => lookup.find(stored).await,
        None => Ok(None),
    };
    Ok(answer::settle(doubt, found, message.ambiguous > 0))
}

/// The host is back: ends the maintenance that its notification caused.
async fn end_maintenance(lookup: Lookup<'_>, stored: &Stored) -> Result<Outcome, Outcome> {
    let Some(host) = lookup.host(&stored.host).await.map_err(Unseen::outcome)? else {
        let says = format!(
            "host {} is in no segment of Masakari any more: add it again if it belongs there",
            stored.host
        );
        return Ok(Outcome::Rejected(Failure::new("unknown-host", &says)));
    };
    let rows = lookup.since(&host, stored).await.map_err(Unseen::outcome)?;
    if let Some(ended) = back::ended(&host, &rows, stored, Timestamp::now()) {
        return Ok(ended);
    }
    let path = format!("/segments/{}/hosts/{}", host.segment.uuid, host.uuid);
    let answer = lookup.0.send(&Ask::write(&Method::PUT, &path, back::CLEARED)).await?;
    Ok(back::cleared(&answer, &host))
}

/// Reads `[masakari.NAME]`.
fn configure(table: &mut Section<'_, '_>) -> Option<Arc<dyn Driver>> {
    let cloud = openstack::read_options(table);
    let host_name = HostNames::read(table);
    let words = [("leave", false), ("clear-maintenance", true)];
    let clear_maintenance = table.choice("when-returned", &words).unwrap_or(false);
    if !table.is_sound() {
        return None;
    }
    usable(table, Masakari::new(Options { cloud, host_name, clear_maintenance }))
}

fn of_host(names: &HostNames, host: &Named, hosts: &[Named], known: &Hosts) -> Option<Finding> {
    let why = obstacle(names.of_host(host).as_str(), known, |known| names.advice(host, hosts, known))?;
    Some(Finding { host: Some(host.node.clone()), why })
}

/// Why Masakari would recover nothing of this host.
fn obstacle(name: &str, known: &Hosts, advice: impl Fn(&BTreeSet<&str>) -> String) -> Option<Failure> {
    let Some(host) = known.shown.iter().find(|host| host.name == name) else {
        let shown = known.shown.iter().map(|host| host.name.as_str()).collect();
        let says = || format!("no segment of Masakari has a host {name}: {}", advice(&shown));
        let missing = || Failure::new("unknown-host", &says());
        return Some(if known.is_whole { missing() } else { too_many(name) });
    };
    let segment = &host.segment.name;
    if host.segment.enabled == Some(false) {
        let says = format!(
            "its segment {segment} is disabled: Masakari would accept a notification of {name} and ignore it"
        );
        return Some(Failure::new("segment-disabled", &says));
    }
    let says = format!(
        "Masakari has {name} (segment {segment}) on maintenance and would reject its notifications: end that if the host is well"
    );
    host.on_maintenance.then(|| Failure::new("maintenance", &says))
}

#[cfg(test)]
mod tests {
    use marks::host::HostName;

    use super::lookup::{Host, Segment};

    use super::*;

    fn host(name: &str, enabled: Option<bool>, on_maintenance: bool) -> Host {
        let segment = Segment { uuid: "5e9".into(), name: "east".into(), enabled };
        Host { segment, uuid: "b6".into(), name: name.into(), on_maintenance, changed: None }
    }

    /// What is in the way of a host with this full name.
    fn of(name: &str, known: &Hosts) -> Option<Failure> {
        let fqdn = HostName::parse(name).unwrap();
        let host = Named { node: fqdn.without_domain(), fqdn };
        let found = of_host(&HostNames::default(), &host, std::slice::from_ref(&host), known)?;
        assert_eq!(found.host, Some(host.node));
        Some(found.why)
    }

    #[test]
    fn each_obstacle_has_its_sentence() {
        let shown = vec![
            host("c1.x", None, false),
            host("c2.x", Some(true), false),
            host("c3.x", Some(false), true),
            host("c4.x", Some(true), true),
            host("C5.X", Some(true), false),
            host("c6", Some(true), false),
        ];
        let mut known = Hosts { shown, is_whole: true };
        for (name, expected) in [
            ("c1.x", None),
            ("c2.x", None),
            ("c3.x", Some(("segment-disabled", "its segment east is disabled"))),
            ("c4.x", Some(("maintenance", "has c4.x (segment east) on maintenance"))),
            (
                "c5.x",
                Some((
                    "unknown-host",
                    "a host c5.x: if it is C5.X there, set \"c5\" = \"C5.X\" in [host-names]",
                )),
            ),
            ("c6.x", Some(("unknown-host", "a host c6.x: if it is c6 there, set host-name = \"short\""))),
            (
                "c7.x",
                Some(("unknown-host", "a host c7.x: add it there, or set its name there in [host-names]")),
            ),
        ] {
            let got = of(name, &known);
            let got = got.as_ref().map(|why| (why.kind, why.detail.as_str()));
            assert_eq!(got.map(|(kind, _)| kind), expected.map(|(kind, _)| kind), "{name}");
            assert!(got.unwrap_or_default().1.contains(expected.unwrap_or_default().1), "{got:?}");
        }
        known.is_whole = false;
        let kind = |name| of(name, &known).map(|why| why.kind);
        assert_eq!(["c1.x", "c4.x", "c7.x"].map(kind), [None, Some("maintenance"), Some("not-shown")]);
    }
}
