//! The fencing levels: for every compute host, first power with the mark, and last power alone.

use std::collections::BTreeMap;

use pacemaker::cib::releases::WATCHDOG_TIMEOUT;
use pacemaker::cib::{LEVELS, Level, LevelFault, Target, WATCHDOG};

use super::division::Division;
use super::finding::{Finding, Kind, Then};
use super::model::{Cluster, Node, Resource, targets};
use super::step::Step;

/// Lists of devices, the first level first.
pub(super) type Lists = Vec<Vec<String>>;

pub(super) fn check(cluster: &Cluster, found: &mut Vec<Finding>) {
    let (mut own, division) = (Vec::new(), Division::of(cluster));
    cluster.computes().for_each(|node| of_host(cluster, &division, node, &mut own));
    beside(cluster, &mut own);
    unknown(cluster, &mut own);
    no_mark(cluster, &division, &own, found);
    found.extend(own);
}

/// The mark device in a target's levels, or that of the first compute host which the target is for.
fn mark_in(cluster: &Cluster, division: &Division, target: &Target, node: &Node) -> String {
    let levels = cluster.levels_of(target);
    let own = levels.values().flatten().find(|id| cluster.is_mark(id));
    let first = || cluster.computes().find(|other| cluster.is_target(other, target) == Some(true));
    own.cloned().unwrap_or_else(|| division.mark_of(first().unwrap_or(node)).to_owned())
}

/// The nodes whose levels name a device, once all wrong levels are corrected, and whether that is certain.
pub(super) fn served<'a>(cluster: &'a Cluster, found: &[Finding], device: &str) -> Vec<(&'a Node, bool)> {
    let new = || {
        found.iter().filter_map(|finding| match finding.step() {
            Some(Step::SetLevels { target, levels }) => Some((target, levels)),
            _ => None,
        })
    };
    let is_new = |target: &Target| new().any(|(other, _)| other == target);
    let old = cluster.levels.iter().filter(|level| !is_new(&level.target));
    let old = old.filter(|level| level.devices.iter().any(|id| id == device)).map(|level| &level.target);
    let made =
        new().filter(|(_, levels)| levels.iter().flatten().any(|id| id == device)).map(|(target, _)| target);
    let targets: Vec<&Target> = old.chain(made).collect();
    let of_node = |node: &'a Node| {
        let mut covered = targets
            .iter()
            .map(|target| cluster.is_target(node, target))
            .filter(|covers| *covers != Some(false));
        let first = covered.next()?;
        Some((node, first.is_some() || covered.any(|covers| covers.is_some())))
    };
    cluster.nodes.iter().filter_map(of_node).collect()
}

fn no_mark(cluster: &Cluster, division: &Division, own: &[Finding], found: &mut Vec<Finding>) {
    let mut is_first = cluster.marks().next().is_none();
    for id in &division.new {
        let hosts: Vec<String> =
            served(cluster, own, id).iter().map(|(node, _)| node.name.to_string()).collect();
        if hosts.is_empty() {
            continue;
        }
        let (about, what) = match std::mem::take(&mut is_first) {
            true => (
                "the cluster",
                "there is no mark device (stonith:fence_mark), so no fenced host is marked".to_owned(),
            ),
            false => (
                id.as_str(),
                format!(
                    "{} should have a mark device of their own: hosts that share one are marked one after the other",
                    hosts.join(", ")
                ),
            ),
        };
        let step = Step::CreateMark { id: id.clone(), hosts };
        found.push(Finding::new(Kind::NoMarkDevice, about, what, Then::Setup(step)));
    }
}

