//! The operation history of resources: when a connection was last good, where a resource runs, and which hosts fail a health check.

use std::collections::BTreeMap;

use super::Cib;
use crate::xml::Element;
use marks::fencing::Incarnation;
use marks::host::HostName;

/// One node's operations on one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct History {
    pub(super) resource: String,
    /// `class:provider:type`
    pub(super) agent: String,
    pub(super) node: String,
    pub(super) operations: Vec<Operation>,
    /// A start is in flight.
    pub(super) is_starting: bool,
    /// Of all its operations, those in flight too.
    pub(super) total: Total,
}

impl History {
    /// The operation in flight replaced the stop before it, and the good monitors before that are still there.
    fn holds(&self) -> Option<bool> {
        let last = || self.operations.iter().max_by_key(|operation| operation.order());
        if self.is_starting { Some(false) } else { last()?.holds() }
    }

    /// Whether it is a health check of which Pacemaker remembers a failure.
    pub(super) fn has_complained(&self) -> bool {
        self.agent == HEALTH_AGENT && self.operations.iter().any(|operation| operation.reason.is_some())
    }

    /// What its monitor says that failed last. Of a host's own resource the host dates each result, while the controller that
    /// counts them changes with the connection. Of the same second a good one counts.
    fn complaint(&self) -> Option<&str> {
        let order = |one: &Operation| (one.seconds, one.call_id, one.succeeded);
        let last = self.operations.iter().max_by_key(|operation| order(operation))?;
        last.reason.as_deref().filter(|_| last.kind == "monitor")
    }
}

/// What Pacemaker itself can compare operations by, in one XPath expression: how many there are, and the sums of their
/// numbers. An operation that is added, removed or replaced changes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Total {
    pub(super) count: i64,
    pub(super) sums: [i64; 3],
    /// A number that is none: no sum is equal to it, so nothing counts as unchanged.
    pub(super) is_open: bool,
}

impl Total {
    /// The attributes that are summed.
    pub(super) const OF: [&str; 3] = ["call-id", "last-rc-change", "rc-code"];

    pub(super) fn add(&mut self, operation: &Element) {
        self.count += 1;
        for (sum, name) in self.sums.iter_mut().zip(Self::OF) {
            let Some(text) = operation.find(name) else { continue };
            match text.parse::<i64>() {
                Ok(number) => *sum = sum.saturating_add(number),
                Err(_) => self.is_open = true,
            }
        }
    }

    pub(super) fn join(mut self, other: &Self) -> Self {
        self.count += other.count;
        self.sums.iter_mut().zip(other.sums).for_each(|(sum, more)| *sum = sum.saturating_add(more));
        self.is_open |= other.is_open;
        self
    }
}

/// One operation that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Operation {
    pub(super) kind: String,
    pub(super) succeeded: bool,
    /// A probe, or a monitor, of a resource that does not run there.
    pub(super) found_nothing: bool,
    /// Ascends on each node.
    pub(super) call_id: u32,
    /// When its outcome changed last, epoch seconds.
    pub(super) seconds: i64,
    /// What one says that failed, or that is degraded.
    pub(super) reason: Option<String>,
}

impl Operation {
    /// Whether it failed, as a probe that finds nothing does not.
    pub(super) fn has_failed(&self) -> bool {
        !self.succeeded && !self.found_nothing
    }

    /// Successful starts and monitors show that the resource ran there.
    pub(super) fn shows_life(&self) -> bool {
        self.succeeded && matches!(self.kind.as_str(), "start" | "monitor")
    }

    /// Whether a controller with this last operation has a connection; `None` if it leaves that open, as a handover does,
    /// and a probe that found none.
    fn holds(&self) -> Option<bool> {
        match (self.kind.as_str(), self.succeeded) {
            ("start" | "monitor" | "migrate_from", true) => Some(true),
            ("stop", true) => Some(false),
            ("start" | "monitor", false) if self.has_failed() => Some(false),
            _ => None,
        }
    }

    /// A failed monitor has the call id of the good ones before it.
    pub(super) fn order(&self) -> (u32, i64) {
        (self.call_id, self.seconds)
    }
}

/// Its operations are a controller's connections to others. Each controller counts them separately, from 1.
pub(super) const REMOTE_AGENT: &str = "ocf:pacemaker:remote";
/// It says of a compute host what its connection does not show.
pub const HEALTH_AGENT: &str = "ocf:openstack:compute-health";
/// The OCF exit codes of a check that failed, or that is degraded.
pub(super) const FAULTY: [&str; 2] = ["1", "190"];
/// Pacemaker cuts a reason at 128 bytes; whoever can write the CIB does not.
const REASON_MAX: usize = 160;

