//! The fence devices: the hosts of each, and the settings of the mark device.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pacemaker::cib::{Target, time_limit};

use super::finding::{Finding, Kind, Then};
use super::levels::served;
use super::model::{Cluster, Failure, Node, NodeKind, Resource};
use super::step::Step;

/// The settings of a new mark device, beside its hosts.
pub(super) const MARK_PARAMETERS: [(&str, &str); 3] =
    [("pcmk_status_retries", "1"), ("pcmk_off_retries", "1"), ("pcmk_off_timeout", "40s")];
/// The interval and time limit of its monitor, in seconds.
pub(super) const MARK_MONITOR: (u32, u32) = (60, 40);

/// The agent's own limit is 20 s, and it must be able to report why it failed.
const OFF_TIMEOUT: Duration = Duration::from_secs(40);
/// How many calls of one device Pacemaker runs at once, which is its default: with more, two operations for one host kill its
/// fencer (`docs/pacemaker-releases.md`, section 5).
const ACTION_LIMIT: (&str, &str) = ("pcmk_action_limit", "1");

pub(super) fn check(cluster: &Cluster, found: &mut Vec<Finding>) {
    for mark in cluster.marks() {
        hosts_of_mark(cluster, mark, found);
        found.extend(parameters(mark));
        monitor(mark, MARK_MONITOR, found);
        usable(cluster, mark, found);
    }
    for power in cluster.powers() {
        hosts_of_power(cluster, power, found);
        unusable(cluster, power, found);
    }
    action_limits(cluster, found);
    failures(cluster, found);
}

/// Of every fence device: the fencer that dies is the one of all hosts.
fn action_limits(cluster: &Cluster, found: &mut Vec<Finding>) {
    let (name, one) = ACTION_LIMIT;
    for device in cluster.resources.iter().filter(|resource| resource.is_fence_device()) {
        let Some(limit) = device.parameter(name).filter(|limit| limit.trim() != one) else { continue };
        let id = &device.id;
        let what = format!(
            "{name} of {id} is {limit}: pacemaker-fenced dies by SIGSEGV where two operations for one host run at once; its history is then lost, and the host is cut twice"
        );
        let then = if device.is_mark() {
            Then::Setup(set(device, name, one))
        } else {
            Then::Do(format!(
                "set {name}={one} on {id}; if its hosts are fenced too slowly one after the other, divide them over several devices"
            ))
        };
        found.push(Finding::new(Kind::ActionLimit, id, what, then));
    }
}

fn set(resource: &Resource, name: &str, value: impl Into<String>) -> Step {
    Step::SetParameters {
        resource: resource.id.clone(),
        values: BTreeMap::from([(name.to_owned(), value.into())]),
    }
}

/// A mark device without a host list serves every node whose level names it, also a controller: none of them may lose it.
fn hosts_of_mark(cluster: &Cluster, mark: &Resource, found: &mut Vec<Finding>) {
    let served = served(cluster, found, &mark.id);
    let listed = |node: &&Node| mark.lists(node.name.as_str()) == Some(true);
    let is_meant = |node: &&Node| mark.hosts().is_none() || cluster.is_compute(node);
    let sure = served.iter().filter(|(_, is_sure)| *is_sure).map(|(node, _)| *node);
    let missing: Vec<&str> =
        sure.filter(is_meant).filter(|node| !listed(node)).map(|node| node.name.as_str()).collect();
    let (kind, what) = match mark.hosts() {
        None => (
            Kind::NoHostList,
            format!(
                "the mark device {} has no pcmk_host_list: Pacemaker may choose it for every node, even as the only device of a node without levels",
                mark.id
            ),
        ),
        Some(_) if missing.is_empty() => return,
        Some(_) => (
            Kind::HostNotListed,
            format!(
                "the pcmk_host_list of the mark device {} lacks {}, so the level fails",
                mark.id,
                missing.join(", ")
            ),
        ),
    };
    let unsure = served.iter().find(|(_, is_sure)| !is_sure).filter(|_| mark.hosts().is_none());
    let then = if let Some((node, _)) = unsure {
        Then::Do(format!(
            "are the levels with {} also for {}? Write its pcmk_host_list by hand: a node that is not in it loses these levels",
            mark.id, node.name
        ))
    } else if missing.is_empty() {
        Then::Do(format!(
            "no node has a level with {}: remove it, or write its pcmk_host_list and the levels of these hosts",
            mark.id
        ))
    } else {
        let listed = mark.parameter("pcmk_host_list").unwrap_or_default().split([' ', ',', ';', '\t', '\n']);
        let all: Vec<&str> = listed.filter(|name| !name.is_empty()).chain(missing).collect();
        Then::Setup(set(mark, "pcmk_host_list", all.join(",")))
    };
    found.push(Finding::new(kind, &mark.id, what, then));
}

fn parameters(mark: &Resource) -> Vec<Finding> {
    let id = &mark.id;
    let limit = mark.parameter("pcmk_off_timeout");
    let is_short = limit.and_then(time_limit).is_none_or(|limit| limit < OFF_TIMEOUT);
    let said = limit.map_or_else(|| "is not set".to_owned(), |limit| format!("is {limit}"));
    let other = |name: &str, wanted: &str| mark.parameter(name) != Some(wanted);
    let all = [
        (
            is_short,
            Kind::OffTimeout,
            "pcmk_off_timeout",
            "40s",
            format!(
                "pcmk_off_timeout of {id} {said}: with less than 40 s it may be killed before the mark is safe, or before it has reported its failure"
            ),
        ),
        (
            other("pcmk_off_retries", "1"),
            Kind::OffRetries,
            "pcmk_off_retries",
            "1",
            format!("pcmk_off_retries of {id} is not 1: the fencer would ask twice, and wait in between"),
        ),
    ];
    let wrong = all.into_iter().filter(|(is_wrong, ..)| *is_wrong);
    wrong
        .map(|(_, kind, name, value, what)| Finding::new(kind, id, what, Then::Setup(set(mark, name, value))))
        .collect()
}

