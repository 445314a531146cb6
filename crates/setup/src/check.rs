//! Everything that is wrong with a cluster, as its configuration and this controller show it.

use marks::host::HostName;
use marks::mark::Lack;
use pacemaker::cib::HEALTH_AGENT;

use super::finding::{Finding, Kind, Then};
use super::model::{Cluster, NodeKind, Reaction};
use super::step::Step;
use super::{alert, alerter, devices, idle, levels, properties, register, remotes, rivals};

/// Everything that is wrong, the worst first: what prevents marks, then what fails now and then. At the end, what is wrong
/// only while some rule is in force, or only while it is not.
pub fn check(cluster: &Cluster) -> Vec<Finding> {
    let mut found = of_one(cluster);
    let others: Vec<(&str, Vec<Finding>)> =
        cluster.under_rules.iter().map(|(rule, other)| (rule.as_str(), of_one(other))).collect();
    let mut depends = Vec::new();
    for (rule, there) in &others {
        let only_there = there.iter().filter(|one| !found.contains(one));
        depends.extend(only_there.map(|one| unjudged(one, &format!("While the rule of {rule} holds"), rule)));
        let only_here = found.iter().filter(|one| !there.contains(one));
        depends.extend(only_here.map(|one| unjudged(one, &format!("Unless the rule of {rule} holds"), rule)));
    }
    found.retain(|one| others.iter().all(|(_, there)| there.contains(one)));
    found.extend(depends);
    found
}

/// What is still to be done about the agent for compute hosts: it observes first.
pub fn health(cluster: &Cluster, reaction: Reaction) -> Vec<Finding> {
    let Some(own) = cluster.resources.iter().find(|resource| resource.agent == HEALTH_AGENT) else {
        let what =
            format!("there is no {HEALTH_AGENT}: of a host whose disk hangs its connection shows nothing");
        let then = match reaction {
            Reaction::Observe => Then::Setup(Step::CreateHealth { id: cluster.free_id("health") }),
            Reaction::Fence => Then::Do(
                "run `nova-host-alerter setup --health` first, and see for a week what it says".into(),
            ),
        };
        return vec![Finding::new(Kind::NoHealth, "the cluster", what, then)];
    };
    let mut monitors = own.operations.iter().filter(|operation| operation.name == "monitor");
    let fences = own.parameter("reaction") == Some("fence") && monitors.all(|one| one.on_fail == "fence");
    if reaction == Reaction::Observe || fences {
        return Vec::new();
    }
    let now = cluster.unhealthy.iter().map(|(host, reason)| format!("{host} ({reason})")).collect();
    let what = format!("{} observes: a host that fails its health check is shown, and not fenced", own.id);
    let step = Step::FenceUnhealthy { resource: own.id.clone(), now };
    vec![Finding::new(Kind::HealthObserves, &own.id, what, Then::Setup(step))]
}

/// A finding that depends on a rule.
fn unjudged(finding: &Finding, when: &str, rule: &str) -> Finding {
    let what = format!("under a rule: not judged. {when}, {}", finding.what);
    let then = format!(
        "does the rule of {rule} hold now, and is that meant? A value that always counts stands better in a set without a rule"
    );
    Finding::new(Kind::NotJudged, &finding.about, what, Then::Do(then))
}

/// The same for one reading of its rules.
fn of_one(cluster: &Cluster) -> Vec<Finding> {
    let mut found = Vec::new();
    missing_here(cluster, &mut found);
    found.extend(cib_too_large(cluster));
    no_compute(cluster, &mut found);
    guests(cluster, &mut found);
    unsaid(cluster, &mut found);
    levels::check(cluster, &mut found);
    devices::check(cluster, &mut found);
    properties::check(cluster, &mut found);
    idle::check(cluster, &mut found);
    alert::check(cluster, &mut found);
    alerter::check(cluster, &mut found);
    register::check(&cluster.here, &mut found);
    remotes::check(cluster, &mut found);
    rivals::check(cluster, &mut found);
    found
}

fn missing_here(cluster: &Cluster, found: &mut Vec<Finding>) {
    found.extend(cluster.here.missing.iter().map(|file| {
        let what = format!("{file} is not on this controller, so Pacemaker cannot use it here");
        let then = Then::Do("install the package, on every controller".to_owned());
        Finding::new(Kind::NotInstalled, "this controller", what, then)
    }));
}

/// Nothing of this software needs the whole CIB, but pcs, crmsh and crm_mon do.
fn cib_too_large(cluster: &Cluster) -> Option<Finding> {
    let what = "Pacemaker cannot send the whole CIB: packed it is longer than PCMK_ipc_buffer (131072 bytes unless set), so pcs, crmsh and crm_mon wait for 30 s and fail";
    let then = "set PCMK_ipc_buffer=10485760 in /etc/default/pacemaker or /etc/sysconfig/pacemaker on every controller; then restart Pacemaker on one after the other";
    let finding = || Finding::new(Kind::CibTooLarge, "the cluster", what, Then::Do(then.to_owned()));
    cluster.here.is_cib_too_large.then(finding)
}

/// A pattern covers many; a name is meant.
fn guests(cluster: &Cluster, found: &mut Vec<Finding>) {
    let Some(hosts) = &cluster.wanted.hosts else { return };
    let guests = cluster.nodes.iter().filter(|node| node.kind == NodeKind::Guest);
    found.extend(guests.filter(|node| hosts.names_literally(&node.name)).map(|node| {
        let name = &node.name;
        let what = format!(
            "{name} is a guest node (a virtual machine of the cluster), which no device fences, so it is never marked"
        );
        let then = format!("remove {name} from --hosts, or from [hosts] match in the configuration");
        Finding::new(Kind::GuestNode, name.as_str(), what, Then::Do(then))
    }));
}

/// So many hosts are named; the others are counted.
const NAMED: usize = 3;

fn unsaid(cluster: &Cluster, found: &mut Vec<Finding>) {
    let hosts: Vec<&str> = cluster.wanted.unsaid.iter().map(HostName::as_str).collect();
    if hosts.is_empty() {
        return;
    }
    let more = match hosts.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = hosts[..hosts.len().min(NAMED)].join(", ");
    let what = format!(
        "nobody says whether the instances of {named}{more} are on shared storage: a mark of such a host is held (no-storage)"
    );
    let then = format!("set {} of {}", Lack::Storage.setting(), cluster.wanted.config);
    found.push(Finding::new(Kind::NoStorage, "the configuration", what, Then::Do(then)));
}

fn no_compute(cluster: &Cluster, found: &mut Vec<Finding>) {
    if cluster.computes().next().is_some() {
        return;
    }
    let any = cluster.nodes.iter().any(|node| node.kind == NodeKind::Remote);
    let (what, then) = if any {
        (
            "no remote node of this cluster matches the wanted hosts",
            "check --hosts, or [hosts] match in the configuration",
        )
    } else {
        (
            "this cluster has no remote node (ocf:pacemaker:remote), so there is no compute host to mark",
            "make each compute host a remote node first: docs/deploy/README.md",
        )
    };
    found.push(Finding::new(Kind::NoComputeHost, "the cluster", what, Then::Do(then.to_owned())));
}
