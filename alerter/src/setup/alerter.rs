//! The alerter's resource: it must run while a fencing keeps failing, on controllers alone.

use std::collections::BTreeMap;

use super::devices::{monitor, stopped};
use super::finding::{Finding, Kind, Then};
use super::location;
use super::model::{Cluster, Node, Resource};
use super::plan::Step;

/// What a new alerter has.
pub(super) const ALERTER_META: [(&str, &str); 4] = [
    ("requires", "quorum"),
    ("resource-stickiness", "INFINITY"),
    ("migration-threshold", "3"),
    ("failure-timeout", "120s"),
];
/// How often it is looked at, and how long that may take, in seconds.
pub(super) const ALERTER_MONITOR: (u32, u32) = (10, 20);
/// `OCF_ERR_INSTALLED`
const NOT_INSTALLED: i64 = 5;

pub(super) fn check(cluster: &Cluster, found: &mut Vec<Finding>) {
    let Some(alerter) = cluster.alerter() else {
        let id = cluster.free_id("alerter");
        let what = "there is no alerter (ocf:openstack:nova-host-alerter), so nobody is told of any mark";
        let constraint = constraint_id(cluster, &id);
        let step = Step::CreateAlerter { id, config: cluster.wanted.config.clone(), constraint };
        return found.push(Finding::new(Kind::NoAlerter, "the cluster", what, Then::Setup(step)));
    };
    found.extend(meta(alerter));
    monitor(alerter, ALERTER_MONITOR, found);
    stopped(alerter, found);
    places(cluster, alerter, found);
    not_installed(cluster, alerter, found);
}

fn meta(alerter: &Resource) -> Vec<Finding> {
    let id = &alerter.id;
    let wrong = ALERTER_META.into_iter().filter(|(name, _)| !is_right(name, alerter.meta(name)));
    let finding = |(name, value): (&str, &str)| {
        let (kind, then) = consequence(name);
        let said = alerter.meta(name).map_or_else(|| "is not set".to_owned(), |value| format!("is {value}"));
        let values = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let step = Step::SetMeta { resource: id.clone(), values };
        Finding::new(kind, id, format!("{name} of {id} {said}: {then}"), Then::Setup(step))
    };
    wrong.map(finding).collect()
}

/// The first two have one right value; of the others any that is a limit.
fn is_right(name: &str, value: Option<&str>) -> bool {
    let Some(value) = value else { return false };
    let is_for_ever = location::score(value) == location::score("INFINITY");
    match name {
        "requires" => value == "quorum",
        "resource-stickiness" => is_for_ever,
        _ => !is_for_ever && !value.starts_with('0'),
    }
}

fn consequence(name: &str) -> (Kind, &'static str) {
    match name {
        "requires" => (
            Kind::Requires,
            "it must be quorum, or the alerter is started nowhere while a fencing keeps failing",
        ),
        "resource-stickiness" => {
            (Kind::Stickiness, "it must be INFINITY, or the alerter moves just when a host fails")
        }
        "migration-threshold" => {
            (Kind::MigrationThreshold, "an alerter that fails is tried on the same controller for ever")
        }
        _ => (Kind::FailureTimeout, "an alerter that failed never comes back to that controller by itself"),
    }
}

fn constraint_id(cluster: &Cluster, resource: &str) -> String {
    cluster.free_id(&format!("{resource}-on-controllers"))
}

fn places(cluster: &Cluster, alerter: &Resource, found: &mut Vec<Finding>) {
    let open: Vec<&Node> = cluster.computes().filter(|node| !cluster.is_kept_from(alerter, node)).collect();
    let Some(first) = open.first() else { return };
    let (id, top) = (&alerter.id, &alerter.top);
    let what = format!(
        "{id} may run on {}, or is looked for there: where it dies meanwhile, Pacemaker takes the alerter for running there",
        first.name
    );
    let admitted = open.iter().find_map(|node| Some((node, cluster.admission(alerter, node)?)));
    let then = match admitted {
        Some((node, location)) => Then::Do(format!(
            "the constraint {} has {} among its nodes: leave only controllers there, by the rule #kind eq cluster",
            location.id, node.name
        )),
        None => {
            Then::Setup(Step::KeepToControllers { resource: top.clone(), id: constraint_id(cluster, top) })
        }
    };
    found.push(Finding::new(Kind::AlerterOnComputes, id, what, then));
}

fn not_installed(cluster: &Cluster, alerter: &Resource, found: &mut Vec<Finding>) {
    let own = cluster.failures.iter().filter(|f| f.resource == alerter.id && f.code == NOT_INSTALLED);
    for failure in own {
        let what =
            format!("Pacemaker found the alerter not installed on {}, so it cannot move there", failure.node);
        let then = Then::Do(format!(
            "install the package on {}, then `crm_resource --cleanup --resource {}`",
            failure.node, alerter.id
        ));
        found.push(Finding::new(Kind::NotInstalled, &failure.node, what, then));
    }
}
