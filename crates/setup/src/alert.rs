//! The alert: it keeps Pacemaker's own report of each fencing on every controller.

use std::path::Path;

use pacemaker::cib::releases::MISSES_A_FIRST_ALERT;

use super::finding::{Finding, Kind, Then};
use super::model::{ALERT_PROGRAM, Alert, Cluster};
use super::step::Step;

/// The events that it must select.
pub(super) const FENCING: &str = "fencing";

/// The events that it must select too if a cluster node is a compute host: that such a node has joined.
const NODES: &str = "nodes";

pub(super) fn check(cluster: &Cluster, found: &mut Vec<Finding>) {
    if let Some(why) = &cluster.here.evidence {
        let directory = &cluster.wanted.evidence;
        let then = Then::Do(format!(
            "on every controller: `install -d -m 700 -o hacluster -g haclient {directory}`"
        ));
        let what = format!("alert_mark cannot write evidence of fencings: {why}");
        found.push(Finding::new(Kind::EvidenceDirectory, directory, what, then));
    }
    let own = || cluster.alerts.iter().filter(|alert| is_own(alert));
    if own().any(|alert| !alert.is_off && faults(cluster, alert).is_empty()) {
        return;
    }
    let wanted = cluster.wanted_recipients(&[]);
    let Some(alert) = own().next() else {
        let what = format!(
            "there is no alert with alert_mark, so evidence of fencings is not kept{}",
            if is_missed_at_first(cluster) { MISSED_AT_FIRST } else { "" }
        );
        let id = cluster.free_id("alert-mark");
        let (path, selected) = (cluster.here.alert.clone(), vec![NODES.to_owned()]);
        let step = Step::SetAlert { id, path, recipients: wanted, selected };
        return found.push(Finding::new(Kind::NoAlert, "the cluster", what, Then::Setup(step)));
    };
    if alert.is_off {
        let what = format!(
            "the alert {} is switched off (`enabled`), so evidence of fencings is not kept",
            alert.id
        );
        let then = Then::Do(format!("remove `enabled` from the meta attributes of the alert {}", alert.id));
        found.push(Finding::new(Kind::AlertOff, &alert.id, what, then));
    }
    for (kind, what) in faults(cluster, alert) {
        found.push(Finding::new(kind, &alert.id, what, Then::Setup(corrected(cluster, alert))));
    }
}

/// For a cluster without an alert before (`docs/pacemaker-releases.md`).
fn is_missed_at_first(cluster: &Cluster) -> bool {
    cluster.alerts.is_empty()
        && cluster.pacemaker.is_some_and(|release| MISSES_A_FIRST_ALERT.contains(&release))
}

const MISSED_AT_FIRST: &str = "; this Pacemaker reads its first alert with the next change of a cluster property: afterwards run `crm_attribute --type crm_config --name cluster-recheck-interval --update TIME` with a new time";

fn is_own(alert: &Alert) -> bool {
    Path::new(&alert.path).file_name().is_some_and(|name| name == ALERT_PROGRAM)
}

fn corrected(cluster: &Cluster, alert: &Alert) -> Step {
    let path = if alert.is_here { alert.path.clone() } else { cluster.here.alert.clone() };
    let mut others: Vec<String> = alert.selected.iter().filter(|what| *what != FENCING).cloned().collect();
    if cluster.has_member_hosts() && !others.iter().any(|what| what == NODES) {
        others.push(NODES.to_owned());
    }
    Step::SetAlert {
        id: alert.id.clone(),
        path,
        recipients: cluster.wanted_recipients(&alert.recipients),
        selected: others,
    }
}

impl Cluster {
    /// Without a recipient, evidence goes to its default directory.
    fn wanted_recipients(&self, given: &[String]) -> Vec<String> {
        let wanted = &self.wanted.evidence;
        let is_there =
            given.contains(wanted) || (given.is_empty() && wanted == pacemaker::evidence::DIRECTORY);
        given.iter().chain((!is_there).then_some(wanted)).cloned().collect()
    }
}

fn faults(cluster: &Cluster, alert: &Alert) -> Vec<(Kind, String)> {
    let (id, path) = (&alert.id, &alert.path);
    let selects = |what| alert.selected.is_empty() || alert.selected.iter().any(|one| one == what);
    let is_read = cluster.wanted_recipients(&alert.recipients) == alert.recipients;
    // If it is nowhere, the path is not wrong: its absence is a finding of its own.
    let is_lost = !alert.is_here && *path != cluster.here.alert;
    let all = [
        (
            is_lost,
            Kind::AlertPath,
            format!(
                "the alert {id} runs {path}, which is not on this controller, so evidence of fencings is not kept"
            ),
        ),
        (
            !selects(FENCING),
            Kind::AlertSelect,
            format!("the alert {id} selects no fencing, so evidence of fencings is not kept"),
        ),
        (
            !selects(NODES) && cluster.has_member_hosts(),
            Kind::AlertSelect,
            format!(
                "the alert {id} does not select nodes: if a cluster node is fenced twice within minutes, it may be reported only once"
            ),
        ),
        (
            !is_read,
            Kind::AlertRecipient,
            format!(
                "the alert {id} does not write to {}, where the alerter reads evidence",
                cluster.wanted.evidence
            ),
        ),
    ];
    all.into_iter().filter(|(is_wrong, ..)| *is_wrong).map(|(_, kind, what)| (kind, what)).collect()
}
