//! The connections to the compute hosts.

use std::time::Duration;

use pacemaker::cib::interval;

use super::finding::{Finding, Kind, Then};
use super::model::{Cluster, Resource, is_some_time};

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
    let own = connection.parameter("reconnect_interval");
    if !own.is_some_and(is_some_time) {
        let said = own.map_or_else(
            || "has no reconnect_interval".to_owned(),
            |text| format!("has the reconnect_interval {text}, which Pacemaker reads as 0"),
        );
        let what = format!(
            "{id} {said}: Pacemaker retries its connection all the time while it is down, and stops it before the fencing"
        );
        let then = Then::Do(format!(
            "set reconnect_interval of {id} to the host's boot time, such as 60s; this restarts its connection, so Pacemaker may stop what runs there"
        ));
        return found.push(Finding::new(Kind::ReconnectInterval, id, what, then));
    }
    if cluster.property("cluster-recheck-interval").and_then(interval) == Some(Duration::ZERO) {
        let what = format!(
            "cluster-recheck-interval is 0, so Pacemaker does not retry {id} after its reconnect_interval"
        );
        let then = Then::Do("why is it off? Pacemaker's default is 15min".to_owned());
        found.push(Finding::new(Kind::ReconnectInterval, id, what, then));
    }
}

fn start(connection: &Resource, found: &mut Vec<Finding>) {
    let on_failing = connection.on_failing_start.as_deref();
    if on_failing.is_some_and(|what| what.eq_ignore_ascii_case("fence")) {
        let id = &connection.id;
        let what = format!(
            "the start of {id} has on-fail=fence, so a failing connection gets the controller fenced, not the host"
        );
        let then = Then::Do(format!(
            "remove on-fail=fence from the start operation of {id}, or from the defaults of operations"
        ));
        found.push(Finding::new(Kind::StartOnFail, id, what, then));
    }
}