/// The targets whose levels the fencer uses for a node, and whether that is certain. One that is exactly the node's name
/// hides all others; of others the fencer takes any.
pub(super) fn holding<'a>(cluster: &'a Cluster, node: &Node) -> Vec<(&'a Target, bool)> {
    // Of one node alone: there may be thousands of levels and of nodes.
    let own = |level: &&Level| level.holds() && level.target.has_key(node.name.as_str());
    let exact = targets(cluster.levels.iter().filter(own));
    if !exact.is_empty() {
        return exact.into_iter().map(|target| (target, true)).collect();
    }
    cluster
        .targets()
        .into_iter()
        .filter(|target| !cluster.levels_of(target).is_empty())
        .filter_map(|t| match cluster.is_target(node, t) {
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

pub(super) fn distinct(lists: impl Iterator<Item = Vec<String>>) -> Lists {
    let mut all = Lists::new();
    for list in lists.filter(|list| !list.is_empty()) {
        if !all.contains(&list) {
            all.push(list);
        }
    }
    all
}

pub(super) fn without_marks(cluster: &Cluster, devices: &[String]) -> Vec<String> {
    devices.iter().filter(|id| !cluster.is_mark(id)).cloned().collect()
}

/// Whether all of these are still there, in order.
pub(super) fn keeps(before: &Lists, after: &Lists) -> bool {
    let mut left = after.iter();
    before.iter().all(|list| left.any(|other| other == list))
}

/// The highest number of a level.
fn room() -> usize {
    LEVELS.count()
}

/// The levels that a host's targets should have, or a question for the operator: power is never removed without
/// certainty.
fn wanted(cluster: &Cluster, division: &Division, node: &Node) -> Result<Vec<(Target, Lists)>, String> {
    let (name, holding) = (node.name.as_str(), holding(cluster, node));
    let is_exact = |target: &Target| target.key() == name;
    let own = Target::Name(name.to_owned());
    let Some((first, _)) = holding.first() else {
        let device = sole_device(cluster, node, &[])?;
        return Ok(vec![(own, desired(cluster, &vec![device], division.mark_of(node))?)]);
    };
    if let Some((target, _)) = holding.iter().find(|(_, certain)| !certain) {
        return Err(unsure(target, name));
    }
    if let Some((target, _)) = holding.iter().find(|(target, _)| is_ambiguous(cluster, target)) {
        return Err(format!(
            "two entries for {} have the same number, and Pacemaker may use both or only the last: keep one for each number, then run `nova-host-alerter setup` again",
            target.key()
        ));
    }
    let lists = |target: &Target| power_lists(cluster, &cluster.levels_of(target));
    let is_own =
        |target: &Target| any_cuts(cluster, &lists(target)) && is_for_computes_alone(cluster, target);
    if (holding.len() == 1 || !is_exact(first)) && holding.iter().all(|(target, _)| is_own(target)) {
        let marked = |target: &Target| {
            let levels = cluster.levels_of(target);
            let mark = mark_in(cluster, division, target, node);
            desired(cluster, &power_lists(cluster, &levels), &mark)
        };
        return holding.iter().map(|(target, _)| Ok(((*target).clone(), marked(target)?))).collect();
    }
    let mut power = lists(first);
    if holding.iter().any(|(target, _)| is_exact(target) && *target != &own || lists(target) != power) {
        let targets: Vec<String> = holding.iter().map(|(target, _)| target.key()).collect();
        return Err(format!(
            "levels for {} all match {name}, and Pacemaker takes any of them: which devices fence {name}? Write its levels under its own name, then run `nova-host-alerter setup` again",
            targets.join(" and for ")
        ));
    }
    if !any_cuts(cluster, &power) {
        power.push(sole_device(cluster, node, &power.concat())?);
    }
    let mark = mark_in(cluster, division, first, node);
    Ok(vec![(own, desired(cluster, &power, &mark)?)])
}

fn unsure(target: &Target, name: &str) -> String {
    format!(
        "do the levels for {} apply to {name}? Write the levels of {name} under its own name, then run `nova-host-alerter setup` again",
        target.key()
    )
}

/// Whether a target has two entries with one number: the fencer appends an added entry, but after a full refresh only the
/// last is left.
fn is_ambiguous(cluster: &Cluster, target: &Target) -> bool {
    cluster.levels_of(target).into_keys().any(|index| cluster.entries_of(target, index).len() > 1)
}

/// The devices that Pacemaker may choose for a node without levels, now or later: one that is disabled or banned for a
/// repair is still a power supply of the host.
pub(super) fn eligible<'a>(cluster: &'a Cluster, node: &Node) -> Vec<&'a Resource> {
    cluster.powers().filter(|device| device.is_for(node) != Some(false)).collect()
}

/// Whether it cuts power, and is neither disabled nor banned from every controller.
fn is_usable(cluster: &Cluster, device: &Resource, node: &Node) -> bool {
    device.powerless().is_none() && cluster.serves(device, node) != Some(false)
}

/// The only device that may be chosen for a host, beside those of its levels: it lists the host, and is known to cut
/// power. With several it is unknown whether one is enough, and a mark behind one of two supplies is false.
fn sole_device(cluster: &Cluster, node: &Node, but: &[String]) -> Result<Vec<String>, String> {
    let name = node.name.as_str();
    let mut devices = eligible(cluster, node);
    devices.retain(|device| !but.contains(&device.id));
    let question = match devices.as_slice() {
        [] => return Err(no_power_advice(name, None)),
        [device] if cluster.serves(device, node) == Some(false) => {
            return Err(no_power_advice(name, Some(device)));
        }
        [device] if !device.surely_cuts() => format!(
            "does {} ({}) cut the power of {name}? If so, write it into a level of {name}",
            device.id, device.agent
        ),
        [device] if cluster.serves(device, node) == Some(true) => return Ok(vec![device.id.clone()]),
        [device] => {
            format!("does {} fence {name}? If so, write it into a level of {name}", device.id)
        }
        several => format!(
            "Pacemaker may choose any of {} for {name}: is one enough, or are several needed? Write the levels of {name}",
            several.iter().map(|device| device.id.as_str()).collect::<Vec<_>>().join(", ")
        ),
    };
    Err(format!("{question}, then run `nova-host-alerter setup` again"))
}

/// Each list that cuts power with the mark behind it, then as many without the mark as there is room for: a failing mark
/// must not stop the fencing. A list that cuts no power gets no mark, and keeps its place.
fn desired(cluster: &Cluster, power: &Lists, mark: &str) -> Result<Lists, String> {
    if cluster.resource(mark).is_some_and(|mark| mark.is_stopped() || cluster.bans(mark).is_some()) {
        return Err(format!(
            "should {mark} be used again? It is disabled, or banned from every controller, and a level with it would fail"
        ));
    }
    if let Some(unknown) = power.iter().flatten().find(|id| cluster.resource(id).is_none()) {
        return Err(format!(
            "what is {unknown}? It is not a resource, and the tools may refuse a level with it: write the levels by hand, with {mark} behind devices that cut power"
        ));
    }
    let cuts = |list: &&Vec<String>| cluster.cuts_power(list);
    let first = power.iter().position(|list| cuts(&list)).unwrap_or_default().min(room() - 2);
    let (before, behind) = power.split_at(first);
    let marked = behind.iter().filter(cuts).map(|list| [list.clone(), vec![mark.to_owned()]].concat());
    let front = before.iter().cloned().chain(marked).take(room() - 1);
    let levels: Lists = front.chain(behind.iter().cloned()).take(room()).collect();
    let left = levels.iter().map(|list| list.iter().filter(|id| *id != mark).cloned().collect()).collect();
    if keeps(power, &left) {
        Ok(levels)
    } else {
        Err("there is no room for the mark in its levels: which of them can be removed?".to_owned())
    }
}

fn of_host(cluster: &Cluster, division: &Division, node: &Node, found: &mut Vec<Finding>) {
    let (name, holding) = (node.name.as_str(), holding(cluster, node));
    if holding.is_empty() {
        return without_level(cluster, division, node, found);
    }
    let wanted = wanted(cluster, division, node);
    if let Some((target, _)) = holding.first().filter(|_| holding.iter().all(|(_, certain)| !certain)) {
        let what = format!("it is unknown here whether the levels for {} apply to {name}", target.key());
        found.push(Finding::new(Kind::NoLevel, name, what, Then::Do(unsure(target, name))));
    }
    for (target, _) in holding {
        without_power(cluster, target, name, found);
        for (kind, what) in faults(cluster, target, name) {
            found.push(Finding::new(kind, name, what, set_levels(&wanted, target)));
        }
    }
}

/// Corrects the levels of a host under this target.
fn set_levels(wanted: &Result<Vec<(Target, Lists)>, String>, target: &Target) -> Then {
    match wanted {
        Ok(all) => {
            let own = all.iter().find(|(other, _)| other == target).or(all.first());
            let (target, levels) = own.expect("what is certain has levels").clone();
            Then::Setup(Step::SetLevels { target, levels })
        }
        Err(question) => Then::Do(question.clone()),
    }
}

fn without_level(cluster: &Cluster, division: &Division, node: &Node, found: &mut Vec<Finding>) {
    let name = node.name.as_str();
    let devices = eligible(cluster, node);
    let cuts = devices.iter().any(|device| is_usable(cluster, device, node));
    let idle = devices.into_iter().find(|device| device.powerless().is_none());
    // A device that does not list its hosts may be chosen for any.
    let chosen = cluster.marks().find(|mark| cluster.serves(mark, node) != Some(false));
    if !cuts {
        found.push(no_power(node, idle));
    }
    let (kind, what) = match (chosen, cuts) {
        (Some(mark), _) => (
            Kind::MarkAlone,
            format!(
                "{name} has no fencing level, so Pacemaker may choose only the mark device {} for it, and that refuses",
                mark.id
            ),
        ),
        (None, true) => {
            (Kind::NoLevel, format!("{name} has no fencing level, so it is fenced without a mark"))
        }
        (None, false) => return,
    };
    let then = if cuts {
        set_levels(&wanted(cluster, division, node), &Target::Name(name.to_owned()))
    } else {
        Then::Do(no_power_advice(name, idle))
    };
    found.push(Finding::new(kind, name, what, then));
}

fn no_power(node: &Node, idle: Option<&Resource>) -> Finding {
    let name = node.name.as_str();
    let what = match idle {
        Some(device) => format!(
            "the fence device {} of {name} is disabled, or banned from every controller, so the host cannot be fenced",
            device.id
        ),
        None => format!(
            "no fence device that cuts power has {name} in its pcmk_host_list, so the host cannot be fenced"
        ),
    };
    Finding::new(Kind::NoPowerDevice, name, what, Then::Do(no_power_advice(name, idle)))
}

/// Beside an unused device another one would be a second, unknown supply.
fn no_power_advice(name: &str, idle: Option<&Resource>) -> String {
    if let Some(device) = idle {
        return format!(
            "should {} be used again? It is disabled, or banned from every controller: correct that, and run `nova-host-alerter setup` again",
            device.id
        );
    }
    format!(
        "create its power device with pcmk_host_list={name}, or add {name} to the pcmk_host_list of its present device; then run `nova-host-alerter setup` again"
    )
}

fn is_for_computes_alone(cluster: &Cluster, target: &Target) -> bool {
    cluster.nodes.iter().all(|node| match cluster.is_target(node, target) {
        Some(covers) => !covers || cluster.is_compute(node),
        None => false,
    })
}

/// Levels without a mark that succeed while the host runs: Pacemaker believes them, and reports that.
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
            "put a power device into level {index} of {name}; remove the level only if another one with power stays"
        ));
        found.push(Finding::new(Kind::LevelWithoutPower, name, what, then));
    }
}

