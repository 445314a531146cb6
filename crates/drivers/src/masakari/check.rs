//! What would keep notifications from Masakari, asked without leaving anything there.

use std::collections::BTreeSet;

use tokio::time::Instant;

use super::lookup::{Hosts, Lookup, too_many};
use crate::driver::{Failure, Finding, Named};
use crate::openstack::Session;
use crate::which::HostNames;

/// Masakari's entry of each host, if it shows them, after the outcome of a notification of a host that does not exist.
pub(super) async fn findings(
    mut all: Vec<Finding>,
    session: &Session,
    names: &HostNames,
    hosts: &[Named],
) -> Vec<Finding> {
    // Masakari may show hosts though it takes no notification: one role is not the other.
    if all.iter().any(|finding| finding.why.kind != "forbidden") {
        return all;
    }
    let lookup = Lookup::new(session, Instant::now() + session.limit());
    if let Err(unseen) = lookup.notifications().await {
        all.extend(Finding::of(&unseen.outcome()));
    }
    match lookup.all().await {
        Ok(known) => all.extend(hosts.iter().filter_map(|host| of_host(names, host, hosts, &known))),
        Err(unseen) => all.extend(Finding::of(&unseen.outcome())),
    }
    all
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

    use super::super::lookup::{Host, Segment};
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
        assert_eq!(
            [kind("c1.x"), kind("c4.x"), kind("c7.x")],
            [None, Some("maintenance"), Some("not-shown")]
        );
    }
}
