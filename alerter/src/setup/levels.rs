//! The fencing levels: for every compute host, power and then the mark, and at last power alone.

use std::collections::BTreeMap;

use marks::cib::{LEVELS, Target};

use super::finding::{Finding, Kind, Then};
use super::model::{Cluster, Node};
use super::plan::Step;

/// Lists of devices, the first level first.
type Lists = Vec<Vec<String>>;

pub(super) fn check(cluster: &Cluster, found: &mut Vec<Finding>) {
    no_mark(cluster, found);
    cluster.computes().for_each(|node| of_host(cluster, node, found));
    beside(cluster, found);
    unknown(cluster, found);
}

/// What the mark device is called, or will be.
fn mark_id(cluster: &Cluster) -> String {
    cluster.marks().next().map_or_else(|| cluster.free_id("mark"), |mark| mark.id.clone())
}

/// The mark device in these levels, or what will stand there.
fn mark_in(cluster: &Cluster, levels: &BTreeMap<u32, Vec<String>>) -> String {
    let own = levels.values().flatten().find(|id| cluster.is_mark(id));
    own.cloned().unwrap_or_else(|| mark_id(cluster))
}

/// The mark devices that may mark a host once all is right: of several targets the fencer takes any. None where nothing
/// fences the host.
pub(super) fn marks_of(cluster: &Cluster, node: &Node) -> Vec<String> {
    let Some((_, mark)) = own_levels(cluster, node) else { return Vec::new() };
    let holding = holding(cluster, node).into_iter();
    let others = holding.map(|(target, _)| mark_in(cluster, &cluster.levels_of(target)));
    others.chain([mark]).collect()
}

/// What fences a host, and the mark device behind it, by the first of the targets that hold for it; `None` where nothing
/// fences it.
fn own_levels(cluster: &Cluster, node: &Node) -> Option<(Lists, String)> {
    let holding = holding(cluster, node);
    let target = holding.iter().find(|(_, certain)| *certain).or(holding.first());
    let levels = target.map(|(target, _)| cluster.levels_of(target)).unwrap_or_default();
    let own = power_lists(cluster, &levels);
    let power = if own.is_empty() { candidates(cluster, node) } else { own };
    (!power.is_empty()).then(|| (power, mark_in(cluster, &levels)))
}

fn no_mark(cluster: &Cluster, found: &mut Vec<Finding>) {
    if cluster.marks().next().is_some() {
        return;
    }
    let id = mark_id(cluster);
    let hosts: Vec<String> = cluster
        .computes()
        .filter(|node| marks_of(cluster, node).contains(&id))
        .map(|node| node.name.to_string())
        .collect();
    if !hosts.is_empty() {
        let what = "there is no mark device (stonith:fence_mark), so no fenced host is marked";
        found.push(Finding::new(
            Kind::NoMarkDevice,
            "the cluster",
            what,
            Then::Setup(Step::CreateMark { id, hosts }),
        ));
    }
}

/// The targets whose levels the fencer uses for a node, and whether that is certain. One that is the node's name, letter by
/// letter, hides all others; of others the fencer takes any.
fn holding<'a>(cluster: &'a Cluster, node: &Node) -> Vec<(&'a Target, bool)> {
    let used = || cluster.targets().into_iter().filter(|target| !cluster.levels_of(target).is_empty());
    let exact: Vec<_> = used().filter(|t| t.key() == node.name.as_str()).map(|t| (t, true)).collect();
    if !exact.is_empty() {
        return exact;
    }
    used()
        .filter_map(|t| match node.is_target(t) {
            Some(false) => None,
            covers => Some((t, covers.is_some())),
        })
        .collect()
}

/// The lists of a target's levels without the mark devices, each once.
fn power_lists(cluster: &Cluster, levels: &BTreeMap<u32, Vec<String>>) -> Lists {
    distinct(levels.values().map(|devices| without_marks(cluster, devices)))
}

/// A level of its own for each device that is configured for the host: without a topology the fencer takes any of them.
fn candidates(cluster: &Cluster, node: &Node) -> Lists {
    let own = cluster
        .powers()
        .filter(|device| !device.is_stopped() && device.lists(node.name.as_str()) == Some(true));
    distinct(own.map(|device| vec![device.id.clone()]))
}

fn distinct(lists: impl Iterator<Item = Vec<String>>) -> Lists {
    let mut all = Lists::new();
    for list in lists.filter(|list| !list.is_empty()) {
        if !all.contains(&list) {
            all.push(list);
        }
    }
    all
}

