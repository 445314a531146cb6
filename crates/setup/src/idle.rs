//! Orders that stop Pacemaker from fencing, or from running anything: operators forget them easily.

use pacemaker::cib::truth;

use super::finding::{Finding, Kind, Then};
use super::model::{Cluster, Node};

/// The question for all of them.
const END: &str = "is the work done? If so, end this mode";

pub(super) fn check(cluster: &Cluster, found: &mut Vec<Finding>) {
    let whole = [
        ("maintenance-mode", Kind::Maintenance, "no compute host is fenced, and the alerter does not move"),
        (
            "stop-all-resources",
            Kind::StopAllResources,
            "the alerter and the connections to compute hosts are stopped",
        ),
    ];
    for (name, kind, what) in whole.into_iter().filter(|(name, ..)| cluster.is_on(name) == Some(true)) {
        found.push(Finding::new(
            kind,
            "the cluster",
            format!("{name} is true, so {what}"),
            Then::Do(END.to_owned()),
        ));
    }
    cluster.computes().for_each(|node| connection(cluster, node, found));
}

/// Pacemaker does not fence a host whose connection it does not manage.
fn connection(cluster: &Cluster, node: &Node, found: &mut Vec<Finding>) {
    let name = node.name.as_str();
    let is_kept =
        |(attribute, value): &(String, String)| attribute == "maintenance" && truth(value) == Some(true);
    let own = cluster.resources.iter().find(|resource| resource.id.eq_ignore_ascii_case(name));
    if node.attributes.iter().any(is_kept) {
        let what = format!("{name} is in maintenance, so Pacemaker does not fence it when it is lost");
        found.push(Finding::new(Kind::Maintenance, name, what, Then::Do(END.to_owned())));
    }
    if own.is_some_and(|own| !cluster.is_managed(own)) {
        let what = format!(
            "the connection to {name} is unmanaged, so Pacemaker does not fence the host when it is lost"
        );
        found.push(Finding::new(Kind::Unmanaged, name, what, Then::Do(END.to_owned())));
    }
}
