//! The alerter's resource: it must run while a fencing keeps failing, and on controllers alone.

use std::collections::{BTreeMap, BTreeSet};

use pacemaker::cib::{INFINITY, score};

use super::devices::{monitor, stopped};
use super::finding::{Finding, Kind, Then};
use super::model::{Cluster, Node, Resource, is_some_time};
use super::step::Step;

/// The settings of a new alerter.
pub(super) const ALERTER_META: [(&str, &str); 4] = [
    ("requires", "quorum"),
    ("resource-stickiness", "INFINITY"),
    ("migration-threshold", "3"),
    ("failure-timeout", "120s"),
];
/// The interval and time limit of its monitor, in seconds.
pub(super) const ALERTER_MONITOR: (u32, u32) = (10, 20);
/// `OCF_ERR_INSTALLED`
const NOT_INSTALLED: i64 = 5;

pub(super) fn check(cluster: &Cluster, found: &mut Vec<Finding>) {
    let Some(alerter) = cluster.alerters().next() else {
        let id = cluster.free_id("alerter");
        let what = "there is no alerter (ocf:openstack:nova-host-alerter), so no mark is sent";
        let constraint = constraint_id(cluster, &id);
        let step = Step::CreateAlerter { id, config: cluster.wanted.config.clone(), constraint };
        return found.push(Finding::new(Kind::NoAlerter, "the cluster", what, Then::Setup(step)));
    };
    found.extend(meta(alerter));
    monitor(alerter, ALERTER_MONITOR, found);
    stopped(alerter, found);
    several(cluster, alerter, found);
    idle(cluster, alerter, found);
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

/// Two alerters notify twice, and interfere with each other.
fn several(cluster: &Cluster, alerter: &Resource, found: &mut Vec<Finding>) {
    let all: Vec<&str> = cluster.alerters().map(|alerter| alerter.id.as_str()).collect();
    let what = match (all.len(), alerter.is_cloned) {
        (1, false) => return,
        (1, true) => {
            format!("{} is in the clone or bundle {}, so it may run more than once", alerter.id, alerter.top)
        }
        _ => {
            format!("there are {} alerters ({}), and each would report every host", all.len(), all.join(", "))
        }
    };
    let then =
        "which alerter is the right one? Keep one plain resource, with the configuration and journal in use";
    found.push(Finding::new(Kind::SeveralAlerters, &alerter.id, what, Then::Do(then.to_owned())));
}

/// An alerter that is configured but never runs.
fn idle(cluster: &Cluster, alerter: &Resource, found: &mut Vec<Finding>) {
    let id = &alerter.id;
    if !cluster.is_managed(alerter) {
        let what = format!("{id} is unmanaged, so Pacemaker does not restart it when its controller fails");
        let then = format!("why is {id} unmanaged? Manage it again when that work is done");
        found.push(Finding::new(Kind::Unmanaged, id, what, Then::Do(then)));
    }
    if let Some(bans) = cluster.bans(alerter) {
        let bans: BTreeSet<&str> = bans.iter().map(|ban| ban.id.as_str()).collect();
        let bans = Vec::from_iter(bans).join(", ");
        let what = format!("{id} may run on no controller ({bans}), so no fenced host is reported");
        let then =
            format!("the constraints {bans} keep {id} from every controller: which of them can be removed?");
        found.push(Finding::new(Kind::Banned, id, what, Then::Do(then)));
    }
}

/// The first two have one right value; for the others any limit is right.
fn is_right(name: &str, value: Option<&str>) -> bool {
    let Some(value) = value else { return false };
    match name {
        "requires" => value == "quorum",
        "resource-stickiness" => score(value) == INFINITY,
        "failure-timeout" => is_some_time(value),
        _ => (1..INFINITY).contains(&score(value)),
    }
}

fn consequence(name: &str) -> (Kind, &'static str) {
    match name {
        "requires" => {
            (Kind::Requires, "it must be quorum, or the alerter does not start while a fencing keeps failing")
        }
        "resource-stickiness" => {
            (Kind::Stickiness, "it must be INFINITY, or the alerter moves just when a host fails")
        }
        "migration-threshold" => {
            (Kind::MigrationThreshold, "an alerter that fails is restarted on the same controller forever")
        }
        _ => (Kind::FailureTimeout, "an alerter that failed never returns to that controller by itself"),
    }
}

fn constraint_id(cluster: &Cluster, resource: &str) -> String {
    cluster.free_id(&format!("{resource}-on-controllers"))
}

fn places(cluster: &Cluster, alerter: &Resource, found: &mut Vec<Finding>) {
    let open: Vec<&Node> = cluster.computes().filter(|node| !cluster.is_kept_from(alerter, node)).collect();
    let Some(first) = open.first() else { return };
    let id = &alerter.id;
    let what = format!(
        "{id} may run or be probed on {}: if that node dies meanwhile, Pacemaker may believe that the alerter runs there",
        first.name
    );
    let admitted = open.iter().find_map(|node| Some((node, cluster.admission(alerter, node)?)));
    let then = match admitted {
        Some((node, location)) => Then::Do(format!(
            "the constraint {} includes {}: remove {id} from it, and keep {id} to controllers by a rule of its own, #kind eq cluster",
            location.id, node.name
        )),
        None if alerter.top != *id => Then::Do(format!(
            "may all of {0} run on controllers alone? A rule for {id} also binds the rest of {0}: add a rule for {0}, #kind eq cluster, or remove {id} from {0}",
            alerter.top
        )),
        None => Then::Setup(Step::KeepToControllers { resource: id.clone(), id: constraint_id(cluster, id) }),
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