fn without_marks(cluster: &Cluster, devices: &[String]) -> Vec<String> {
    devices.iter().filter(|id| !cluster.is_mark(id)).cloned().collect()
}

/// How many levels there can be.
fn room() -> usize {
    LEVELS.count()
}

/// Each with the mark behind it, then as many as there is room for without: a failing mark must not stop the fencing.
fn desired(power: &Lists, mark: &str) -> Lists {
    let marked = power.iter().take(room() - 1).map(|list| [list.clone(), vec![mark.to_owned()]].concat());
    marked.chain(power.iter().cloned()).take(room()).collect()
}

fn of_host(cluster: &Cluster, node: &Node, found: &mut Vec<Finding>) {
    let holding = holding(cluster, node);
    if holding.is_empty() {
        return without_level(cluster, node, found);
    }
    if let Some((target, _)) = holding.first().filter(|_| holding.iter().all(|(_, certain)| !certain)) {
        let what =
            format!("whether the levels for {} are for {} cannot be said here", target.key(), node.name);
        let then = repair(cluster, node, target);
        found.push(Finding::new(Kind::NoLevel, node.name.as_str(), what, then));
    }
    for (target, _) in holding {
        for (kind, what) in faults(cluster, target, node.name.as_str()) {
            found.push(Finding::new(kind, node.name.as_str(), what, repair(cluster, node, target)));
        }
    }
}

fn without_level(cluster: &Cluster, node: &Node, found: &mut Vec<Finding>) {
    let name = node.name.as_str();
    let power = candidates(cluster, node);
    // A device that does not say for which hosts it is may be chosen for any.
    let chosen = cluster.marks().find(|mark| mark.lists(name) != Some(false));
    let (kind, what) = match (chosen, power.is_empty()) {
        (Some(mark), _) => (
            Kind::MarkAlone,
            format!(
                "{name} has no fencing level, and Pacemaker may choose the mark device {} alone for it, which refuses",
                mark.id
            ),
        ),
        (None, false) => {
            (Kind::NoLevel, format!("{name} has no fencing level, so it is fenced without a mark"))
        }
        (None, true) => return found.push(no_power(node)),
    };
    if power.is_empty() {
        found.push(no_power(node));
    }
    let then = if power.is_empty() {
        Then::Do(no_power_advice(name))
    } else {
        Then::Setup(Step::SetLevels {
            target: Target::Name(name.to_owned()),
            levels: desired(&power, &mark_id(cluster)),
        })
    };
    found.push(Finding::new(kind, name, what, then));
}

fn no_power(node: &Node) -> Finding {
    let name = node.name.as_str();
    let what =
        format!("no fence device is for {name}: none has it in its pcmk_host_list, so it cannot be fenced");
    Finding::new(Kind::NoPowerDevice, name, what, Then::Do(no_power_advice(name)))
}

fn no_power_advice(name: &str) -> String {
    format!(
        "create its power device with pcmk_host_list={name}, or add {name} to that of the device that it has, and run `nova-host-alerter setup` again"
    )
}

/// Levels of the host's own where those that it has now are for others too.
fn repair(cluster: &Cluster, node: &Node, target: &Target) -> Then {
    let levels = cluster.levels_of(target);
    let power = power_lists(cluster, &levels);
    if !power.is_empty() && is_for_computes_alone(cluster, target) {
        let levels = desired(&power, &mark_in(cluster, &levels));
        return Then::Setup(Step::SetLevels { target: target.clone(), levels });
    }
    let Some((power, mark)) = own_levels(cluster, node) else {
        return Then::Do(no_power_advice(node.name.as_str()));
    };
    let is_own = target.key() == node.name.as_str();
    let target = if is_own { target.clone() } else { Target::Name(node.name.to_string()) };
    Then::Setup(Step::SetLevels { target, levels: desired(&power, &mark) })
}

fn is_for_computes_alone(cluster: &Cluster, target: &Target) -> bool {
    cluster.nodes.iter().all(|node| match node.is_target(target) {
        Some(covers) => !covers || cluster.is_compute(node),
        None => false,
    })
}