fn does(device: &Resource, does: &str) -> String {
    format!("{} ({}) {does}", device.id, device.agent)
}

/// The faults of a target's levels.
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
            found.push((Kind::LevelWithoutMark, format!("level {index} of {name} fences it without a mark: no earlier level has the same devices with the mark behind them")));
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

/// In every level of a target, the first fault of its mark device. The fencer appends an added entry to those of the same
/// number, but after a full refresh only the last is left: so any tail of them may apply.
fn misplaced(cluster: &Cluster, target: &Target, name: &str) -> Vec<(Kind, String)> {
    let of_level = |index: u32| {
        let entries = cluster.entries_of(target, index);
        (0..entries.len()).find_map(|from| fault(cluster, index, &entries[from..].concat(), name))
    };
    cluster.levels_of(target).into_keys().filter_map(of_level).collect()
}

fn fault(cluster: &Cluster, index: u32, devices: &[String], name: &str) -> Option<(Kind, String)> {
    let fault = LevelFault::of(devices, |id| cluster.is_mark(id), |id| weakness(cluster, id))?;
    let (kind, what) = match fault {
        LevelFault::NotLast => (
            Kind::MarkNotLast,
            format!(
                "the mark device is not the last of level {index} of {name}, so it would be asked before the host is fenced"
            ),
        ),
        LevelFault::Alone => (
            Kind::MarkAlone,
            format!(
                "the mark device is alone in level {index} of {name}, so it would be asked although no device has fenced the host"
            ),
        ),
        LevelFault::NoPower(weak) => (
            Kind::MarkWithoutPower,
            format!(
                "no device before the mark device in level {index} of {name} cuts power ({}): the mark device would be asked while the host runs, and refuses",
                weak.join("; ")
            ),
        ),
    };
    Some((kind, what))
}

