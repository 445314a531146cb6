//! A slip in `[hosts.names]` that gives one node the name of another: the other one is alive, and is never reported.

use marks::fencing::Fencing;
use marks::host::HostName;
use marks::register::Entry;

use crate::route::Files;
use crate::site::{Alerter, ROUTES, Site, mark_of};

const SLIP: &str = r#"{ compute1 = "compute2.example.org" }"#;
const CORRECTED: &str = r#"{ compute1 = "compute1.example.org" }"#;

/// The source from which an alerter knows that the host was fenced.
#[derive(Clone, Copy, Debug)]
enum KnownFrom {
    Agent,
    AgentElsewhere,
    AlerterElsewhere,
    Pacemaker,
}

/// What an alerter wrote that did not check the other nodes.
fn careless_mark(fencing: &Fencing) -> Entry {
    let mut entry = mark_of(fencing, "ctl3");
    entry.mark.fqdn = HostName::parse("compute2.example.org").unwrap();
    Entry::Mark(entry)
}

/// compute1 fails, is fenced, and every alerter has the slip.
fn failed(from: KnownFrom, hosts: &[&'static str]) -> (Site, Alerter) {
    let mut site = Site::new(hosts);
    site.name_hosts(SLIP);
    let mut alerter = Alerter::at_work(&mut site, "ctl1", 2);
    site.die("compute1");
    site.advance(1.0);
    let fencing = site.fencing("ctl3", "compute1");
    match from {
        KnownFrom::Agent => drop(site.off("ctl1", "compute1")),
        KnownFrom::AgentElsewhere => site.mark("ctl3", &fencing),
        KnownFrom::AlerterElsewhere => site.publish(careless_mark(&fencing)),
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
    for from in
        [KnownFrom::Agent, KnownFrom::AgentElsewhere, KnownFrom::AlerterElsewhere, KnownFrom::Pacemaker]
    {
        let (mut site, alerter) = failed(from, &["compute1", "compute2"]);
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
    let clouds = Files::with([(
        "clouds.yaml",
        "clouds: {a: {auth: {auth_url: 'https://k/v3', username: a, password: p, project_name: p, user_domain_id: d, project_domain_id: d}}}\n",
    )]);
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
    let (site, _) = failed(KnownFrom::Agent, &["compute1"]);
    assert!(site.audit().iter().any(|wrong| wrong.contains("compute2 was reported")), "{:?}", site.notified);
}

/// A daemon that starts names no mark before it knows the other nodes, whatever its configuration says by then.
#[test]
fn a_held_mark_waits_for_the_first_poll() {
    let (mut site, alerter) = failed(KnownFrom::Agent, &["compute1", "compute2"]);
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