/// Whether it is monitored.
pub(super) fn monitor(resource: &Resource, (interval, timeout): (u32, u32), found: &mut Vec<Finding>) {
    if !resource.is_monitored() {
        let id = resource.id.clone();
        let what = format!("{id} has no monitor operation, so Pacemaker does not notice when it fails");
        let then = Then::Setup(Step::AddMonitor { resource: id.clone(), interval, timeout });
        found.push(Finding::new(Kind::NoMonitor, id, what, then));
    }
}

/// Whether it may run at all.
pub(super) fn stopped(resource: &Resource, found: &mut Vec<Finding>) {
    if resource.is_stopped() {
        let what = format!("{} is disabled (target-role), so Pacemaker does not use it", resource.id);
        let then = format!(
            "did somebody mean that? If not, run `crm_resource --resource {} --meta --set-parameter target-role --parameter-value Started`",
            resource.id
        );
        found.push(Finding::new(Kind::Stopped, &resource.id, what, Then::Do(then)));
    }
}

fn usable(cluster: &Cluster, mark: &Resource, found: &mut Vec<Finding>) {
    stopped(mark, found);
    for node in cluster.nodes.iter().filter(|node| node.kind == NodeKind::Cluster) {
        if let Some(ban) = cluster.ban(mark, node) {
            let what = format!(
                "the mark device {} may not be used on {} (constraint {}), so that controller cannot mark",
                mark.id, node.name, ban.id
            );
            let then = format!(
                "did somebody mean that? If not, and if it bans nothing else, run `cibadmin --delete --xml-text '<rsc_location id=\"{}\"/>'`",
                ban.id
            );
            found.push(Finding::new(Kind::Banned, node.name.as_str(), what, Then::Do(then)));
        }
    }
}

/// A power device in a level that is never used: that level fails.
fn unusable(cluster: &Cluster, power: &Resource, found: &mut Vec<Finding>) {
    let id = &power.id;
    if !cluster.levels.iter().any(|level| level.devices.contains(id)) {
        return;
    }
    if power.is_stopped() {
        let what =
            format!("the fence device {id} is in a level but disabled (target-role), so the level fails");
        let then =
            format!("why is {id} disabled? Enable it again, or put another power device into the level");
        found.push(Finding::new(Kind::Stopped, id, what, Then::Do(then)));
    }
    if let Some(bans) = cluster.bans(power) {
        let bans: BTreeSet<&str> = bans.iter().map(|ban| ban.id.as_str()).collect();
        let bans = Vec::from_iter(bans).join(", ");
        let what = format!(
            "the fence device {id} is in a level but may be used on no controller ({bans}), so the level fails"
        );
        let then = format!("should {id} be used? The constraints {bans} keep it from every controller");
        found.push(Finding::new(Kind::Banned, id, what, Then::Do(then)));
    }
}

/// The nodes whose levels name this device.
fn named_in_levels<'a>(cluster: &'a Cluster, device: &str) -> Vec<&'a str> {
    let own = cluster.levels.iter().filter(|level| level.devices.iter().any(|id| id == device));
    let mut names: Vec<&str> = Vec::new();
    for name in own.filter_map(|level| match &level.target {
        Target::Name(name) => Some(name.as_str()),
        _ => None,
    }) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Only an operator knows a power device's hosts: removing a name from its list removes that host's fencing, and a wrong
/// name has another host switched off.
fn hosts_of_power(cluster: &Cluster, power: &Resource, found: &mut Vec<Finding>) {
    let id = &power.id;
    let named = named_in_levels(cluster, id);
    if power.hosts().is_none() {
        let what = format!(
            "the fence device {id} has neither pcmk_host_list nor pcmk_host_map, so Pacemaker may use it for every host"
        );
        let then = format!(
            "which hosts does {id} fence? Write all of them into its pcmk_host_list, also controllers and hosts of levels by pattern: {id} no longer fences any other"
        );
        return found.push(Finding::new(Kind::NoHostList, id, what, Then::Do(then)));
    }
    let missing: Vec<&str> = named.into_iter().filter(|name| power.lists(name) != Some(true)).collect();
    if missing.is_empty() {
        return;
    }
    let missing = missing.join(", ");
    let what = format!(
        "the fence device {id} is in a level of {missing}, but its pcmk_host_list lacks the name, so the level fails"
    );
    let then = format!(
        "does {id} cut the power of {missing}? If so, add the name to its pcmk_host_list; if not, put the right device into the level"
    );
    found.push(Finding::new(Kind::HostNotListed, id, what, Then::Do(then)));
}

fn failures(cluster: &Cluster, found: &mut Vec<Finding>) {
    for Failure { resource, node, reason, .. } in &cluster.failures {
        if !cluster.is_mark(resource) {
            continue;
        }
        let why = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
        let what = format!(
            "the mark device {resource} failed on {node}{why}, so that controller may not be able to mark"
        );
        let then = format!(
            "on {node}, run `fence_mark -o monitor` to see why (or install the package there), then `crm_resource --cleanup --resource {resource}`"
        );
        found.push(Finding::new(Kind::FailsOn, node, what, Then::Do(then)));
    }
}