/// What a device does instead of cutting power.
fn weakness(cluster: &Cluster, id: &str) -> Option<String> {
    match cluster.resource(id).filter(|device| device.is_fence_device()) {
        Some(device) => device.powerless().map(|powerless| does(device, powerless.does)),
        None => Some(format!("{id} is not a fence device of this cluster")),
    }
}

/// Levels that apply to no compute host, or to others too: a mark device must be last everywhere. And nodes without a
/// level that a mark device lists. Levels of other nodes belong to their operators.
fn beside(cluster: &Cluster, found: &mut Vec<Finding>) {
    for target in cluster.targets() {
        let faults = misplaced(cluster, target, &target.key());
        let is_reported = |what: &String| found.iter().any(|finding| finding.what == *what);
        let faults: Vec<(Kind, String)> = faults.into_iter().filter(|(_, what)| !is_reported(what)).collect();
        let is_treated = found.iter().any(
            |finding| matches!(finding.step(), Some(Step::SetLevels { target: own, .. }) if own == target),
        );
        for (kind, what) in faults.into_iter().filter(|_| !is_treated) {
            let then = Then::Do(format!(
                "put the mark device behind a power device in the levels for {0}, or remove it there: without a power device {0} has no fencing",
                target.key()
            ));
            found.push(Finding::new(kind, target.key(), what, then));
        }
    }
    let others =
        cluster.nodes.iter().filter(|node| !cluster.is_compute(node) && holding(cluster, node).is_empty());
    for (node, mark) in others.flat_map(|node| cluster.marks().map(move |mark| (node, mark))) {
        if mark.lists(node.name.as_str()) == Some(true) {
            let what = format!(
                "{} has no fencing level, so Pacemaker may choose only the mark device {} for it, and that refuses",
                node.name, mark.id
            );
            let then = Then::Do(format!(
                "remove {} from pcmk_host_list of {}, or give it levels of its own",
                node.name, mark.id
            ));
            found.push(Finding::new(Kind::MarkAlone, node.name.as_str(), what, then));
        }
    }
}

/// A name in a level without a device. Pacemaker makes the device `watchdog` itself if its timeout is set.
fn unknown(cluster: &Cluster, found: &mut Vec<Finding>) {
    let has_timeout = |name: &&str| {
        cluster
            .property(name)
            .is_some_and(|text| !text.trim_end_matches('s').bytes().all(|byte| byte == b'0'))
    };
    let by_itself = WATCHDOG_TIMEOUT.iter().any(has_timeout);
    for level in &cluster.levels {
        let is_device = |id: &str| match cluster.resource(id) {
            Some(resource) => resource.is_fence_device(),
            None => id == WATCHDOG && by_itself,
        };
        for id in level.devices.iter().filter(|id| !is_device(id)) {
            let what = format!(
                "level {} for {} names {id}, which is not a fence device: the level always fails",
                level.index,
                level.target.key()
            );
            let then = if id == WATCHDOG {
                "Pacemaker makes this device if stonith-watchdog-timeout is set and sbd runs: should it be so?".to_owned()
            } else {
                format!("create the device {id}, or remove it if a power device stays in the level")
            };
            found.push(Finding::new(Kind::UnknownDevice, id, what, Then::Do(then)));
        }
    }
}
