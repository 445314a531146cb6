//! The fencing levels: for every compute host, power and then the mark, and at last power alone.

use std::collections::BTreeMap;

use marks::cib::{LEVELS, Target};

use super::finding::{Finding, Kind, Then};
use super::model::{Cluster, Node, Resource};
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
    let power = if any_cuts(cluster, &own) {
        own
    } else {
        distinct(own.into_iter().chain(candidates(cluster, node)))
    };
    any_cuts(cluster, &power).then(|| (power, mark_in(cluster, &levels)))
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

fn any_cuts(cluster: &Cluster, lists: &Lists) -> bool {
    lists.iter().any(|devices| cluster.cuts_power(devices))
}

/// A level of its own for each device that cuts the host's power: without a topology the fencer takes any of them.
fn candidates(cluster: &Cluster, node: &Node) -> Lists {
    let own = cluster.powers().filter(|device| {
        !device.is_stopped() && device.powerless().is_none() && device.lists(node.name.as_str()) == Some(true)
    });
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

/// Each that cuts power with the mark behind it, then as many as there is room for without: a failing mark must not stop the
/// fencing. What cuts no power has no mark behind it, and stays in front where it stood there.
fn desired(cluster: &Cluster, power: &Lists, mark: &str) -> Lists {
    let cuts = |list: &&Vec<String>| cluster.cuts_power(list);
    let first = power.iter().position(|list| cuts(&list)).unwrap_or_default().min(room() - 2);
    let (before, behind) = power.split_at(first);
    let marked = behind.iter().filter(cuts).map(|list| [list.clone(), vec![mark.to_owned()]].concat());
    let front = before.iter().cloned().chain(marked).take(room() - 1);
    front.chain(behind.iter().cloned()).take(room()).collect()
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
        without_power(cluster, target, node.name.as_str(), found);
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
            levels: desired(cluster, &power, &mark_id(cluster)),
        })
    };
    found.push(Finding::new(kind, name, what, then));
}

fn no_power(node: &Node) -> Finding {
    let name = node.name.as_str();
    let what = format!(
        "no fence device that cuts power is for {name}: none has it in its pcmk_host_list, so it cannot be fenced"
    );
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
    if any_cuts(cluster, &power) && is_for_computes_alone(cluster, target) {
        let levels = desired(cluster, &power, &mark_in(cluster, &levels));
        return Then::Setup(Step::SetLevels { target: target.clone(), levels });
    }
    let Some((power, mark)) = own_levels(cluster, node) else {
        return Then::Do(no_power_advice(node.name.as_str()));
    };
    let is_own = target.key() == node.name.as_str();
    let target = if is_own { target.clone() } else { Target::Name(node.name.to_string()) };
    Then::Setup(Step::SetLevels { target, levels: desired(cluster, &power, &mark) })
}

fn is_for_computes_alone(cluster: &Cluster, target: &Target) -> bool {
    cluster.nodes.iter().all(|node| match node.is_target(target) {
        Some(covers) => !covers || cluster.is_compute(node),
        None => false,
    })
}

/// Levels without a mark that pass while the host runs: Pacemaker believes them, and says so to everybody.
fn without_power(cluster: &Cluster, target: &Target, name: &str, found: &mut Vec<Finding>) {
    for (index, devices) in cluster.levels_of(target) {
        let known: Option<Vec<&Resource>> = devices.iter().map(|id| cluster.resource(id)).collect();
        let weak: Option<Vec<_>> = known
            .and_then(|known| known.into_iter().map(|device| Some((device, device.powerless()?))).collect());
        let Some(weak) = weak.filter(|weak| {
            !weak.iter().any(|(device, powerless)| device.is_mark() || powerless.stands_alone)
        }) else {
            continue;
        };
        let does: Vec<String> = weak.iter().map(|(device, powerless)| does(device, powerless.does)).collect();
        let what = format!(
            "level {index} of {name} cuts no power ({}), so Pacemaker takes the host for fenced while it runs",
            does.join("; ")
        );
        let then = Then::Do(format!(
            "put a power device into level {index} of {name}, or take that level out of the topology"
        ));
        found.push(Finding::new(Kind::LevelWithoutPower, name, what, then));
    }
}

fn does(device: &Resource, does: &str) -> String {
    format!("{} ({}) {does}", device.id, device.agent)
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
        } else if cluster.cuts_power(&power) && !marked.contains(&power) {
            found.push((Kind::LevelWithoutMark, format!("level {index} of {name} fences it without a mark: no level before it has the same devices and the mark behind them")));
        }
    }
    let mut cutting = levels.values().filter(|devices| cluster.cuts_power(devices)).peekable();
    if levels.len() < room() && cutting.peek().is_some() && cutting.all(has_mark) {
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

/// A mark device must be the last of at least two, and one before it must cut power: so it is asked only when the host is off.
fn fault(cluster: &Cluster, index: u32, devices: &[String], name: &str) -> Option<(Kind, String)> {
    let first = devices.iter().position(|id| cluster.is_mark(id))?;
    if first + 1 < devices.len() {
        let what = format!(
            "the mark device is not the last of level {index} of {name}, so it would be asked before the host is fenced"
        );
        return Some((Kind::MarkNotLast, what));
    }
    if first == 0 {
        let what = format!(
            "the mark device is alone in level {index} of {name}, so it would be asked although nothing has fenced the host"
        );
        return Some((Kind::MarkAlone, what));
    }
    let before = &devices[..first];
    (!cluster.cuts_power(before)).then(|| {
        let what = format!(
            "the mark device stands behind no device that cuts power in level {index} of {name} ({}), so it would be asked while the host runs, and refuses",
            weak(cluster, before).join("; ")
        );
        (Kind::MarkWithoutPower, what)
    })
}

/// What each of these does instead of cutting power.
fn weak(cluster: &Cluster, devices: &[String]) -> Vec<String> {
    let why = |id: &String| match cluster.resource(id).and_then(|device| Some((device, device.powerless()?)))
    {
        Some((device, powerless)) => does(device, powerless.does),
        None => format!("{id} is no fence device of this cluster"),
    };
    devices.iter().map(why).collect()
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
            let then = if any_cuts(cluster, &power) {
                let levels = desired(cluster, &power, &mark_in(cluster, &levels));
                Then::Setup(Step::SetLevels { target: target.clone(), levels })
            } else {
                Then::Do(format!(
                    "take the mark device out of the levels for {}: no device that cuts power stands there",
                    target.key()
                ))
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
        let is_device = |id: &String| cluster.resource(id).is_some_and(Resource::is_fence_device);
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
