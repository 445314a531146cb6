//! Whether every node keeps its fencing: pure, from one configuration to the next.

use crate::levels::{Lists, distinct, eligible, holding, keeps, without_marks};
use crate::model::{Cluster, Node, NodeKind, Resource};
use pacemaker::cib::Target;

/// The levels of one target that apply to a node.
#[derive(PartialEq)]
struct Way<'a> {
    target: &'a Target,
    is_sure: bool,
    /// The levels in the document, the first level first.
    lists: Lists,
}

/// What nodes would lose, in words, whichever rule is in force.
pub fn lost(before: &Cluster, after: &Cluster) -> Vec<String> {
    let under_rules = before.under_rules.iter().map(|(rule, before)| {
        let same = after.under_rules.iter().find(|(other, _)| other == rule);
        (before, same.map_or(after, |(_, after)| after))
    });
    std::iter::once((before, after))
        .chain(under_rules)
        .flat_map(|(before, after)| of_one(before, after))
        .collect()
}

fn of_one(before: &Cluster, after: &Cluster) -> Vec<String> {
    let nodes = before.nodes.iter().filter(|node| node.kind != NodeKind::Guest);
    nodes.filter_map(|node| of_node(before, after, node).map(|why| format!("{}: {why}", node.name))).collect()
}

fn of_node(before: &Cluster, after: &Cluster, node: &Node) -> Option<String> {
    let (old, new) = (ways(before, node), ways(after, node));
    let levels = if !before.is_compute(node) && old != new {
        Some("its levels change, but it is not a compute host".to_owned())
    } else if old.is_empty() {
        from_none(before, after, node, &new)
    } else {
        changed(before, after, node, &old, &new)
    };
    let is_new = |list: &&Vec<String>| !old.iter().any(|way| way.lists.contains(list));
    let made: Vec<&Vec<String>> = new.iter().flat_map(|way| &way.lists).filter(is_new).collect();
    levels
        .or_else(|| made.iter().find_map(|list| misplaced(after, node, list)))
        .or_else(|| unlisted(before, after, node, &new))
        .or_else(|| mark_alone(before, after, node, &new))
}

fn ways<'a>(cluster: &'a Cluster, node: &Node) -> Vec<Way<'a>> {
    let way = |(target, is_sure): (&'a Target, bool)| {
        let mut own: Vec<_> = cluster.levels.iter().filter(|l| l.target == *target && l.holds()).collect();
        own.sort_by_key(|level| level.index);
        Way { target, is_sure, lists: own.into_iter().map(|level| level.devices.clone()).collect() }
    };
    holding(cluster, node).into_iter().map(way).collect()
}

/// Its lists without marks, each once.
fn power(cluster: &Cluster, way: &Way<'_>) -> Lists {
    distinct(way.lists.iter().map(|devices| without_marks(cluster, devices)))
}

/// Without a level Pacemaker chose any device of the node: only a single device is the same in a level.
fn from_none(before: &Cluster, after: &Cluster, node: &Node, new: &[Way<'_>]) -> Option<String> {
    let devices: Vec<&str> = eligible(before, node).iter().map(|device| device.id.as_str()).collect();
    let is_same = |way: &Way<'_>| way.is_sure && power(after, way).iter().all(|list| *list == devices);
    let is_kept = new.is_empty() || devices.len() == 1 && new.iter().all(is_same);
    (!is_kept).then(|| {
        format!("without a level any of ({}) fences it, but its new level would not", devices.join(", "))
    })
}

/// Earlier levels are still there: under the same targets, or under one if all were equal.
fn changed(
    before: &Cluster,
    after: &Cluster,
    node: &Node,
    old: &[Way<'_>],
    new: &[Way<'_>],
) -> Option<String> {
    let kept = |old: &Way<'_>, new: &Way<'_>| extends(before, after, node, old, new);
    let has_same = |way: &Way<'_>| {
        old.iter().any(|old| old.target == way.target && old.is_sure == way.is_sure && kept(old, way))
    };
    let in_place = old.len() == new.len() && new.iter().all(has_same);
    let joined =
        matches!(new, [only] if only.is_sure && old.iter().all(|old| old.is_sure && kept(old, only)));
    (!in_place && !joined)
        .then(|| "its levels would not be its present ones with the mark behind them".to_owned())
}

/// Whether all that fenced the node still does, in order; a new device is only one of the node itself if nothing cut its
/// power; and a failing mark does not stop the fencing.
fn extends(before: &Cluster, after: &Cluster, node: &Node, old: &Way<'_>, new: &Way<'_>) -> bool {
    if old.lists == new.lists {
        return true;
    }
    let (was, is) = (power(before, old), power(after, new));
    let cuts = |lists: &Lists| lists.iter().any(|list| before.cuts_power(list));
    let is_own = |list: &Vec<String>| {
        let device = |id: &String| {
            before
                .resource(id)
                .is_some_and(|device| device.surely_cuts() && before.serves(device, node) == Some(true))
        };
        let beside = eligible(before, node).into_iter().filter(|device| !was.concat().contains(&device.id));
        !cuts(&was) && list.len() == 1 && list.iter().all(device) && beside.count() == 1
    };
    let unmarked = |cluster: &Cluster, way: &Way<'_>| {
        way.lists.iter().any(|list| cluster.cuts_power(list) && !list.iter().any(|id| cluster.is_mark(id)))
    };
    let all: Lists = new.lists.iter().map(|list| without_marks(after, list)).collect();
    keeps(&was, &all)
        && is.iter().all(|list| was.contains(list) || is_own(list))
        && (unmarked(after, new) || !unmarked(before, old))
}

/// A mark in a new level is behind power, and lists the node.
fn misplaced(after: &Cluster, node: &Node, list: &[String]) -> Option<String> {
    let first = list.iter().position(|id| after.is_mark(id))?;
    let is_for = after.resource(&list[first]).is_some_and(|mark| after.serves(mark, node) != Some(false));
    let is_right = is_for && first + 1 == list.len() && after.cuts_power(&list[..first]);
    (!is_right).then(|| {
        format!("the mark device would not list it, or not be behind power, in ({})", list.join(", "))
    })
}

/// A device that was for the node, or may have been, and is not any more: in a level that fails.
fn unlisted(before: &Cluster, after: &Cluster, node: &Node, new: &[Way<'_>]) -> Option<String> {
    let has_left = |device: &&Resource| {
        let is_for = |cluster: &Cluster| {
            cluster.resource(&device.id).is_some_and(|own| cluster.serves(own, node) != Some(false))
        };
        is_for(before) && !is_for(after)
    };
    let is_used = |id: &str| new.iter().flat_map(|way| way.lists.iter().flatten()).any(|own| own == id);
    let devices = before.powers().filter(|power| new.is_empty() || is_used(&power.id));
    let marks = before.marks().filter(|mark| is_used(&mark.id));
    let gone = devices.chain(marks).find(has_left)?;
    Some(format!("it would lose the device {}", gone.id))
}

/// A mark device that Pacemaker may choose alone.
fn mark_alone(before: &Cluster, after: &Cluster, node: &Node, new: &[Way<'_>]) -> Option<String> {
    if new.iter().any(|way| way.is_sure) {
        return None;
    }
    let may_choose = |cluster: &Cluster, id: &str| {
        cluster.resource(id).is_some_and(|own| cluster.serves(own, node) != Some(false))
    };
    let mut marks = after.marks().map(|mark| mark.id.as_str());
    let chosen = marks.find(|id| may_choose(after, id) && !may_choose(before, id))?;
    Some(format!("it has no level, so Pacemaker might choose {chosen} alone for it"))
}