/// A host's own words, so that they fit wherever they are kept and shown.
fn plain(reason: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_graphic() || letter == ' ' { letter } else { '?' };
    let text: String = reason.chars().map(plain).take(REASON_MAX).collect();
    if text.is_empty() { "no reason is given".to_owned() } else { text }
}

impl Cib {
    /// The host's incarnation in the CIB: for a remote node its last connection, for a cluster node its last join.
    pub fn incarnation_of(&self, host: &HostName) -> Option<Incarnation> {
        if self.joins_itself(host) {
            return self.own_work_of(host);
        }
        self.connection_of(host)
    }

    /// The oldest of a cluster node's own operations in the CIB. Call ids start again with each start of the node,
    /// Pacemaker drops all operations of a fenced node, and a node that joins brings its operations since its start.
    /// `in_ccm` and `crmd` do not serve: at `off` they are mostly 0, and each new DC overwrites them with its own time of
    /// joining.
    fn own_work_of(&self, host: &HostName) -> Option<Incarnation> {
        let is_own = |history: &&History| {
            history.agent != REMOTE_AGENT && history.node.eq_ignore_ascii_case(host.as_str())
        };
        let own = self.histories.iter().filter(is_own);
        let done =
            own.flat_map(|history| history.operations.iter().map(move |done| (done, history.node.as_str())));
        let (first, node) = done.min_by_key(|(done, _)| done.order())?;
        Some(Incarnation::new(node, first.call_id, first.seconds))
    }

    /// The members whose health check fails by the agent's last word, each with its reason.
    pub fn unhealthy(&self) -> BTreeMap<HostName, String> {
        let is_member = |host: &HostName| self.membership(host) == Some(true);
        self.complaints().filter(|(host, _)| is_member(host)).collect()
    }

    /// The same of one host, whose connection may be lost by now.
    pub fn complaint_of(&self, host: &HostName) -> Option<String> {
        self.complaints().find(|(node, _)| node == host).map(|(_, reason)| reason)
    }

    fn complaints(&self) -> impl Iterator<Item = (HostName, String)> {
        let health = self.histories.iter().filter(|history| history.has_complained());
        health.filter_map(|history| Some((HostName::parse(&history.node).ok()?, plain(history.complaint()?))))
    }

    /// The newest successful start or monitor of the host's remote resource.
    fn connection_of(&self, host: &HostName) -> Option<Incarnation> {
        let own = self.index.histories(host.as_str()).iter().filter_map(|at| self.histories.get(*at));
        let good = own.flat_map(|history| {
            let good = history.operations.iter().filter(|operation| operation.shows_life());
            good.map(|operation| (operation.seconds, operation.call_id, history.node.as_str()))
        });
        let (seconds, call_id, controller) = good.max()?;
        Some(Incarnation::new(controller, call_id, seconds))
    }

    /// Whether a controller of the cluster is connected to a remote node, by each one's last operation on its resource;
    /// `None` if that is open: no controller has a record of it, as after a cleanup, or only a controller that left the
    /// cluster has the connection.
    pub(super) fn is_connected(&self, host: &HostName) -> Option<bool> {
        let all = self.index.histories(host.as_str()).iter().filter_map(|at| self.histories.get(*at));
        let (here, gone): (Vec<_>, Vec<_>) =
            all.partition(|history| self.state_of(&history.node).is_some_and(super::NodeState::takes_part));
        let holds = |of: Vec<&History>| of.into_iter().filter_map(History::holds).max();
        match (holds(here), holds(gone)) {
            (Some(true), _) => Some(true),
            (_, Some(true)) => None,
            (here, _) => here,
        }
    }

    /// The id of that agent's resource (`class:provider:type`), if a node has operated on it.
    pub fn resource_of(&self, agent: &str) -> Option<&str> {
        self.histories.iter().find(|history| history.agent == agent).map(|history| history.resource.as_str())
    }

    /// The node on which a resource of that agent runs (`class:provider:type`): its last operation there was a successful
    /// start or monitor. A node outside of the membership runs nothing. Of several the newest.
    pub fn active_on(&self, agent: &str) -> Option<String> {
        let histories = self.histories.iter().filter(|history| history.agent == agent);
        let here = histories.filter(|history| {
            self.state_of(&history.node).and_then(super::NodeState::is_member) != Some(false)
        });
        let active = here.filter_map(|history| {
            let last = history.operations.iter().max_by_key(|operation| operation.order())?;
            last.shows_life().then_some((last.seconds, history.node.as_str()))
        });
        active.max().map(|(_, node)| node.to_owned())
    }
}
