//! The connections to the compute hosts.

use pacemaker::cib::time_limit;

use super::finding::{Finding, Kind, Then};
use super::model::{Cluster, Resource};

pub(super) fn check(cluster: &Cluster, found: &mut Vec<Finding>) {
    let connections = cluster.computes().filter_map(|node| {
        let is_own = |resource: &&Resource| resource.id.eq_ignore_ascii_case(node.name.as_str());
        cluster.resources.iter().find(is_own)
    });
    for connection in connections {
        reconnect(cluster, connection, found);
        start(connection, found);
    }
}

fn reconnect(cluster: &Cluster, connection: &Resource, found: &mut Vec<Finding>) {
    let id = &connection.id;
    let is_set = |text: &str| time_limit(text).is_some_and(|time| !time.is_zero());
    if !connection.parameter("reconnect_interval").is_some_and(is_set) {
        let what = format!(
            "{id} has no reconnect_interval: Pacemaker retries its connection all the time while it is down, and stops it before the fencing"
        );
        let then = Then::Do(format!(
            "set reconnect_interval of {id} to the host's boot time, such as 60s; this restarts its connection, so Pacemaker may stop what runs there"
        ));
        return found.push(Finding::new(Kind::ReconnectInterval, id, what, then));
    }
    if cluster.property("cluster-recheck-interval").is_some_and(|text| !is_set(text)) {
        let what = format!(
            "cluster-recheck-interval is 0, so Pacemaker does not retry {id} after its reconnect_interval"
        );
        let then = Then::Do("why is it off? Pacemaker's default is 15min".to_owned());
        found.push(Finding::new(Kind::ReconnectInterval, id, what, then));
    }
}

fn start(connection: &Resource, found: &mut Vec<Finding>) {
    let fences =
        connection.operations.iter().any(|o| o.name == "start" && o.on_fail.eq_ignore_ascii_case("fence"));
    if fences {
        let id = &connection.id;
        let what = format!(
            "the start of {id} has on-fail=fence, so a failing connection gets the controller fenced, not the host"
        );
        let then = Then::Do(format!("remove on-fail from the start operation of {id}"));
        found.push(Finding::new(Kind::StartOnFail, id, what, then));
    }
}