/// What is wrong with the levels of a target.
fn faults(cluster: &Cluster, target: &Target, name: &str) -> Vec<(Kind, String)> {
    let levels = cluster.levels_of(target);
    let mut found = misplaced(cluster, target, name);
    let has_mark = |devices: &Vec<String>| devices.iter().any(|id| cluster.is_mark(id));
    if !levels.values().any(has_mark) {
        found.push((
            Kind::NoLevel,
            format!("no level of {name} has the mark device, so it is fenced without a mark"),
        ));
        return found;
    }
    let mut marked = Lists::new();
    for (index, devices) in &levels {
        let power = without_marks(cluster, devices);
        if has_mark(devices) {
            marked.push(power);
        } else if !marked.contains(&power) {
            found.push((Kind::LevelWithoutMark, format!("level {index} of {name} fences it without a mark: no level before it has the same devices and the mark behind them")));
        }
    }
    if levels.len() < room() && levels.values().all(has_mark) {
        found.push((
            Kind::NoFallback,
            format!("every level of {name} has the mark device, so a mark that fails would stop its fencing"),
        ));
    }
    found
}

/// Of every level of a target the first fault of its mark device. The fencer appends an entry that is added to those of the
/// same number, but after a full refresh only the last is left: so every tail of them can be what holds.
fn misplaced(cluster: &Cluster, target: &Target, name: &str) -> Vec<(Kind, String)> {
    let of_level = |index: u32| {
        let entries = cluster.entries_of(target, index);
        (0..entries.len()).find_map(|from| fault(cluster, index, &entries[from..].concat(), name))
    };
    cluster.levels_of(target).into_keys().filter_map(of_level).collect()
}

/// A mark device must be the last of at least two, so that it is asked only after another one has succeeded.
fn fault(cluster: &Cluster, index: u32, devices: &[String], name: &str) -> Option<(Kind, String)> {
    let first = devices.iter().position(|id| cluster.is_mark(id))?;
    if first + 1 < devices.len() {
        let what = format!(
            "the mark device is not the last of level {index} of {name}, so it would be asked before the host is fenced"
        );
        return Some((Kind::MarkNotLast, what));
    }
    let what = format!(
        "the mark device is alone in level {index} of {name}, so it would be asked although nothing has fenced the host"
    );
    (first == 0).then_some((Kind::MarkAlone, what))
}

/// Levels that hold for no compute host, or for others too: wherever a mark device stands it must be last. And nodes that no
/// level is for, and a mark device is.
fn beside(cluster: &Cluster, found: &mut Vec<Finding>) {
    let treated: Vec<Target> = found
        .iter()
        .filter_map(|finding| match finding.step() {
            Some(Step::SetLevels { target, .. }) => Some(target.clone()),
            _ => None,
        })
        .collect();
    for target in cluster.targets().into_iter().filter(|target| !treated.contains(target)) {
        let levels = cluster.levels_of(target);
        let power = power_lists(cluster, &levels);
        let is_told = |what: &String| found.iter().any(|finding| finding.what == *what);
        let faults = misplaced(cluster, target, &target.key());
        let faults: Vec<(Kind, String)> = faults.into_iter().filter(|(_, what)| !is_told(what)).collect();
        for (kind, what) in faults {
            let then = if power.is_empty() {
                Then::Do(format!(
                    "take the mark device out of the levels for {}: no other device stands there",
                    target.key()
                ))
            } else {
                Then::Setup(Step::SetLevels {
                    target: target.clone(),
                    levels: desired(&power, &mark_in(cluster, &levels)),
                })
            };
            found.push(Finding::new(kind, target.key(), what, then));
        }
    }
    let others =
        cluster.nodes.iter().filter(|node| !cluster.is_compute(node) && holding(cluster, node).is_empty());
    for (node, mark) in others.flat_map(|node| cluster.marks().map(move |mark| (node, mark))) {
        if mark.lists(node.name.as_str()) == Some(true) {
            let what = format!(
                "{} has no fencing level, and Pacemaker may choose the mark device {} alone for it, which refuses",
                node.name, mark.id
            );
            let then = Then::Do(format!(
                "take {} out of pcmk_host_list of {}, or give it levels of its own",
                node.name, mark.id
            ));
            found.push(Finding::new(Kind::MarkAlone, node.name.as_str(), what, then));
        }
    }
}

fn unknown(cluster: &Cluster, found: &mut Vec<Finding>) {
    for level in &cluster.levels {
        let is_device =
            |id: &String| cluster.resource(id).is_some_and(super::model::Resource::is_fence_device);
        for id in level.devices.iter().filter(|id| !is_device(id)) {
            let what = format!(
                "level {} for {} names {id}, which is no fence device: the level always fails",
                level.index,
                level.target.key()
            );
            let then = Then::Do(format!("create the device {id}, or take it out of the level"));
            found.push(Finding::new(Kind::UnknownDevice, id, what, then));
        }
    }
}
