//! Which mark device marks which compute host.

use std::collections::BTreeMap;

use super::levels::holding;
use super::model::{Cluster, Node};

/// So many hosts that fail together are to be marked within two seconds.
const AT_ONCE: usize = 50;
/// So many of them share a device, which marks one host after the other: each takes 0.1 s on a busy controller. Hosts that
/// stand together in the configuration, as those of a rack do, are divided over all devices; so a larger cluster needs no more of them,
/// and each is one more resource that Pacemaker monitors.
const SHARE: usize = 10;

/// The mark device of each compute host: the one in its levels, else the one that it gets.
pub(super) struct Division {
    of: BTreeMap<String, String>,
    /// The devices that are not there yet; not all of them may be needed.
    pub(super) new: Vec<String>,
}

impl Division {
    pub(super) fn of(cluster: &Cluster) -> Self {
        let (mut load, new) = devices(cluster);
        let owned = |node: &Node| (node.name.to_string(), own(cluster, node));
        let (have, lack): (Vec<_>, Vec<_>) =
            cluster.computes().map(owned).partition(|(_, own)| own.is_some());
        let mut of: BTreeMap<String, String> =
            have.into_iter().filter_map(|(name, own)| Some((name, own?))).collect();
        for id in of.values() {
            load.iter_mut().filter(|(device, _)| device == id).for_each(|(_, hosts)| *hosts += 1);
        }
        for (name, _) in lack {
            let least = load.iter_mut().min_by_key(|(_, hosts)| *hosts).expect("one device is always wanted");
            least.1 += 1;
            of.insert(name, least.0.clone());
        }
        Self { of, new }
    }

    /// For a compute host.
    pub(super) fn mark_of(&self, node: &Node) -> &str {
        self.of.get(node.name.as_str()).expect("every compute host has one")
    }
}

/// The mark device in a host's levels.
fn own(cluster: &Cluster, node: &Node) -> Option<String> {
    let levels =
        holding(cluster, node).into_iter().flat_map(|(target, _)| cluster.levels_of(target).into_values());
    levels.flatten().find(|id| cluster.is_mark(id))
}

/// The devices that may get hosts, with none yet, and which of them are new. One that is disabled or banned gets none, unless
/// there is no other: then somebody has to decide.
fn devices(cluster: &Cluster) -> (Vec<(String, usize)>, Vec<String>) {
    let all = || cluster.marks();
    let is_usable = |mark: &&super::model::Resource| !mark.is_stopped() && cluster.bans(mark).is_none();
    let usable: Vec<String> = all().filter(is_usable).map(|mark| mark.id.clone()).collect();
    let idle: Vec<String> = all().map(|mark| mark.id.clone()).collect();
    let (there, wanted) = match usable.is_empty() && !idle.is_empty() {
        true => (idle, 0),
        false => (usable, cluster.compute_hosts().min(AT_ONCE).div_ceil(SHARE)),
    };
    let new: Vec<String> = cluster.free_ids("mark").take(wanted.saturating_sub(there.len())).collect();
    (there.into_iter().chain(new.iter().cloned()).map(|id| (id, 0)).collect(), new)
}
