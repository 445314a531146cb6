//! A slip in `[hosts.names]` that gives one node the name of another: the other one is alive, and is never reported.

use marks::fencing::Fencing;
use marks::host::HostName;
use marks::register::Entry;

use crate::nova_config::beside_a_cloud;
use crate::site::{Alerter, ROUTES, Site, mark_of};

const SLIP: &str = r#"{ compute1 = "compute2.example.org" }"#;
const CORRECTED: &str = r#"{ compute1 = "compute1.example.org" }"#;

/// The source from which an alerter knows that the host was fenced.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KnownFrom {
    Agent,
    AgentElsewhere,
    AlerterElsewhere,
    Pacemaker,
}

pub(crate) const KNOWN_FROM: [KnownFrom; 4] =
    [KnownFrom::Agent, KnownFrom::AgentElsewhere, KnownFrom::AlerterElsewhere, KnownFrom::Pacemaker];

/// What an alerter wrote that did not check the other nodes.
fn careless_mark(fencing: &Fencing) -> Entry {
    let mut entry = mark_of(fencing, "ctl3");
    entry.mark.fqdn = HostName::parse("compute2.example.org").unwrap();
    Entry::Mark(entry)
}

/// Every alerter has the slip.
fn slipped(hosts: &[&'static str]) -> Site {
    let site = Site::new(hosts);
    site.name_hosts(SLIP);
    site
}

/// compute1 fails and is fenced; what another alerter made of it is `noted`.
pub(crate) fn failed(from: KnownFrom, mut site: Site, noted: fn(&Fencing) -> Entry) -> (Site, Alerter) {
    let mut alerter = Alerter::at_work(&mut site, "ctl1", 2);
    site.die("compute1");
    site.advance(1.0);
    let fencing = site.fencing("ctl3", "compute1");
    match from {
        KnownFrom::Agent => drop(site.off("ctl1", "compute1")),
        KnownFrom::AgentElsewhere => site.mark("ctl3", &fencing),
        KnownFrom::AlerterElsewhere => site.publish(noted(&fencing)),
        KnownFrom::Pacemaker => {}
    }
    site.advance(1.0);
    alerter.meets_fencing(&mut site, "compute1", 40);
    (site, alerter)
}

/// S1-37: whatever says that the host was fenced, the mark is held without a name: after a restart too, and on another
/// controller. When the entry is corrected, the host is reported, once, as itself.
#[test]
fn the_name_of_another_node_is_sent_to_nobody() {
    for from in KNOWN_FROM {
        let (mut site, alerter) = failed(from, slipped(&["compute1", "compute2"]), careless_mark);
        drop(alerter);
        for controller in ["ctl1", "ctl2"] {
            let alerter = Alerter::at_work(&mut site, controller, 40);
            let marks = alerter.marks("compute1");
            let held = marks.len() == 1 && marks[0].fqdn.is_none() && marks[0].settled.is_none();
            assert!(held, "{from:?} on {controller}: {marks:?}");
        }
        assert!(site.notified.is_empty(), "{from:?}: {:?}", site.notified);
        site.name_hosts(CORRECTED);
        Alerter::start(&site, "ctl1").run(&mut site, 40);
        site.assert_all_notified();
        assert_eq!(site.notified.len(), ROUTES.len());
    }
}

/// S1-37: the same at the service of one route, which knows hosts by their first labels. The broken variant compares full names
/// alone: these differ, and Masakari would evacuate the host that is alive.
#[test]
fn the_name_of_another_node_at_a_service_is_sent_to_nobody() {
    let hosts = ["compute1.a.example", "compute1.b.example"];
    let clouds = beside_a_cloud("masakari.a", "");
    let mut site = Site::new(&hosts);
    let file = clouds.path("clouds.yaml");
    site.configure(&format!("[masakari.cloud]\nclouds-file = {file:?}\nhost-name = \"short\"\n"));
    let mut alerter = Alerter::at_work(&mut site, "ctl1", 2);
    site.die(hosts[0]);
    site.advance(1.0);
    site.off("ctl1", hosts[0]);
    alerter.meets_fencing(&mut site, hosts[0], 40);
    let marks = alerter.marks(hosts[0]);
    assert!(marks.len() == 1 && marks[0].fqdn.is_none() && marks[0].settled.is_none(), "{marks:?}");
    assert!(site.notified.is_empty(), "{:?}", site.notified);
}

/// The broken variant of the first row: the cluster does not say that the other host is there. The audit says what came
/// of it.
#[test]
fn a_host_that_the_cluster_does_not_know_is_reported_for_another() {
    let (site, _) = failed(KnownFrom::Agent, slipped(&["compute1"]), careless_mark);
    assert!(site.audit().iter().any(|wrong| wrong.contains("compute2 was reported")), "{:?}", site.notified);
}

/// A daemon that starts names no mark before it knows the other nodes, whatever its configuration says by then.
#[test]
fn a_held_mark_waits_for_the_first_poll() {
    let (mut site, alerter) = failed(KnownFrom::Agent, slipped(&["compute1", "compute2"]), careless_mark);
    drop(alerter);
    site.name_hosts(CORRECTED);
    let mut alerter = Alerter::start(&site, "ctl1");
    assert_eq!(alerter.marks("compute1")[0].fqdn, None, "nobody has polled the cluster yet");
    site.quorum = false;
    alerter.run(&mut site, 4);
    assert!(site.notified.is_empty());
    site.quorum = true;
    alerter.notifies_all(&mut site, 40);
}
