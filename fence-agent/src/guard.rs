//! Whether a host may be marked. Pure: a false mark evacuates a live host, so this is all in one place.

use marks::host::{HostName, HostPatterns};
use pacemaker::cib::{Cib, MarkLevel};

/// Why a host may not be marked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Outside of `hosts`.
    #[error("hosts does not cover it: add it to hosts if it should be reported")]
    NotCovered,
    /// A full cluster node that only a pattern covers.
    #[error(
        "it is a cluster node and hosts does not have its exact name: add that only if the node runs instances"
    )]
    ClusterNode,
    /// A virtual machine of the cluster.
    #[error(
        "it is a guest node (a virtual machine of the cluster), which no device fences: remove it from hosts, and from the levels"
    )]
    Guest,
    /// A mark device would be asked although no device has fenced the host.
    #[error("{0}")]
    Level(String),
    /// The fencer asks, but the host has no level with a mark device behind another one.
    #[error(
        "no level of its fencing topology has a fence_mark device behind another device: put it behind the power device"
    )]
    NoLevel,
}

impl Refusal {
    /// A stable machine word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotCovered => "not-covered",
            Self::ClusterNode => "cluster-node",
            Self::Guest => "guest",
            Self::Level(_) => "level",
            Self::NoLevel => "no-level",
        }
    }
}

/// By its name alone: covered by `hosts`, with its exact name if it is a cluster node.
///
/// # Errors
/// [`Refusal`]
pub fn by_name(host: &HostName, hosts: &HostPatterns, cluster_nodes: &[HostName]) -> Result<(), Refusal> {
    if !hosts.covers(host) {
        return Err(Refusal::NotCovered);
    }
    if cluster_nodes.contains(host) && !hosts.names_literally(host) {
        return Err(Refusal::ClusterNode);
    }
    Ok(())
}

/// By its kind: the cluster recovers its own virtual machines and never fences them.
///
/// # Errors
/// [`Refusal`]
pub fn by_kind(host: &HostName, cib: &Cib) -> Result<(), Refusal> {
    if cib.is_guest_node(host) { Err(Refusal::Guest) } else { Ok(()) }
}

/// By its fencing levels with a mark device: the mark is last of at least two in every one, and at least one surely
/// applies to the host.
///
/// # Errors
/// [`Refusal`]
pub fn by_topology(levels: &[MarkLevel]) -> Result<(), Refusal> {
    if let Some(complaint) = levels.iter().find_map(MarkLevel::complaint) {
        return Err(Refusal::Level(complaint));
    }
    if !levels.iter().any(|level| level.certain) {
        return Err(Refusal::NoLevel);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> HostName {
        HostName::parse(name).unwrap()
    }

    /// Without one of its two halves the guard would accept a living host; these topologies distinguish them.
    #[test]
    fn each_half_of_the_guard_is_needed() {
        let devices = r#"<primitive id="p" class="stonith" type="x"/><primitive id="m" class="stonith" type="fence_mark"/>"#;
        let levels_of = |levels: &str| {
            let xml = format!(
                "<cib><resources>{devices}</resources><fencing-topology>{levels}</fencing-topology></cib>"
            );
            Cib::parse(&xml).unwrap().mark_levels_of(&host("compute1"))
        };
        let no_fault = |levels: &[MarkLevel]| levels.iter().all(|level| level.fault.is_none());
        let some_level =
            |levels: &[MarkLevel]| levels.iter().any(|level| level.certain && level.fault.is_none());
        let alone_in_second = levels_of(
            "<fencing-level target='compute1' index='1' devices='p,m'/><fencing-level target='compute1' index='2' devices='m'/>",
        );
        assert!(some_level(&alone_in_second) && by_topology(&alone_in_second).is_err());
        let without_topology = levels_of("");
        assert!(no_fault(&without_topology) && by_topology(&without_topology).is_err());
        let sound = levels_of(
            "<fencing-level target='compute1' index='1' devices='p,m'/><fencing-level target='compute1' index='2' devices='p'/>",
        );
        assert!(no_fault(&sound) && some_level(&sound) && by_topology(&sound).is_ok());
    }
}
