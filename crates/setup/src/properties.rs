//! The properties of the cluster.

use std::collections::BTreeMap;

use pacemaker::cib::releases::CONCURRENT_BY_ITSELF;

use super::finding::{Finding, Kind, Then};
use super::model::{Cluster, Resource};
use super::step::Step;

pub(super) fn check(cluster: &Cluster, found: &mut Vec<Finding>) {
    let set =
        |name: &str| Then::Setup(Step::SetProperties(BTreeMap::from([(name.to_owned(), "true".to_owned())])));
    if let Some(name) = cluster.switched_off() {
        let what = format!("{name} is false, so no host is ever fenced, and none is marked");
        let then = format!(
            "why is {name} off? Setting it to true at once fences the hosts that Pacemaker takes for lost: {}",
            fenced_then(cluster)
        );
        found.push(Finding::new(Kind::StonithEnabled, "the cluster", what, Then::Do(then)));
    }
    let by_itself = cluster.pacemaker.is_some_and(|release| release >= CONCURRENT_BY_ITSELF);
    if !cluster
        .property("concurrent-fencing")
        .map_or(by_itself, |_| cluster.is_on("concurrent-fencing") == Some(true))
    {
        let what =
            "concurrent-fencing is not true, so hosts that fail together are fenced one after the other";
        found.push(Finding::new(Kind::ConcurrentFencing, "the cluster", what, set("concurrent-fencing")));
    }
}

/// The hosts that would be fenced as soon as fencing is switched on.
fn fenced_then(cluster: &Cluster) -> String {
    if !cluster.resources.iter().any(Resource::is_fence_device) {
        return "there is no fence device, and resources of lost hosts would wait forever".to_owned();
    }
    match &cluster.would_fence {
        None => "unknown, for crm_simulate gave no answer".to_owned(),
        Some(hosts) if hosts.is_empty() => "none at present".to_owned(),
        Some(hosts) => format!("now {}", hosts.join(", ")),
    }
}
