//! The properties of the cluster.

use std::collections::BTreeMap;

use marks::cib::truth;

use super::finding::{Finding, Kind, Then};
use super::model::Cluster;
use super::plan::Step;

/// From this release on fencings run beside each other by themselves.
const CONCURRENT: (u32, u32) = (3, 0);

pub(super) fn check(cluster: &Cluster, found: &mut Vec<Finding>) {
    let set =
        |name: &str| Then::Setup(Step::SetProperties(BTreeMap::from([(name.to_owned(), "true".to_owned())])));
    // Since 3.0.2 it has another name, too.
    for name in ["stonith-enabled", "fencing-enabled"] {
        if cluster.property(name).and_then(truth) == Some(false) {
            let what = format!("{name} is false, so no host is ever fenced, and none is marked");
            found.push(Finding::new(Kind::StonithEnabled, "the cluster", what, set(name)));
        }
    }
    let by_itself = cluster.pacemaker.is_some_and(|release| release >= CONCURRENT);
    if !cluster.property("concurrent-fencing").map_or(by_itself, |text| truth(text) == Some(true)) {
        let what =
            "concurrent-fencing is not true, so hosts that fail together are fenced one after the other";
        found.push(Finding::new(Kind::ConcurrentFencing, "the cluster", what, set("concurrent-fencing")));
    }
}
