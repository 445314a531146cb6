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
    let said = |name: &str| match alerter.meta(name) {
        Some(value) => format!("{name} of {id} is {value}"),
        None => format!("{name} of {id} is not set"),
    };
    let stays = alerter
        .meta("resource-stickiness")
        .is_some_and(|text| location::score(text) == location::score("INFINITY"));
    let is_off = |name: &str| {
        alerter
            .meta(name)
            .is_none_or(|text| text.starts_with('0') || location::score(text) == location::score("INFINITY"))
    };
    let all = [
        (
            alerter.meta("requires") == Some("quorum"),
            Kind::Requires,
            0,
            format!(
                "{}: it must be quorum, or it is started nowhere while a fencing keeps failing",
                said("requires")
            ),
        ),
        (
            stays,
            Kind::Stickiness,
            1,
            format!(
                "{}: it must be INFINITY, or the alerter moves just when a host fails",
                said("resource-stickiness")
            ),
        ),
        (
            !is_off("migration-threshold"),
            Kind::MigrationThreshold,
            2,
            format!(
                "{}, so an alerter that fails is tried on the same controller for ever",
                said("migration-threshold")
            ),
        ),
        (
            !is_off("failure-timeout"),
            Kind::FailureTimeout,
            3,
            format!(
                "{}, so an alerter that failed never comes back to that controller by itself",
                said("failure-timeout")
            ),
        ),
    ];
    let wrong = all.into_iter().filter(|(is_right, ..)| !is_right);
    wrong
        .map(|(_, kind, place, what)| {
            let (name, value) = ALERTER_META[place];
            let values = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            Finding::new(kind, id, what, Then::Setup(Step::SetMeta { resource: id.clone(), values }))
        })
        .collect()
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
